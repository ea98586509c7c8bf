"""Backups: of one moment, small where little changed, and never taken for whole where they are not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hummock.core.memory import Filter
from hummock.store.errors import BackupDamaged, DirectoryInUse, DirectoryUnusable, SchemaTooNew
from hummock.store.lmdb.files import DirectoryLock
from hummock.store.tables import record_codec
from hummock.store.upkeep import Backups, Made, known_backups, restore
from hummock.store.upkeep.moment import digests, inspected
from tests.ports.asking import ask, ids, put
from tests.store.crashing import BATCH, batch
from tests.store.opening import opened
from tests.store.test_project_removal import fill
from tests.strategies import Entry


def made(data: Path, backups: Backups, now: float = 1.0, keep: int | None = None) -> Made:
    return backups.make(data, now, "0.0", keep, lambda done, total: None)


def restored(backups: Backups, data: Path, name: str | None = None) -> str:
    return restore(backups, data, name, lambda done, total: None)[0]


def held(data: Path) -> dict[str, str]:
    """The digest of each project."""
    with inspected(data) as snapshot:
        return {one.name: one.digest for one in digests(snapshot)}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with something in every table."""
    with opened(tmp_path / "data") as store:
        fill(store)
        fill(store, "另一个")
    return tmp_path / "data"


