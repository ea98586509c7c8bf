import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { placeOf } from "../src/project.js";

const HOME = realpathSync(mkdtempSync(join(tmpdir(), "hummock-project-")));
after(() => rmSync(HOME, { recursive: true, force: true }));

for (const folder of ["shop/.git", "shop/src", "plain/inner", "tree/src", "part/src"]) {
  mkdirSync(join(HOME, folder), { recursive: true });
}
writeFileSync(join(HOME, "tree/.git"), `gitdir: ${join(HOME, "shop")}/.git/worktrees/tree\n`);
writeFileSync(join(HOME, "part/.git"), "gitdir: ../shop/.git/modules/part\n");

const NAMED: readonly [string, string, (string | undefined)[], string, string][] = [
  ["the repository", "shop", [], "shop", "shop"],
  ["a folder of a repository", "shop/src", [], "shop", "shop"],
  ["a folder without git", "plain/inner", [], "inner", "plain/inner"],
  ["a worktree, as its repository", "tree/src", [], "shop", "tree"],
  ["a submodule, as itself", "part/src", [], "part", "part"],
  ["a folder that is gone", "shop/gone/deep", [], "shop", "shop"],
  ["what is set", "shop", ["", "mine", "other"], "mine", "shop"],
  ["nothing set", "shop", ["", undefined], "shop", "shop"],
];

for (const [what, folder, set, project, root] of NAMED) {
  test(`the project is named after ${what}`, () => {
    assert.deepEqual(placeOf(join(HOME, folder), set), { project, root: join(HOME, root) });
  });
}

test("the root of a disk has no name", () => {
  assert.equal(placeOf("/"), undefined);
});
