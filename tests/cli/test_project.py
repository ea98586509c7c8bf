"""The project of a command that names none: that of the repository, for what reads or adds; the others ask for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup

from hummock.cli.main import app
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import explain_pb2
from tests.cli.conftest import Run
from tests.cli.fake_service import FakeService

READ_OR_ADD: dict[tuple[str, ...], tuple[str, ...]] = {
    ("recall",): ("x",),
    ("render",): ("x",),
    ("search",): ("x",),
    ("explain",): ("x", "--id", "m1"),
    ("feedback",): ("--helpful", "m1"),
    ("learn",): ("x",),
    ("memories", "ls"): (),
    ("memories", "get"): ("m1",),
    ("memories", "watch"): (),
    ("review", "ls"): (),
    ("review", "approve"): ("m1", "--yes"),
    ("review", "replaced"): (),
    ("review", "replace"): ("m2", "m1"),
    ("review", "keep"): ("m2", "m1"),
    ("sessions", "ls"): (),
    ("sessions", "show"): (),
    ("sessions", "watch"): (),
    ("learning", "run"): (),
    ("learning", "status"): (),
    ("learning", "watch"): (),
    ("learning", "log"): (),
    ("learning", "replay"): (),
}
CHANGE_OR_REMOVE: dict[tuple[str, ...], tuple[str, ...]] = {
    ("memories", "edit"): ("m1", "--title", "x"),
    ("memories", "pin"): ("m1",),
    ("memories", "unpin"): ("m1",),
    ("review", "reject"): ("m1", "--yes"),
    ("sessions", "edit"): ("s", "m1", "x"),
    ("sessions", "rm"): ("s", "m1"),
    ("learning", "on"): (),
    ("learning", "off"): (),
    ("learning", "set"): ("--high-above", "5"),
    ("learning", "keywords"): ("m1",),
    ("remove", "memories"): ("m1",),
    ("remove", "traces"): ("m1", "--yes"),
    ("mcp", "install"): ("--client", "claude", "--print"),
}
OF_A_PATH_OR_AN_AGENT: set[tuple[str, ...]] = {("index",), ("import",), ("mcp",), ("setup",)}


@pytest.fixture
def shop(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a repository that is open, with a folder `src`; nothing in the environment names a project."""
    del run  # it names one
    for name in ("HUMMOCK_PROJECT", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "shop/.git").mkdir(parents=True)
    (tmp_path / "shop/src").mkdir()
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def test_each_command_with_a_project_is_in_one_of_the_tables() -> None:
    assert not READ_OR_ADD.keys() & CHANGE_OR_REMOVE.keys()
    assert READ_OR_ADD.keys() | CHANGE_OR_REMOVE.keys() | OF_A_PATH_OR_AN_AGENT == set(_with_project())


