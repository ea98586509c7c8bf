"""Views of large projects that a file holds as well: the same answers, or none of the file's."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.core.settings import NO_SETTINGS
from hummock.ports.writes import ProjectRemoval
from hummock.store import WritableStore
from hummock.store.errors import DirectoryUnusable
from hummock.store.limits import PlanLimits, StoreLimits
from hummock.store.lmdb import saved_views
from hummock.store.lmdb.files import DATA_FILE
from hummock.store.lmdb.saved_views import SAVED_VIEWS, SavedViewFiles
from hummock.store.tables.reads import TableProject
from hummock.store.upkeep import purge
from hummock.store.views import saved_view, view_cache
from hummock.store.views.saved_view import SavedView, read_view
from hummock.store.views.view import ProjectView, load
from tests.ports.asking import ask, ids, put
from tests.store.answering import answers, rebuild
from tests.store.damage import cut, empty, replace_by_pipe
from tests.store.opening import EAGER, opened
from tests.strategies import Entry, delete_request, embedded_request, entries, learned_request
from tests.sure import sure

pytestmark = pytest.mark.long

SAVING = replace(EAGER, saved_view_memories=1, plans=PlanLimits(sign_rows=4, exact_rows=2, pool_rows=4))
LETTERS = "abcdefgh"

Step = Entry | list[str] | str
STEPS = st.lists(
    st.one_of(
        entries(LETTERS),
        st.lists(st.sampled_from(LETTERS), min_size=1, max_size=4),
        st.sampled_from(["rebuild", "learn", "embed"]),
    ),
    max_size=20,
)


@contextmanager
def saving(directory: Path) -> Iterator[WritableStore]:
    """A store that saves every view."""
    with opened(directory, limits=SAVING) as store:
        yield store


def put_many(store: WritableStore, count: int, prefix: str = "n", **fields: Any) -> None:
    """Writes so many memories, one after the other."""
    for number in range(count):
        put(store, "p", Entry(id=f"{prefix}{number}", **fields))


def answered(directory: Path) -> dict[str, Any]:
    """What a store over the directory answers."""
    with saving(directory) as store:
        return answers(store)


class Loads:
    """Views that were made of the tables."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        monkeypatch.setattr(view_cache, "load", self)

    def __call__(self, stored: TableProject, limits: StoreLimits) -> ProjectView:
        self.count += 1
        return load(stored, limits)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    return Loads(monkeypatch)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A directory of forty memories, closed, with their view."""
    with saving(tmp_path) as store:
        for number in range(40):
            put(store, "p", Entry(id=f"m{number}", words=("tide", f"w{number % 5}"), seeds=(number, number + 1)))
        rebuild(store)
        store.write("p", delete_request(["m3"])).result(30)
        assert len(answers(store)) > 1
    return tmp_path


def file_of(directory: Path) -> Path:
    (path,) = (directory / SAVED_VIEWS).iterdir()
    return path


def record_of(directory: Path) -> SavedView:
    """The database's record of the one saved view."""
    with saving(directory) as store:
        return sure(saved_views_of(store)._record(1))


def saved_views_of(store: WritableStore) -> SavedViewFiles:
    files = store.views._saved
    assert isinstance(files, SavedViewFiles)
    return files


def do(store: WritableStore, history: list[Step]) -> None:
    known = Entry(id="a", seeds=())
    for step in history:
        if isinstance(step, Entry):
            put(store, "p", step)
            known = step
        elif isinstance(step, list):
            store.write("p", delete_request(step)).result(30)
        elif step == "rebuild":
            rebuild(store)
        elif step == "learn" and known.id in ids(ask(store, "p", seed=3, pool=100)):
            store.write("p", learned_request(known.id, "loan")).result(30)
        elif step == "embed":
            waiting = Entry(id=known.id, words=("tide",), seeds=())
            put(store, "p", waiting)
            store.write("p", embedded_request(replace(waiting, seeds=(4, 5)))).result(30)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(STEPS, STEPS)
