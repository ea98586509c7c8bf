"""`hummock copy`, as who runs it sees it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hummock.cli.main import app
from hummock.cli.save import INTERRUPTED
from hummock.store.lmdb.files import DirectoryLock
from hummock.store.moving.landing import Landing
from tests.ports.asking import put
from tests.store.opening import opened, opened_shared
from tests.store.test_fsck import altered
from tests.store.test_project_removal import fill
from tests.strategies import Entry

pytestmark = pytest.mark.long


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with opened(tmp_path / "data") as store:
        fill(store)
        fill(store, "另一个")
    return tmp_path / "data"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["copy", *map(str, arguments)])


def test_a_store_is_copied_there_and_back(data: Path, database: str, tmp_path: Path) -> None:
    there = run(data, database)
    assert there.exit_code == 0, there.output
    assert f"has what {data} has: 44 memories of 2 projects, all digests equal" in there.stdout
    assert "p: copied, 22 memories, seq 6" in there.stderr
    assert run(database, tmp_path / "new").exit_code == 0
    again = run(database, tmp_path / "new")
    assert again.exit_code == 0
    assert "p: equal, 22 memories" in again.stderr
    assert CliRunner().invoke(app, ["fsck", "--data", str(tmp_path / "new")]).exit_code == 0


def test_a_copy_speaks_json(data: Path, tmp_path: Path) -> None:
    found = json.loads(run(data, tmp_path / "new", "--json").stdout)
    assert {name: found[name] for name in ("from", "to", "whole", "moved", "others")} == {
        "from": str(data), "to": str(tmp_path / "new"), "whole": True, "moved": [], "others": [],
    }  # fmt: skip # a list of facts
    assert [(one["project"], one["outcome"], one["memories"]) for one in found["projects"]] == [
        ("p", "copied", 22),
        ("另一个", "copied", 22),
    ]
    again = json.loads(run(data, tmp_path / "new", "--json").stdout)
    assert [one["digest"] for one in again["projects"]] == [one["digest"] for one in found["projects"]]


def test_what_is_refused_ends_with_one_and_the_way_out(data: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    with opened(new) as store:
        put(store, "p", Entry(id="own"))
        put(store, "other", Entry(id="own"))
    lock = DirectoryLock(new)
    refused = run(data, new)
    assert (refused.exit_code, "stop that process" in refused.stderr) == (1, True)
    lock.release()
    refused = run(data, new)
    assert (refused.exit_code, "--replace" in refused.stderr) == (1, True)
    replaced = run(data, new, "--replace")
    assert replaced.exit_code == 0, replaced.output
    assert "p: replaced" in replaced.stderr
    assert "no copies: other" in replaced.stderr
    for source in (tmp_path / "none", new):
        assert run(source, new).exit_code == 1


def test_a_copy_that_is_not_whole_ends_with_one(data: Path, tmp_path: Path) -> None:
    altered(data, lambda tables: tables.garble("payload"))
    found = run(data, tmp_path / "new", "--json")
    assert found.exit_code == 1
    assert "project p is damaged" in found.stderr
    said = json.loads(found.stdout)
    assert (said["whole"], [one["outcome"] for one in said["projects"]]) == (False, ["damaged", "copied"])


def test_what_moves_all_the_time_is_named(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened_shared(database) as shared:
        put(shared, "p", Entry(id="a"))
        name = Landing.name

        def moving(landing: Landing, *given: Any) -> None:
            name(landing, *given)
            put(shared, "p", Entry(id="b"))

        monkeypatch.setattr(Landing, "name", moving)
        found = run(database, tmp_path / "new")
    assert found.exit_code == 1
    assert "written to again after they were copied: p" in found.stderr
    assert "not all that is there now" in found.stdout


def test_ctrl_c_says_what_is_left(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(landing: Landing, *given: Any) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Landing, "name", interrupted)
        found = run(data, tmp_path / "new")
    assert found.exit_code == INTERRUPTED
    assert "the same command goes on with the rest" in found.stderr
    assert run(data, tmp_path / "new").exit_code == 0


@pytest.mark.parametrize("end", ["postgresql://me:geheim@127.0.0.1:1/x", "postgresql://me:geheim@host:port/x?=y"])
def test_a_password_is_never_printed(data: Path, end: str) -> None:
    for arguments in ((data, end), (end, data)):
        found = run(*arguments)
        assert found.exit_code == 1
        assert "geheim" not in found.output + found.stderr
        assert "Traceback" not in found.stderr


def test_directories_need_no_package_of_postgresql(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("psycopg", "hummock.store.postgresql"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setattr("hummock.cli.save.require_packages", missing)
    assert run(data, tmp_path / "new").exit_code == 0
    refused = run(data, "postgresql://host/x")
    assert refused.exit_code == 1
    assert "pip install 'hummock[postgresql]'" in refused.stderr


def missing(*names: str) -> None:
    raise ModuleNotFoundError(f"No module named {names[0]!r}", name=names[0])
