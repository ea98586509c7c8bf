"""The LMDB environment: one directory, one process that writes, tables by name."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from weakref import WeakSet

import lmdb
import msgspec

from hummock.core.embedding import EmbeddingSpace
from hummock.core.errors import Unavailable
from hummock.store.errors import (
    AnalyzerTooNew,
    DirectoryInUse,
    DirectoryUnusable,
    OpenedInOtherProcess,
    SchemaTooNew,
    SpaceDiffers,
)
from hummock.store.limits import MAX_READERS
from hummock.store.lmdb import keys, record_codec
from hummock.store.views.stored import ProjectGone
from hummock.text.analyzer import ANALYZER_VERSION

LOCK_FILE = "lock"

_held: WeakSet[DirectoryLock] = WeakSet()


class DirectoryLock:
    """Holds the directory until it is released or the process ends, however it ends.

    The file stays behind; what counts is the lock on it. LMDB alone would let a second process write, unseen by what
    this one keeps in memory.
    """

    def __init__(self, directory: Path) -> None:
        """Raises: DirectoryInUse at once when another holder lives; OSError when the file cannot be made."""
        descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise DirectoryInUse(directory, holder) from None
        except OSError:
            os.close(descriptor)
            raise
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        self._descriptor = descriptor
        _held.add(self)

    def release(self) -> None:
        """Lets others in. Doing it again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def require_free(directory: Path) -> None:
    """Raises: DirectoryInUse when the directory is held now. Makes and keeps nothing."""
    try:
        descriptor = os.open(directory / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        # Nobody has held it so far, or opening it says what is wrong.
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DirectoryInUse(directory, _holder(descriptor)) from None
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "(unknown)"


def _let_go_in_child() -> None:
    # A child's copy of the descriptor would keep the directory locked after its parent's end.
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_let_go_in_child)


