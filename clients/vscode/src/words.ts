/** A message in the language of the editor; `{0}`, `{1}`, … stand for the values. */
export type Words = (message: string, ...values: (string | number)[]) => string;

/** The message in English. */
export const inEnglish: Words = (message, ...values) =>
  message.replace(/\{(\d+)\}/g, (whole, index) => String(values[Number(index)] ?? whole));

const LONGEST_LINE = 120;

/** Controls, marks and overrides of direction, and separators of lines, which could make a text look like another one. */
const COMMANDS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** A stored text on one line, at most 120 characters, without what would change how its neighbours are shown. */
export function oneLine(text: string): string {
  const line = text.replace(COMMANDS, " ").split(/\s+/).join(" ").trim();
  const characters = Array.from(line);
  return characters.length <= LONGEST_LINE ? line : `${characters.slice(0, LONGEST_LINE - 1).join("")}…`;
}
