"""The LMDB environment: one directory, one process that writes, tables by name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path

import lmdb
import msgspec

from hummock.core.embedding import EmbeddingSpace
from hummock.core.errors import Unavailable
from hummock.store.errors import (
    AnalyzerTooNew,
    DatabaseDamaged,
    DirectoryUnusable,
    OpenedInOtherProcess,
    SchemaTooNew,
    SpaceDiffers,
)
from hummock.store.limits import MAX_READERS
from hummock.store.lmdb import keys, record_codec
from hummock.store.lmdb.damage import Damage
from hummock.store.lmdb.data_file import DATA_FILE, RESTORE, DataFile, require_whole
from hummock.store.lmdb.disk_faults import cause_of
from hummock.store.lmdb.lock import DirectoryLock
from hummock.store.views.stored import ProjectGone
from hummock.text.analyzer import ANALYZER_VERSION

DIRECTORY_KEY = b"directory"
_ROOM_FOR_TABLES = 64


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
        checksum: Doc to the checksums of its parts (`checksums.py`).
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
        review: Memory id to Held (`review.py`).
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
    checksum: lmdb._Database
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
    review: lmdb._Database
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
        self.damage = Damage()
        self._pid = os.getpid()
        self._is_closed = False
        with ExitStack() as opened:
            self._lock = None if is_read_only else _locked(directory)
            if self._lock is not None:
                opened.callback(self._lock.release)
            self._file = _data_file(directory, self._lock)
            opened.callback(self._file.release)
            self._env = opened.enter_context(closing(_opened(directory, map_bytes, is_read_only=is_read_only)))
            # What was put there in the meantime has not been looked at.
            self._file.require_path()
            self.tables = _tables(self._env, directory, is_read_only=is_read_only)
            self._every_table = [getattr(self.tables, field.name) for field in fields(Tables)]
            self.space_number = self._record_space()
            if self._lock is not None:
                self._lock.note_use()
            opened.pop_all()

    def reading(self) -> lmdb.Transaction[bytes]:
        """A read transaction, to be used in a `with` and ended soon: while it lives, no page it sees is reused."""
        self._require_usable()
        self._file.require_size()
        return self._env.begin()

    @contextmanager
    def answering(self) -> Iterator[lmdb.Transaction[bytes]]:
        """A read transaction for a caller. Raises: DatabaseDamaged, once it has met pages that are none."""
        try:
            with self.reading() as txn:
                yield txn
        except (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.BadTxnError) as error:
            damaged = DatabaseDamaged(self.directory, str(error))
            self.damage.of_database = damaged
            raise damaged from error

    def writing(self, parent: lmdb.Transaction[bytes] | None = None) -> lmdb.Transaction[bytes]:
        """A write transaction; leaving its `with` commits, an exception aborts.

        Raises: DataFileCut, DirectoryReplaced.
        """
        self._require_usable()
        self.require_files()
        return self._env.begin(parent=parent, write=True)

    def require_files(self) -> None:
        """Raises: DataFileCut, DirectoryReplaced: what is written would not be found again."""
        self._file.require_size()
        self._file.require_path()
        if self._lock is not None:
            self._lock.require_path()

    def touch(self, txn: lmdb.Transaction[bytes]) -> None:
        """Writes what is there, so that the transaction has something to commit."""
        txn.put(DIRECTORY_KEY, txn.get(DIRECTORY_KEY, b"", db=self.tables.meta), db=self.tables.meta)

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

    def clear_dead_readers(self) -> int:
        """Frees what processes held that died while they read; how many they were."""
        return int(self._env.reader_check())

    def oldest_reader(self) -> tuple[int, int] | None:
        """The process and the number of the oldest transaction that reads, of whatever process."""
        # Lines of a process, a thread and a transaction, which is "-" where it has none.
        rows = [line.split() for line in self._env.readers().splitlines()]
        reading = [(int(row[2]), int(row[0])) for row in rows if len(row) == 3 and row[2].isdecimal()]
        if not reading:
            return None
        transaction, pid = min(reading)
        return pid, transaction

    def free_disk_bytes(self) -> int:
        """What the disk still takes. Raises: OSError."""
        return shutil.disk_usage(self.directory).free

    def close(self) -> None:
        """Closes LMDB and lets others in; in a forked child only the copies of both."""
        self._is_closed = True
        if os.getpid() == self._pid:
            self._env.close()
        self._file.release()
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
        if self._lock is not None and recorded.schema < record_codec.SCHEMA:
            # From now on an earlier version, which would not write what this one expects, does not open it any more.
            self._record(msgspec.structs.replace(recorded, schema=record_codec.SCHEMA))
        return active.number

    def _record_first_space(self) -> int:
        space = record_codec.SpaceRecord(1, self.space.id, self.space.model, self.space.dim, self.space.token_dim)
        record = record_codec.DirectoryRecord(
            schema=record_codec.SCHEMA, active_space=space.number, spaces=(space,), analyzer=ANALYZER_VERSION
        )
        try:
            # Before the record: a directory that has one needs no second look.
            _sync_names(self.directory)
        except OSError as error:
            raise unusable(self.directory, error) from error
        self._record(record)
        return space.number

    def _record(self, record: record_codec.DirectoryRecord) -> None:
        try:
            with self._env.begin(write=True) as txn:
                txn.put(DIRECTORY_KEY, record_codec.encode(record), db=self.tables.meta)
        except lmdb.Error as error:
            raise unusable(self.directory, error) from error


def project_number(txn: lmdb.Transaction[bytes], environment: Environment, project: str) -> int | None:
    """The number of a project."""
    value = txn.get(keys.project_name_key(project), db=environment.tables.project)
    return None if value is None else keys.unpack_project(value)


def recorded_model(directory: Path, *, is_in_use: bool = False) -> str | None:
    """Name of the model whose vectors a directory holds; None when it holds none yet. Writes nothing.

    Beside a process that writes it (`is_in_use`), the pages that are read must be protected.

    Raises: DirectoryUnusable, AnalyzerTooNew, SchemaTooNew.
    """
    data = directory / DATA_FILE
    try:
        if not data.exists():
            return None
        require_whole(directory)
        # Empty when its very first start was cut short.
        if data.stat().st_size == 0:
            return None
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


def _locked(directory: Path) -> DirectoryLock:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return DirectoryLock(directory)
    except OSError as error:
        raise unusable(directory, error) from error


def _data_file(directory: Path, lock: DirectoryLock | None) -> DataFile:
    """The file that LMDB is about to map; one who writes makes it where the directory is new."""
    try:
        if lock is not None and lock.is_of_used_directory:
            require_data(directory)
        return DataFile(directory, is_read_only=lock is None)
    except OSError as error:
        raise unusable(directory, error) from error


def require_data(directory: Path) -> None:
    """An empty store in the place of a lost one would be found out when it is too late. Raises: DirectoryUnusable."""
    data = directory / DATA_FILE
    if data.exists() and data.stat().st_size:
        return
    what = "is empty" if data.exists() else "is missing"
    raise DirectoryUnusable(
        directory,
        f"it has held memories, and {DATA_FILE} {what}",
        f"restore it from a backup, or remove {directory} to begin with nothing",
    )


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
    try:
        value = txn.get(DIRECTORY_KEY, db=meta)
    except lmdb.Error as error:
        raise unusable(directory, error) from error
    if value is None:
        return None
    try:
        schema = record_codec.decode_schema(value).schema
        if schema > record_codec.SCHEMA:
            raise SchemaTooNew(directory, schema, record_codec.SCHEMA)
        record = record_codec.decode_directory(value)
    except msgspec.MsgspecError as error:
        raise DirectoryUnusable(directory, f"its record is damaged ({error})", RESTORE) from error
    if record.analyzer > ANALYZER_VERSION:
        raise AnalyzerTooNew(directory, record.analyzer, ANALYZER_VERSION)
    return record


def _active_space(record: record_codec.DirectoryRecord) -> record_codec.SpaceRecord:
    return next(space for space in record.spaces if space.number == record.active_space)


def unusable(directory: Path, error: Exception) -> DirectoryUnusable:
    """What to say of a directory that LMDB or the system does not let us use."""
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return DirectoryUnusable(directory, "it is not a directory", "choose another directory")
    cause = cause_of(error)
    if cause is not None:
        return DirectoryUnusable(directory, f"{cause[0]} ({error})", f"{cause[1]}, or choose another directory")
    if isinstance(error, lmdb.Error) and not isinstance(error, lmdb.LockError):
        return DirectoryUnusable(directory, str(error), RESTORE)
    return DirectoryUnusable(directory, str(error), "give its owner read and write access, or choose another directory")
