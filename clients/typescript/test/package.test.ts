import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const LARGEST_BUNDLE_BYTES = 256 * 1024;

/** Reaches for what is there at run time, and calls a service that is not there. */
const USE = `
const client = new HummockClient({ target: "127.0.0.1:1" });
const messages = [{ role: "user", content: "?" }];
client.admin.getStatus({}).catch(async error => {
  const same = (await client.withMemory(messages, { project: "p" })) === messages;
  console.log(error instanceof HummockError, error.code, same, MemoryKind.NOTE);
});`;
const EXPECTED = "true UNAVAILABLE true 4\n";
const NAMES = "{ HummockClient, HummockError, MemoryKind }";

/** A project of somebody who has installed the packed tarball. */
let project: string;
let packed: string[];

before(() => {
  project = mkdtempSync(join(tmpdir(), "hummock-package-"));
  const told = execFileSync("npm", ["pack", "--json", "--silent", "--pack-destination", project], { cwd: ROOT });
  const [{ filename, files }] = JSON.parse(told.toString("utf8").replace(/^[^[]*/, ""));
  packed = files.map(({ path }: { path: string }) => path);
  const modules = join(project, "node_modules");
  mkdirSync(join(modules, "hummock"), { recursive: true });
  execFileSync("tar", ["xzf", join(project, filename), "-C", join(modules, "hummock"), "--strip-components=1"]);
  for (const name of ["@bufbuild", "@connectrpc", "@types", "undici-types"]) {
    symlinkSync(join(ROOT, "node_modules", name), join(modules, name));
  }
});

after(() => rmSync(project, { recursive: true, force: true }));

function run(name: string, source?: string): string {
  if (source !== undefined) writeFileSync(join(project, name), source);
  return execFileSync(process.execPath, [name], { cwd: project, encoding: "utf8" });
}

test("the tarball holds what is run and its licence, and no tests", () => {
  for (const file of [
    "LICENSE",
    "NOTICE",
    "README.md",
    "dist/esm/index.js",
    "dist/cjs/index.js",
    "dist/cjs/index.d.ts",
  ]) {
    assert.ok(packed.includes(file), file);
  }
  const others = packed.filter(path => !/^(dist\/|LICENSE$|NOTICE$|README\.md$|package\.json$)/.test(path));
  assert.deepEqual(others, []);
});

test("it is imported as an ES module", () => {
  assert.equal(run("use.mjs", `import ${NAMES} from "hummock";${USE}`), EXPECTED);
});

test("it is required as CommonJS", () => {
  assert.equal(run("use.cjs", `const ${NAMES} = require("hummock");${USE}`), EXPECTED);
});

test("extensions bundle it into one CommonJS file", async () => {
  const options = { bundle: true, platform: "node", format: "cjs", minify: true, absWorkingDir: project } as const;
  writeFileSync(join(project, "extension.mjs"), `import ${NAMES} from "hummock";${USE}`);
  const outfile = join(project, "bundle.cjs");
  const { warnings } = await build({ ...options, entryPoints: ["extension.mjs"], outfile, logLevel: "silent" });
  assert.deepEqual(warnings, []);
  assert.equal(run("bundle.cjs"), EXPECTED);
  assert.ok(statSync(outfile).size < LARGEST_BUNDLE_BYTES, `${statSync(outfile).size} bytes`);
});

test("it has types for both", () => {
  const source = `import { HummockClient, type RecallResponse, type Reason } from "hummock";
const client = new HummockClient();
export const reply: Promise<RecallResponse> = client.recall({ project: "p", queryText: "q", tuning: { topK: 3 } });
export const reason: Reason = "MEMORY_NOT_FOUND";
// @ts-expect-error no field is called so
void client.recall({ project: "p", query: "q" });
export async function seqs(): Promise<bigint[]> {
  const found: bigint[] = [];
  for await (const { seq } of client.watchMemories({ project: "p", afterSeq: 3n })) found.push(seq);
  return found;
}
`;
  const options = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022"];
  const resolution = ["--module", "nodenext", "--types", "node"];
  writeFileSync(join(project, "types.mts"), source);
  writeFileSync(join(project, "types.cts"), source);
  const tsc = join(ROOT, "node_modules", ".bin", "tsc");
  try {
    execFileSync(tsc, [...options, ...resolution, "types.mts", "types.cts"], { cwd: project, encoding: "utf8" });
  } catch (error) {
    assert.fail((error as { stdout: string }).stdout);
  }
});
