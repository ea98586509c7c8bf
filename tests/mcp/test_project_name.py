"""The project that a folder belongs to where nobody names one."""

from __future__ import annotations

from pathlib import Path

import pytest

from hummock_tools.project_name import LONGEST_NAME, project_of


@pytest.mark.parametrize(
    ("folders", "files", "folder", "project"),
    [
        (["shop/.git"], {}, "shop", "shop"),
        (["shop/.git", "shop/src/a"], {}, "shop/src/a", "shop"),
        (["shop/.git"], {}, "shop/src/../absent", "shop"),
        (["plain/src"], {}, "plain/src", "src"),
        (["商店/.git"], {}, "商店", "商店"),
        (["shop/.git", "tree/src"], {"tree/.git": "gitdir: {root}/shop/.git/worktrees/tree\n"}, "tree/src", "shop"),
        (["sub/src"], {"sub/.git": "gitdir: ../.git/modules/sub\n"}, "sub/src", "sub"),
        (["sub"], {"sub/.git": ""}, "sub", "sub"),
        (["x" * 200], {}, "x" * 200, "x" * 200),
    ],
)
def test_a_folder_belongs_to_its_repository(
    tmp_path: Path, folders: list[str], files: dict[str, str], folder: str, project: str
) -> None:
    for each in folders:
        (tmp_path / each).mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / name).write_text(text.replace("{root}", str(tmp_path)), encoding="utf-8")
    assert project_of(tmp_path / folder) == project


def test_the_root_has_no_project_and_long_names_are_cut(tmp_path: Path) -> None:
    assert project_of(Path("/")) == ""
    assert project_of(tmp_path / ("x" * (LONGEST_NAME + 1))) == "x" * LONGEST_NAME
