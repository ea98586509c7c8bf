"""Files of saved views in `views/` in the data directory, next to the database.

A record in the directory's table, written after the file is complete, has the file's project, its seq and the digest
of each of its arrays. Files without a matching record are ignored: left by a process that ended before it wrote the
record, by another version, by a data file that was replaced, or damaged. Then the view is built from the tables.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Container, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final

import lmdb
import msgspec

from hummock.core.errors import HummockError
from hummock.store.errors import ProjectGone
from hummock.store.limits import StoreLimits
from hummock.store.lmdb.environment import Environment, sync_folder
from hummock.store.tables import keys, record_codec
from hummock.store.tables.lookups import project_record
from hummock.store.tables.reads import TableProject
from hummock.store.views.saved_view import SavedView, made_by, read_view, write_view
from hummock.store.views.view import ProjectView

SAVED_VIEWS: Final = "views"  # Name of the folder in the data directory.

_NAMES: Final = {
    "view": re.compile(r"([0-9]+)(?:\.part|-[0-9]+-[0-9a-f]{16})"),
    "graph": re.compile(r"([0-9]+)\.graph(?:\.part|\.head|-[0-9a-f]{16})"),
}
"""Names of files by kind: unfinished ones, heads, and those that end with the first _DIGITS of a digest in hex."""

_RECORD_PREFIX = b"saved_view:"
"""Prefix of the records' keys, in the table of the directory; a project's number follows."""

_DIGITS = 16
_log = logging.getLogger(__name__)

_decode_saved = msgspec.msgpack.Decoder(SavedView).decode


class SavedFiles:
    """The files of one kind, "view" or "graph". Names begin with a project's number; one thread may write at a time.

    Other files are left alone, and links are not followed.
    """

    def __init__(self, environment: Environment, kind: str) -> None:
        self.folder = environment.directory / SAVED_VIEWS
        self._environment = environment
        self._kind = kind

    def may_save(self, number: int, needed_bytes: int) -> bool:
        """Make the folder; False, and logged, if it is a link or the disk is full. Raises: OSError, HummockError."""
        # Another directory may have the path by now.
        self._environment.require_files()
        trouble = ""
        if self._environment.free_disk_bytes() < needed_bytes:
            trouble = "the disk has no room for it"
        elif self.folder.is_symlink():
            trouble = f"{self.folder} is a link"
        if trouble:
            _log.warning("the %s of project number %d is not saved: %s", self._kind, number, trouble)
            return False
        self.folder.mkdir(mode=0o700, exist_ok=True)
        return True

    def numbered(self) -> list[tuple[Path, int]]:
        """All files, each with its project's number."""
        return _numbered(self.folder, _NAMES[self._kind])

    def remove(self, *, but: Container[str] = (), number: int | None = None) -> None:
        """Remove the files of one project or all, but for some names. Raises: OSError."""
        for path, project in self.numbered():
            if number in (None, project) and path.name not in but:
                path.unlink(missing_ok=True)


@contextmanager
def created(path: Path) -> Iterator[BinaryIO]:
    """A new file for its owner alone, which is durable once the block ends. Raises: OSError."""
    path.unlink(missing_ok=True)
    # O_EXCL: opening a link at this path would write elsewhere.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def remove_saved(folder: Path) -> None:
    """Remove all files of views and graphs in a folder. Raises: OSError."""
    for path, _ in [found for names in _NAMES.values() for found in _numbered(folder, names)]:
        path.unlink(missing_ok=True)


