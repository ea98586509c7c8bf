import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";

/** Any value of JSON; of cases and replies. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Json = any;

const NEAR = 1e-6;

/** Says why a value is not as a case expects it; the rules are those of tests/conformance/README.md. */
export class Matcher {
  readonly #golden: string;

  /** @param golden The folder of `$golden`. */
  constructor(golden: string) {
    this.#golden = golden;
  }

  /** Why they do not match, with the place; undefined where they do. A value that is not there is undefined. */
  mismatch(expected: Json, got: Json, where = ""): string | undefined {
    if (Array.isArray(expected)) {
      if (!Array.isArray(got) || got.length !== expected.length) return said(where, expected, got);
      return first(expected, (each, at) => this.mismatch(each, got[at], `${where}[${at}]`));
    }
    if (typeof expected !== "object" || expected === null) {
      return isSame(expected, got) ? undefined : said(where, expected, got);
    }
    const rule = Object.keys(expected).find(key => key.startsWith("$"));
    if (rule) return this.#keeps(rule, expected[rule], got) ? undefined : said(where, expected, got);
    if (typeof got !== "object" || got === null) return said(where, expected, got);
    return first(Object.keys(expected), key => this.mismatch(expected[key], got[key], `${where}.${key}`));
  }

  #keeps(rule: string, argument: Json, got: Json): boolean {
    switch (rule) {
      case "$any":
        return got !== undefined;
      case "$absent":
        return got === undefined;
      case "$contains":
        if (Array.isArray(got)) return got.some(each => this.mismatch(argument, each) === undefined);
        return typeof got === "string" && got.includes(argument);
      case "$matches":
        return typeof got === "string" && pattern(argument).test(got);
      case "$at_least":
        return got !== undefined && Number(got) >= argument;
      case "$length":
        return (Array.isArray(got) || typeof got === "string") && got.length === argument;
      case "$golden":
        return got === readFileSync(join(this.#golden, argument), "utf8");
      default:
        throw new Error(`${rule} is no rule`);
    }
  }
}

function isSame(expected: Json, got: Json): boolean {
  if (typeof expected === "number" && typeof got === "number") return Math.abs(expected - got) <= NEAR;
  return isDeepStrictEqual(expected, got);
}

/** A regular expression as Python writes it, whose flags may stand in front. */
function pattern(text: string): RegExp {
  const found = /^\(\?([ims]+)\)/.exec(text);
  return new RegExp(text.slice(found?.[0].length ?? 0), `u${found?.[1] ?? ""}`);
}

function first<T>(items: readonly T[], why: (item: T, at: number) => string | undefined): string | undefined {
  for (const [at, item] of items.entries()) {
    const found = why(item, at);
    if (found) return found;
  }
  return undefined;
}

function said(where: string, expected: Json, got: Json): string {
  return `${where.replace(/^\./, "") || "reply"}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(got)}`;
}