_DATA_FILE = "data.mdb"
DIRECTORY_KEY = b"directory"
_ROOM_FOR_TABLES = 64
_RESTORE = "restore it from a backup or choose another directory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """LMDB's sub-databases; each is named after its field.

    Attributes:
        meta: "directory" to DirectoryRecord, "next_project" to a number, "reanalysed" to Reanalysed while terms are
            made anew (`reanalyse.py`), "reached" and a hash of a name to how far a removed project had come.
        project: Name to number, number to ProjectRecord.
        project_removed: Number to nothing, of a project that is removed and left something (`project_removal.py`).
        memory: Doc to MemoryRecord.
        payload: Doc to Payload.
        vector: Chunk to float16 components.
        token: Chunk to int8 token vectors.
        by_digest: Digest of a text and chunk to nothing, where the chunk may be found by it (`text_vectors.py`).
        retired: Digest to the time at which the last such chunk was removed, and its vectors.
        retired_age: That time and digest to nothing.
        terms: Doc to its forward list (`forward_lists.py`).
        term: Term to its number in the project, little-endian u32.
        column: Doc to its row of columns (`columns.py`).
        by_id: Memory id to doc.
        by_text: Text key and doc to nothing.
        session: Session id to the number of memories it has had.
        expiry: When a memory ends, and its doc, to nothing (`expiry.py`).
        pending: Doc to nothing, where the vectors of a memory are still to be made.
        settings: Project to ProjectSettings (`record_codec.py`).
        ops: Seq and number to an operation (`op_log.py`).
        removed: Seq and number of an operation to the id of the memory that it removed.
        request: Request id to RequestRecord.
        request_age: Time and seq to request id.
        learning: Project to LearningState.
        event: Number to an event of the learning log (`learning_log.py`).
        turn: Scope to its turn (`learning_log.py`).
        usage: Scope and memory id to Usage.
        usage_scope: Memory and scope, both hashed, to the scope's hash: what of `usage` is a memory's.
        link: Memory id to Profile.
        session_record: Session id to SessionRecord (`sessions.py`).
        session_order: Whether archived, and how lately it moved, to a session's key; and the project's last number.
        session_deleted: Session to nothing, where its messages are still to be removed.
        message: Session and position to SessionMessage.
        message_id: Session and message id to position.
    """

    meta: lmdb._Database
    project: lmdb._Database
    project_removed: lmdb._Database
    memory: lmdb._Database
    payload: lmdb._Database
    vector: lmdb._Database
    token: lmdb._Database
    by_digest: lmdb._Database
    retired: lmdb._Database
    retired_age: lmdb._Database
    terms: lmdb._Database
    term: lmdb._Database
    column: lmdb._Database
    by_id: lmdb._Database
    by_text: lmdb._Database
    session: lmdb._Database
    expiry: lmdb._Database
    pending: lmdb._Database
    settings: lmdb._Database
    ops: lmdb._Database
    removed: lmdb._Database
    request: lmdb._Database
    request_age: lmdb._Database
    learning: lmdb._Database
    event: lmdb._Database
    turn: lmdb._Database
    usage: lmdb._Database
    usage_scope: lmdb._Database
    link: lmdb._Database
    session_record: lmdb._Database
    session_order: lmdb._Database
    session_deleted: lmdb._Database
    message: lmdb._Database
    message_id: lmdb._Database


class Environment:
    """LMDB under an exclusive lock. Transactions of any thread; one writes at a time.

    Beside the process that holds the lock others may read, each with an environment that is read only.
    """

    def __init__(self, directory: Path, space: EmbeddingSpace, map_bytes: int, *, is_read_only: bool = False) -> None:
        """Opens or makes the directory; one that is read only takes no lock, and is there already.

        Raises: DirectoryInUse, DirectoryUnusable, SpaceDiffers, AnalyzerTooNew, SchemaTooNew.
        """
        self.directory = directory
        self.space = space
        self.map_bytes = map_bytes
        self._pid = os.getpid()
        self._is_closed = False
        self._lock = None if is_read_only else _locked(directory)
        try:
            self._env = _opened(directory, map_bytes, is_read_only=is_read_only)
        except BaseException:
            if self._lock is not None:
                self._lock.release()
            raise
        try:
            self.tables = _tables(self._env, directory, is_read_only=is_read_only)
            self._every_table = [getattr(self.tables, field.name) for field in fields(Tables)]
            self.space_number = self._record_space()
        except BaseException:
            self.close()
            raise

    def reading(self) -> lmdb.Transaction[bytes]:
        """A read transaction, to be used in a `with` and ended soon: while it lives, no page it sees is reused."""
        self._require_usable()
        return self._env.begin()

    def writing(self, parent: lmdb.Transaction[bytes] | None = None) -> lmdb.Transaction[bytes]:
        """A write transaction; leaving its `with` commits, an exception aborts."""
        self._require_usable()
        return self._env.begin(parent=parent, write=True)

    def project_record(self, txn: lmdb.Transaction[bytes], number: int) -> record_codec.ProjectRecord:
        """What is recorded of a project. Raises: ProjectGone: it was removed."""
        value = txn.get(keys.project_number_key(number), db=self.tables.project)
        if value is None:
            raise ProjectGone
        return record_codec.decode_project(value)

    def used_bytes(self, txn: lmdb.Transaction[bytes]) -> int:
        """Bytes of the pages in use, as the transaction sees them; freed pages do not count."""
        stats = [txn.stat(table) for table in self._every_table]
        pages = sum([stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats])
        return int(pages * stats[0]["psize"])

    def last_commit(self) -> int:
        """The number of the newest transaction, of whatever process."""
        self._require_usable()
        return int(self._env.info()["last_txnid"])

    def free_disk_bytes(self) -> int:
        """What the disk still takes."""
        return shutil.disk_usage(self.directory).free

    def close(self) -> None:
        """Closes LMDB and lets others in; in a forked child only the copies of both."""
        self._is_closed = True
        if os.getpid() == self._pid:
            self._env.close()
        if self._lock is not None:
            self._lock.release()

    def _require_usable(self) -> None:
        if self._is_closed:
            raise Unavailable("the store is closed")
        # LMDB's state must not be used by two processes, and the parent goes on using it.
        if os.getpid() != self._pid:
            raise OpenedInOtherProcess(self._pid)

    def _record_space(self) -> int:
        """The number of the active space; a new directory records the given one."""
        with self._env.begin() as txn:
            recorded = _read_directory(txn, self.tables.meta, self.directory)
        if recorded is None:
            return self._record_first_space()
        active = _active_space(recorded)
        if active.id != self.space.id:
            raise SpaceDiffers(self.directory, (active.model, active.id), (self.space.model, self.space.id))
        return active.number

    def _record_first_space(self) -> int:
        space = record_codec.SpaceRecord(1, self.space.id, self.space.model, self.space.dim, self.space.token_dim)
        record = record_codec.DirectoryRecord(
            schema=record_codec.SCHEMA, active_space=space.number, spaces=(space,), analyzer=ANALYZER_VERSION
        )
        try:
            # Before the record: a directory that has one needs no second look.
            _sync_names(self.directory)
            with self._env.begin(write=True) as txn:
                txn.put(DIRECTORY_KEY, record_codec.encode(record), db=self.tables.meta)
        except (lmdb.Error, OSError) as error:
            raise unusable(self.directory, error) from error
        return space.number


def project_number(txn: lmdb.Transaction[bytes], environment: Environment, project: str) -> int | None:
    """The number of a project."""
    value = txn.get(keys.project_name_key(project), db=environment.tables.project)
    return None if value is None else keys.unpack_project(value)


def recorded_model(directory: Path, *, is_in_use: bool = False) -> str | None:
    """Name of the model whose vectors a directory holds; None when it holds none yet. Writes nothing.

    Beside a process that writes it (`is_in_use`), the pages that are read must be protected.

    Raises: DirectoryUnusable, AnalyzerTooNew, SchemaTooNew.
    """
    data = directory / _DATA_FILE
    # Empty when its very first start was cut short.
    if not data.is_file() or data.stat().st_size == 0:
        return None
    try:
        with (
            lmdb.open(str(directory), readonly=True, lock=is_in_use, max_dbs=_ROOM_FOR_TABLES) as env,
            env.begin() as txn,
        ):
            meta = env.open_db(b"meta", txn=txn, create=False)
            recorded = _read_directory(txn, meta, directory)
    except lmdb.NotFoundError:
        return None
    except (lmdb.Error, OSError) as error:
        raise unusable(directory, error) from error
    return None if recorded is None else _active_space(recorded).model


def is_full(error: lmdb.Error) -> bool:
    """Whether an error of LMDB means that the disk or the map has no room."""
    if isinstance(error, (lmdb.MapFullError, lmdb.DiskError)):
        return True
    # A write that a full disk cut short is an I/O error to LMDB.
    return getattr(error, "code", 0) in (errno.EIO, errno.EDQUOT, errno.EFBIG)


def _locked(directory: Path) -> DirectoryLock:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return DirectoryLock(directory)
    except OSError as error:
        raise unusable(directory, error) from error


def _opened(directory: Path, map_bytes: int, *, is_read_only: bool) -> lmdb.Environment:
    try:
        env = lmdb.open(
            str(directory),
            map_size=map_bytes,
            readonly=is_read_only,
            mode=0o600,
            max_dbs=_ROOM_FOR_TABLES,
            max_readers=MAX_READERS,
            lib_version=0,
        )
    except lmdb.MemoryError as error:
        raise DirectoryUnusable(
            directory, f"{map_bytes} bytes of address space are not to be had", "lower storage.map_bytes"
        ) from error
    except (lmdb.Error, OSError) as error:
        raise unusable(directory, error) from error
    # A reader that was killed would keep its pages from being reused.
    env.reader_check()
    return env


def _sync_names(directory: Path) -> None:
    """Makes the names of a new directory and its files durable; LMDB syncs no more than what is in the files."""
    path = directory.absolute()
    _sync(path)
    for parent in path.parents:
        # Those that are not ours to read were there before.
        with suppress(OSError):
            _sync(parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _tables(env: lmdb.Environment, directory: Path, *, is_read_only: bool) -> Tables:
    names = [field.name for field in fields(Tables)]
    try:
        if is_read_only:
            return Tables(**{name: env.open_db(name.encode(), create=False) for name in names})
        # Together: alone, each table that is not there yet would wait for the disk.
        with env.begin(write=True) as txn:
            return Tables(**{name: env.open_db(name.encode(), txn) for name in names})
    except lmdb.Error as error:
        raise unusable(directory, error) from error


def _read_directory(
    txn: lmdb.Transaction[bytes], meta: lmdb._Database, directory: Path
) -> record_codec.DirectoryRecord | None:
    value = txn.get(DIRECTORY_KEY, db=meta)
    if value is None:
        return None
    try:
        schema = record_codec.decode_schema(value).schema
        if schema > record_codec.SCHEMA:
            raise SchemaTooNew(directory, schema, record_codec.SCHEMA)
        record = record_codec.decode_directory(value)
    except msgspec.MsgspecError as error:
        raise DirectoryUnusable(directory, f"its record is damaged ({error})", _RESTORE) from error
    if record.analyzer > ANALYZER_VERSION:
        raise AnalyzerTooNew(directory, record.analyzer, ANALYZER_VERSION)
    return record


def _active_space(record: record_codec.DirectoryRecord) -> record_codec.SpaceRecord:
    return next(space for space in record.spaces if space.number == record.active_space)


def unusable(directory: Path, error: Exception) -> DirectoryUnusable:
    """What to say of a directory that LMDB or the system does not let us use."""
    if isinstance(error, lmdb.Error) and is_full(error):
        return DirectoryUnusable(directory, str(error), "make room on the disk")
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return DirectoryUnusable(directory, "it is not a directory", "choose another directory")
    if isinstance(error, lmdb.Error) and not isinstance(error, lmdb.LockError):
        return DirectoryUnusable(directory, str(error), _RESTORE)
    return DirectoryUnusable(directory, str(error), "give its owner read and write access, or choose another directory")