def _numbered(folder: Path, names: re.Pattern[str]) -> list[tuple[Path, int]]:
    """The regular files with such names, each with its project's number."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    found = [(path, names.fullmatch(path.name)) for path in folder.iterdir()]
    return [(path, int(name[1])) for path, name in found if name is not None and stat.S_ISREG(path.lstat().st_mode)]


class SavedViewFiles:
    """The `SavedViews` of a data directory. Thread-safe, but only one thread may save at a time."""

    def __init__(self, environment: Environment, limits: StoreLimits, *, is_writer: bool) -> None:
        """`is_writer`: whether this process may save; if so, unused files are removed at once."""
        self._environment = environment
        self._limits = limits
        self._is_writer = is_writer
        self._files = SavedFiles(environment, "view")
        if is_writer:
            try:
                self._remove_strangers()
            except (OSError, lmdb.Error, HummockError) as error:
                _log.warning("files of views that are of no use could not be removed: %s", error)

    def view(self, stored: TableProject) -> ProjectView | None:
        # An earlier file may contain memories that are left out as damaged now.
        if self._environment.damage.of(stored.number):
            return None
        saved = self._record(stored.number)
        if saved is None:
            return None
        seq, _, ops_after = stored.progress()
        if not ops_after <= saved.seq <= seq:
            return None
        try:
            descriptor = os.open(self._path(saved), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                view = read_view(saved, descriptor, stored.settings(), self._limits)
            finally:
                os.close(descriptor)
        except OSError as error:
            _log.warning("the saved view of project number %d cannot be read: %s", stored.number, error)
            return None
        if view is None:
            _log.warning("the saved view of project number %d is damaged; it is made again", stored.number)
        return view

    def takes(self, view: ProjectView) -> bool:
        """Whether the view is large enough to be saved, and this process may."""
        return self._is_writer and len(view.columns) >= self._limits.saved_view_memories

    def is_behind(self, view: ProjectView) -> bool:
        saved = self._record(view.number)
        return saved is None or not 0 <= view.seq - saved.seq <= self._limits.ops_kept // 2

    def save(self, view: ProjectView) -> None:
        try:
            self._save(view)
        except ProjectGone:
            pass
        except (OSError, lmdb.Error, HummockError) as error:
            _log.warning("the view of project number %d could not be saved: %s", view.number, error)

    def _save(self, view: ProjectView) -> None:
        environment = self._environment
        if environment.damage.of(view.number):
            return
        if not self._files.may_save(view.number, view.nbytes + self._limits.disk_reserve_bytes):
            return
        part = self._files.folder / f"{view.number}.part"
        try:
            with created(part) as file:
                saved = write_view(view, environment.space_number, file)
            part.replace(self._path(saved))
            sync_folder(self._files.folder)
            sync_folder(environment.directory)
            with environment.writing() as txn:
                # Raises ProjectGone if the project was removed.
                project_record(txn, environment, view.number)
                txn.put(_key(view.number), record_codec.encode(saved), db=environment.tables.meta)
        finally:
            part.unlink(missing_ok=True)
        # Processes that have an earlier file mapped keep it.
        self._files.remove(but={_file_name(saved)}, number=saved.number)

    def _record(self, number: int) -> SavedView | None:
        """The record of a project's saved view; None if there is none that this version can read."""
        with self._environment.reading() as txn:
            value = txn.get(_key(number), db=self._environment.tables.meta)
        saved = None if value is None else _decoded(value)
        if saved is None or (saved.made_by, saved.number) != (made_by(), number):
            return None
        return saved if saved.space == self._environment.space_number else None

    def _path(self, saved: SavedView) -> Path:
        """Path of the file, different for every content, so that a mapped file is never overwritten."""
        return self._files.folder / _file_name(saved)

    def _remove_strangers(self) -> None:
        environment = self._environment
        with environment.reading() as txn:
            found = keys.entries(txn, environment.tables.meta, _RECORD_PREFIX)
            recorded = {keys.unpack_project(key[len(_RECORD_PREFIX) :]): _decoded(value) for key, value in found}
            projects = environment.tables.project
            gone = [one for one in recorded if txn.get(keys.project_number_key(one), db=projects) is None]
        if gone:
            with environment.writing() as txn:
                for number in gone:
                    txn.delete(_key(number), db=environment.tables.meta)
        named = {_file_name(saved) for number, saved in recorded.items() if saved and number not in gone}
        self._files.remove(but=named)


def _file_name(saved: SavedView) -> str:
    content = sha256(b"".join(one.sha256 for one in saved.arrays)).hexdigest()
    return f"{saved.number}-{saved.seq}-{content[:_DIGITS]}"


def _key(number: int) -> bytes:
    return _RECORD_PREFIX + keys.pack_project(number)


def _decoded(value: bytes) -> SavedView | None:
    """The decoded record; None if another version wrote it, whose files are not read."""
    try:
        return _decode_saved(value)
    except msgspec.MsgspecError:
        return None