@contextmanager
def writing(data: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that writes batch after batch; each line of its output is one that is durable."""
    command = [sys.executable, "-m", "tests.store.crashing", str(data), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def acknowledged(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def test_a_restored_directory_holds_what_was_held(data: Path, tmp_path: Path) -> None:
    """S13, I7."""
    backups = Backups(tmp_path / "backups")
    name = made(data, backups).name
    assert restored(backups, tmp_path / "new") == name
    assert held(tmp_path / "new") == held(data)
    assert {one.name: one.seq for one in backups.manifest(name).projects} == {"p": 6, "另一个": 6}
    with opened(tmp_path / "new") as store:
        assert ids(ask(store, terms=["harbour"])) == {"a"}
        put(store, "p", Entry(id="new", words=("reef",)))
        assert ids(ask(store, terms=["harbour", "reef"])) == {"a", "new"}
    with opened(tmp_path / "new") as store:
        assert ids(ask(store, terms=["harbour", "reef"])) == {"a", "new"}


@pytest.mark.long
def test_backups_beside_a_writer_are_each_a_state_between_two_writes(tmp_path: Path) -> None:
    """S13."""
    data, backups = tmp_path / "data", Backups(tmp_path / "backups")
    known: list[int] = []
    with writing(data) as process:
        for number in range(4):
            for _ in range(12):
                last = acknowledged(process)
            known.append(last)
            made(data, backups, now=float(number))
    for name, last in zip(backups.names(), known, strict=True):
        restored(backups, tmp_path / name, name)
        with opened(tmp_path / name) as store:
            project = store.project("p")
            assert project is not None
            assert project.seq > last
            expected = {entry.id: entry.words for number in range(project.seq) for entry in batch(number)}
            found = store.page("p", Filter(), 0, 4 * project.seq * BATCH, full=True).memories
            assert {one.id for one in found} == set(expected)


def test_what_did_not_change_is_not_stored_again(data: Path, tmp_path: Path) -> None:
    backups = Backups(tmp_path / "backups")
    first = made(data, backups)
    assert made(data, backups, now=2.0).new_bytes == 0
    with opened(data) as store:
        put(store, "p", Entry(id="new", words=("reef",)))
    assert 0 < made(data, backups, now=3.0).new_bytes < first.new_bytes
    assert restored(backups, tmp_path / "first", first.name)
    assert held(tmp_path / "first") != held(data)


def test_old_backups_are_dropped_with_the_blocks_that_they_alone_had(data: Path, tmp_path: Path) -> None:
    backups = Backups(tmp_path / "backups")
    first = made(data, backups)
    with opened(data) as store:
        put(store, "p", Entry(id="new", words=("reef",)))
    last = made(data, backups, now=2.0, keep=1)
    assert (last.dropped, backups.names()) == ((first.name,), [last.name])
    blocks = {path.name for path in (tmp_path / "backups" / "blocks").glob("*/*")}
    assert blocks == set(last.manifest.blocks)
    assert [known.name for known in known_backups(data)] == [last.name]
    restored(backups, tmp_path / "new")
    assert held(tmp_path / "new") == held(data)


def test_what_somebody_else_keeps_where_backups_lie_is_no_backup_and_stays(data: Path, tmp_path: Path) -> None:
    backups = Backups(tmp_path / "backups")
    theirs = [
        tmp_path / "backups" / place
        for place in (
            "manifests/deployment.json",
            "blocks/stone/granite.png",
            "blocks/ab/notes",
            f"blocks/ab/{'0' * 64}",
        )
    ]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("theirs")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / f"cd{'0' * 62}").write_text("theirs")
    (tmp_path / "backups" / "blocks" / "cd").symlink_to(tmp_path / "shared")
    made(data, backups)
    last = made(data, backups, now=2.0, keep=1)
    assert backups.names() == [last.name]
    assert [path.read_text() for path in (*theirs, tmp_path / "shared" / f"cd{'0' * 62}")] == ["theirs"] * 5


def test_a_restore_replaces_a_link_at_the_place_of_its_file(data: Path, tmp_path: Path) -> None:
    backups, new, elsewhere = Backups(tmp_path / "backups"), tmp_path / "new", tmp_path / "elsewhere"
    made(data, backups)
    new.mkdir()
    elsewhere.write_text("theirs")
    (new / "data.mdb.part").symlink_to(elsewhere)
    restored(backups, new)
    assert held(new) == held(data)
    assert elsewhere.read_text() == "theirs"


def test_a_backup_that_was_removed_by_hand_is_known_no_longer(data: Path, tmp_path: Path) -> None:
    backups = Backups(tmp_path / "backups")
    name = made(data, backups).name
    assert [known.name for known in known_backups(data)] == [name]
    (tmp_path / "backups" / "manifests" / f"{name}.json").unlink()
    assert known_backups(data) == ()


@pytest.mark.parametrize("damage", ["altered", "cut short", "missing"])
def test_a_damaged_block_is_said_and_nothing_is_restored(data: Path, tmp_path: Path, damage: str) -> None:
    """S13."""
    backups = Backups(tmp_path / "backups")
    digest = made(data, backups).manifest.blocks[-1]
    (block,) = (tmp_path / "backups" / "blocks").glob(f"*/{digest}")
    content = block.read_bytes()
    if damage == "missing":
        block.unlink()
    else:
        block.write_bytes(content[:-1] if damage == "cut short" else content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(BackupDamaged, match=digest):
        restored(backups, tmp_path / "new")
    assert not (tmp_path / "new" / "data.mdb").exists()
    block.write_bytes(content)
    restored(backups, tmp_path / "new")
    assert held(tmp_path / "new") == held(data)


def test_a_manifest_that_was_altered_is_said(data: Path, tmp_path: Path) -> None:
    backups = Backups(tmp_path / "backups")
    name = made(data, backups).name
    path = tmp_path / "backups" / "manifests" / f"{name}.json"
    path.write_text(path.read_text().replace('"seq": 6', '"seq": 7'))
    with pytest.raises(BackupDamaged, match="altered"):
        restored(backups, tmp_path / "new")


def test_a_used_directory_is_never_restored_into(data: Path, tmp_path: Path) -> None:
    backups, other = Backups(tmp_path / "backups"), tmp_path / "other"
    made(data, backups)
    before = held(data)
    with pytest.raises(DirectoryUnusable, match="restore into a new directory"):
        restored(backups, data)
    assert held(data) == before
    other.mkdir()
    lock = DirectoryLock(other)
    with pytest.raises(DirectoryInUse):
        restored(backups, other)
    lock.release()
    restored(backups, other)
    assert held(other) == before


def test_a_backup_of_a_later_version_is_refused_before_anything_is_written(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S14."""
    backups = Backups(tmp_path / "backups")
    made(data, backups)
    monkeypatch.setattr(record_codec, "SCHEMA", record_codec.SCHEMA - 1)
    with pytest.raises(SchemaTooNew):
        restored(backups, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_backup_does_not_lie_in_what_it_is_a_backup_of(data: Path) -> None:
    with pytest.raises(DirectoryUnusable, match="choose another destination"):
        made(data, Backups(data / "backups"))


def test_what_is_no_data_directory_and_no_backup_is_said(tmp_path: Path) -> None:
    with pytest.raises(DirectoryUnusable, match="holds no data"):
        made(tmp_path / "none", Backups(tmp_path / "b"))
    with pytest.raises(DirectoryUnusable, match="holds no backup"):
        restored(Backups(tmp_path), tmp_path / "new")