def test_a_saved_view_answers_as_one_that_is_made_of_the_tables(before: list[Step], after: list[Step]) -> None:
    """This holds whatever was written before it was saved, and after the start that took it."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as monkeypatch:
        directory, loads = Path(name), Loads(monkeypatch)
        with saving(directory) as store:
            do(store, [Entry(id="first"), *before])
            expected = answers(store)
        loads.count = 0
        with saving(directory) as store:
            assert answers(store) == expected
            assert loads.count == 0
            do(store, after)
            expected = answers(store)
        shutil.rmtree(directory / SAVED_VIEWS)
        assert answered(directory) == expected


def test_what_was_written_behind_it_is_followed_and_too_much_is_not(saved: Path, tmp_path: Path, loads: Loads) -> None:
    """A process that is killed saves nothing: the next one has the view of before."""
    for writes, made in ((SAVING.ops_kept, 0), (SAVING.ops_kept + 1, 1)):
        killed = tmp_path / f"killed-{writes}"
        with saving(saved) as store:
            assert answers(store)
            put_many(store, writes, f"n{writes}-", words=("tide",))
            expected = answers(store)
            (killed / SAVED_VIEWS).mkdir(parents=True)
            shutil.copy(saved / DATA_FILE, killed)
            shutil.copy(file_of(saved), killed / SAVED_VIEWS)
        loads.count = 0
        assert answered(killed) == expected
        assert loads.count == made


def test_a_view_that_is_no_longer_the_newest_is_saved_as_it_is(tmp_path: Path, loads: Loads) -> None:
    """A write may come while a view is being saved; both views then share buffers."""
    with saving(tmp_path) as store:
        for number in range(5):
            put(store, "p", Entry(id=f"m{number}", session_id="s", seeds=(number,)))
        older = sure(store.views.view("p"))
        for number in range(5, 7):
            put(store, "p", Entry(id=f"m{number}", session_id="s", seeds=(number,)))
        expected = answers(store)
        rebuild(store)
        saved_views_of(store).save(older)
    assert record_of(tmp_path).seq == older.seq == 5
    loads.count = 0
    assert answered(tmp_path) == expected
    assert loads.count == 0


def test_no_damage_of_a_file_is_overlooked(saved: Path) -> None:
    """2,000 bits of what is read, each alone; and of the room after arrays, which nobody reads."""
    record, path, random = record_of(saved), file_of(saved), Random(14)  # noqa: S311 - a seed, not a secret
    used = [(one.start + at) for one in record.arrays for at in range(one.nbytes)]
    with os.fdopen(os.open(path, os.O_RDWR), "r+b", buffering=0) as file:
        assert read_view(record, file.fileno(), NO_SETTINGS, SAVING) is not None
        for at in random.sample(used, 2_000):
            (byte,) = os.pread(file.fileno(), 1, at)
            os.pwrite(file.fileno(), bytes([byte ^ 1 << random.randrange(8)]), at)
            assert read_view(record, file.fileno(), NO_SETTINGS, SAVING) is None
            os.pwrite(file.fileno(), bytes([byte]), at)
        for one in record.arrays:
            os.pwrite(file.fileno(), random.randbytes(one.end - one.start - one.nbytes), one.start + one.nbytes)
        assert read_view(record, file.fileno(), NO_SETTINGS, SAVING) is not None
    with saving(saved) as store:
        put(store, "p", Entry(id="behind", words=("tide",)))
        expected = answers(store)
        assert "behind" in expected
    shutil.rmtree(saved / SAVED_VIEWS)
    assert answered(saved) == expected


def _lengthen(path: Path) -> None:
    os.truncate(path, path.stat().st_size + 1)


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)


def _replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("harm", [cut, _lengthen, empty, _flip, Path.unlink, replace_by_pipe, _replace_by_folder])
def test_a_file_that_is_none_is_made_again(
    saved: Path, loads: Loads, caplog: pytest.LogCaptureFixture, harm: Callable[[Path], None]
) -> None:
    expected = answered(saved)
    harm(file_of(saved))
    loads.count = 0
    with caplog.at_level(logging.WARNING), saving(saved) as store:
        assert answers(store) == expected
        store.views._maintenance.submit(int).result(30)
    assert loads.count == 1
    assert "saved view of project number 1" in caplog.text
    if harm is not _replace_by_folder:
        assert answered(saved) == expected
        assert loads.count == 1


def test_a_data_file_that_was_put_in_the_place_of_another_brings_its_own_views_or_none(
    tmp_path: Path, loads: Loads
) -> None:
    """Both have come as far; what one of them holds is not what the other does."""
    older, data = tmp_path / "older.mdb", tmp_path / "data"
    with saving(data) as store:
        put(store, "p", Entry(id="common"))
    shutil.copy(data / DATA_FILE, older)
    with saving(data) as store:
        put_many(store, SAVING.ops_kept, "here")
    shutil.copy(older, data / DATA_FILE)
    with saving(data) as store:
        assert ids(ask(store, "p", terms=["tide"], pool=100)) == {"common"}
        put_many(store, SAVING.ops_kept, "there")
        expected = {"common", *(f"there{number}" for number in range(SAVING.ops_kept))}
        assert ids(ask(store, "p", terms=["tide"], pool=100)) == expected
    loads.count = 0
    with saving(data) as store:
        assert ids(ask(store, "p", terms=["tide"], pool=100)) == expected
    assert loads.count == 0


def test_what_a_process_that_was_killed_while_it_saved_has_left_is_removed(saved: Path, loads: Loads) -> None:
    """A file that is not whole, and one that is, of which the database was not told."""
    expected = answered(saved)
    whole = file_of(saved)
    (saved / SAVED_VIEWS / "1.part").write_bytes(b"half")
    shutil.copy(whole, whole.with_name("1-99-0123456789abcdef"))
    loads.count = 0
    assert answered(saved) == expected
    assert file_of(saved) == whole
    assert loads.count == 0


def test_a_removed_project_leaves_no_file(saved: Path) -> None:
    with saving(saved) as store:
        store.remove_project("p", ProjectRemoval(request_id="", fingerprint=b"")).result(30)
    with saving(saved) as store:
        assert saved_views_of(store)._record(1) is None
        assert list((saved / SAVED_VIEWS).iterdir()) == []
        put(store, "p", Entry(id="another"))
        assert set(answers(store)) == {"another"}


def test_a_purge_leaves_none_of_what_was_removed(tmp_path: Path) -> None:
    with saving(tmp_path) as store:
        put(store, "p", Entry(id="canary-5d1e"))
        put(store, "p", Entry(id="kept"))
        assert answers(store)
    with saving(tmp_path) as store:
        store.write("p", delete_request(["canary-5d1e"])).result(30)
    assert b"canary-5d1e" in file_of(tmp_path).read_bytes()
    purge(tmp_path, 1e9, lambda done, total: None)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"canary-5d1e" in path.read_bytes()]
    assert set(answered(tmp_path)) == {"kept"}


def test_what_another_version_wrote_is_not_read(saved: Path, loads: Loads, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = answered(saved)
    loads.count = 0
    for module in (saved_view, saved_views):
        monkeypatch.setattr(module, "made_by", lambda: "another")
    for made in (1, 1):
        with saving(saved) as store:
            assert answers(store) == expected
            store.views._maintenance.submit(int).result(30)
        assert loads.count == made


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_takes_no_file_takes_nothing_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, call: str
) -> None:
    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with caplog.at_level(logging.WARNING), saving(tmp_path) as store:
        put(store, "p", Entry(id="m"))
        assert answers(store)
        rebuild(store)
        before = file_of(tmp_path)
        put_many(store, SAVING.ops_kept)
        expected = answers(store)
        store._writer.close()
        monkeypatch.setattr(*((os, "fsync", fails) if call == "fsync" else (Path, "replace", fails)))
    monkeypatch.undo()
    assert "could not be saved" in caplog.text
    assert file_of(tmp_path) == before
    assert answered(tmp_path) == expected


def test_another_directory_at_the_path_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data, moved = tmp_path / "data", tmp_path / "moved"
    with caplog.at_level(logging.WARNING), saving(data) as store:
        put(store, "p", Entry(id="m"))
        assert answers(store)
        rebuild(store)
        put_many(store, SAVING.ops_kept)
        assert answers(store)  # the view has the writes, else it would not be saved anew
        data.rename(moved)
        data.mkdir()
    assert "could not be saved" in caplog.text
    assert list(data.iterdir()) == []


STRANGERS = ("a.txt", "1", "1-2", "1-notes", "7.part.txt", "x-1-0123456789abcdef", "1-1-0123456789ABCDEF", ".hidden")


def stand_beside(folder: Path) -> dict[str, str]:
    """Files of somebody else, one of each name; their contents by name."""
    for name in STRANGERS:
        (folder / name).write_text(f"of {name}")
    return contents(folder)


def contents(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in STRANGERS}


def change_much(store: WritableStore) -> None:
    """Writes enough for the view to be saved again."""
    put_many(store, SAVING.ops_kept)
    rebuild(store)


def test_what_somebody_else_keeps_among_the_views_stays_through_starts_saves_and_purges(saved: Path) -> None:
    theirs = stand_beside(saved / SAVED_VIEWS)
    (saved / SAVED_VIEWS / "9-9-0123456789abcdef").mkdir()
    with saving(saved) as store:
        change_much(store)
    purge(saved, 1e9, lambda done, total: None)
    assert contents(saved / SAVED_VIEWS) == theirs
    assert {path.name for path in (saved / SAVED_VIEWS).iterdir()} == {*STRANGERS, "9-9-0123456789abcdef"}


def test_a_link_in_the_place_of_the_views_has_nothing_behind_it_removed_or_written(
    saved: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (saved / SAVED_VIEWS).rename(elsewhere)
    (saved / SAVED_VIEWS).symlink_to(elsewhere)
    theirs = stand_beside(elsewhere)
    (elsewhere / "7.part").write_text("theirs")
    before = {path.name for path in elsewhere.iterdir()}
    with caplog.at_level(logging.WARNING), saving(saved) as store:
        expected = answers(store)
        change_much(store)
        assert set(answers(store)) > set(expected)
    assert "is a link" in caplog.text
    assert contents(elsewhere) == theirs
    assert {path.name for path in elsewhere.iterdir()} == before
    with pytest.raises(DirectoryUnusable, match="remove the files of views behind it"):
        purge(saved, 1e9, lambda done, total: None)
    assert {path.name for path in elsewhere.iterdir()} == before


def test_a_link_in_the_place_of_a_view_that_is_being_saved_is_replaced(tmp_path: Path) -> None:
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    elsewhere.write_text("theirs")
    with saving(data) as store:
        (data / SAVED_VIEWS).mkdir(exist_ok=True)
        (data / SAVED_VIEWS / "1.part").symlink_to(elsewhere)
        put(store, "p", Entry(id="m"))
        assert answers(store)
        rebuild(store)
    assert file_of(data).is_file()
    assert elsewhere.read_text() == "theirs"


def test_a_small_project_and_a_process_that_only_reads_save_none(tmp_path: Path) -> None:
    with opened(tmp_path, limits=replace(SAVING, saved_view_memories=3)) as store:
        put(store, "p", Entry(id="a"))
        put(store, "p", Entry(id="b"))
        view = sure(store.views.view("p"))
        assert not SavedViewFiles(saved_views_of(store)._environment, SAVING, is_writer=False).takes(view)
    assert not (tmp_path / SAVED_VIEWS).exists()