@pytest.mark.long
@pytest.mark.parametrize("command", READ_OR_ADD, ids=" ".join)
def test_what_reads_or_adds_works_on_the_project_of_the_repository(
    run: Run, fake: FakeService, shop: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(shop / "src")
    result = run(*command, *READ_OR_ADD[command])
    assert result.exit_code == 0, result.stderr
    assert {_project(asked) for asked in fake.asked} == {"shop"}
    assert "--project" not in result.stderr


@pytest.mark.long
@pytest.mark.parametrize("command", CHANGE_OR_REMOVE, ids=" ".join)
def test_what_changes_or_removes_asks_for_the_project(
    run: Run, fake: FakeService, shop: Path, command: tuple[str, ...]
) -> None:
    del shop
    result = run(*command, *CHANGE_OR_REMOVE[command])
    assert (result.exit_code, fake.asked) == (2, [])
    assert "Missing option '--project'" in result.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("environ", "folder", "more", "project"),
    [
        ({}, "shop", (), "shop"),
        ({}, "tree/src", (), "shop"),
        ({"HUMMOCK_PROJECT": ""}, "shop", ("-p", ""), "shop"),
        ({"CLAUDE_PROJECT_DIR": "{root}/shop/src"}, "lib", (), "shop"),
        ({"CLAUDE_PROJECT_DIR": ""}, "lib", (), "lib"),
        ({"CLAUDE_PROJECT_DIR": "{root}/lib", "HUMMOCK_PROJECT": "商店"}, "shop", (), "商店"),
        ({"HUMMOCK_PROJECT": "商店"}, "shop", ("--project", "me"), "me"),
        ({"HUMMOCK_PROJECT": "商店"}, ".", (), "商店"),
    ],
)
def test_a_name_wins_over_the_repository(
    run: Run,
    fake: FakeService,
    shop: Path,
    monkeypatch: pytest.MonkeyPatch,
    environ: dict[str, str],
    folder: str,
    more: tuple[str, ...],
    project: str,
) -> None:
    root = shop.parent
    (root / "lib/.git").mkdir(parents=True)
    (root / "tree/src").mkdir(parents=True)
    (root / "tree/.git").write_text(f"gitdir: {shop}/.git/worktrees/tree\n", encoding="utf-8")
    for name, value in environ.items():
        monkeypatch.setenv(name, value.replace("{root}", str(root)))
    monkeypatch.chdir(root / folder)
    assert run("learn", "x", *more).exit_code == 0
    assert fake.request(context_pb.LearnRequest).project == project


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("plain", "plain is in no repository; {how} (agents that work there use plain)"),
        ("/", "/ is in no repository; {how}"),
        ("gone", "the current folder is gone; {how}"),
    ],
)
def test_outside_of_a_repository_the_error_says_how_to_name_a_project(
    run: Run, fake: FakeService, shop: Path, monkeypatch: pytest.MonkeyPatch, folder: str, said: str
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    opened = shop.parent / folder
    opened.mkdir(exist_ok=True)
    monkeypatch.chdir(opened)
    if folder == "gone":
        opened.rmdir()
    result = run("recall", "x")
    assert (result.exit_code, fake.asked) == (2, [])
    assert said.format(how="name the project with --project or HUMMOCK_PROJECT") in result.stderr
    assert run("recall", "x", "--project", "me").exit_code == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("memories", "ls", "--page", "t1"), "no memories found in project shop\n"),
        (("sessions", "ls", "--archived"), "no archived sessions in project shop\n"),
        (("learning", "log"), "no events in project shop\n"),
        (("review", "ls"), "nothing is held in project shop\n"),
        (("review", "replaced"), "no note of project shop is probably replaced\n"),
    ],
)
def test_where_nothing_is_there_the_project_is_said_and_not_in_json(
    run: Run, shop: Path, command: tuple[str, ...], said: str
) -> None:
    del shop
    shown, data = run(*command), run(*command, "--json")
    assert (shown.exit_code, shown.stdout, shown.stderr) == (0, "", said)
    assert (data.exit_code, data.stderr) == (0, "")


@pytest.mark.long
def test_an_index_goes_into_the_project_of_its_path(
    run: Run, fake: FakeService, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tree_sitter")
    monkeypatch.setenv("COLUMNS", "400")
    (shop / "src/loan.py").write_text("def repay(amount):\n    return amount\n", encoding="utf-8")
    monkeypatch.chdir(shop.parent)
    refused = run("index", ".")
    assert (refused.exit_code, fake.asked) == (2, [])
    assert "is in no repository; name the project with --project or HUMMOCK_PROJECT" in refused.stderr
    shown = run("index", "shop/src")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stderr.startswith("indexing into project shop\n")
    data = run("index", "shop/src", "--json")
    assert "indexing into" not in data.stderr
    assert json.loads(data.stdout)["project"] == "shop"
    assert {_project(asked) for asked in fake.asked} == {"shop"}
    del fake.asked[:]
    refused = run("index", "shop/src", "--remove")
    assert (refused.exit_code, fake.asked) == (2, [])
    assert "--remove wants the project named, with --project or HUMMOCK_PROJECT" in refused.stderr


def _project(asked: Any) -> str:
    match asked:
        case context_pb.LearnStreamRequest():
            return asked.learn.project
        case explain_pb2.ExplainRequest():
            return asked.recall.project
        case _:
            return str(asked.project)


def _with_project(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all listed commands that take --project."""
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if any("--project" in parameter.opts for parameter in command.params):
            yield (*path, name)
        if isinstance(command, TyperGroup):
            yield from _with_project(command, (*path, name))
