"""The LMDB environment, an `Engine` of tables: one directory with a single writing process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from itertools import islice, takewhile
from pathlib import Path
from typing import cast

import lmdb
import msgspec

from hummock.core.embedding import EmbeddingSpace
from hummock.core.errors import Unavailable
from hummock.ports.writes import Claim
from hummock.store.errors import DatabaseDamaged, DirectoryUnusable, OpenedInOtherProcess
from hummock.store.limits import MAX_READERS
from hummock.store.lmdb.files import DATA_FILE, RESTORE, DataFile, DirectoryLock, cause_of, require_whole
from hummock.store.tables import keys, record_codec
from hummock.store.tables.engine import TABLE_NAMES, Foreseen, Scope, Table, Tables, Transaction
from hummock.store.tables.integrity import Damage
from hummock.store.tables.lookups import DIRECTORY_KEY, active_space, first_record, known_record, number_of_space

NEXT_PROJECT_KEY = b"next_project"
_ROOM_FOR_TABLES = 64


class Environment:
    """LMDB under an exclusive lock. Any thread may open transactions; one writes at a time.

    Other processes may read at the same time, each with a read-only environment.
    """

    failures: tuple[type[Exception], ...] = (lmdb.Error,)
    fatal: tuple[type[Exception], ...] = (lmdb.PanicError,)

    def __init__(self, directory: Path, space: EmbeddingSpace, map_bytes: int, *, is_read_only: bool = False) -> None:
        """Open or create the directory; a read-only environment takes no lock and needs an existing one.

        Raises: DirectoryInUse, DirectoryUnusable, SpaceDiffers, AnalyzerTooNew, SchemaTooNew.
        """
        self.directory = directory
        self.place = str(directory)
        self.space = space
        self.map_bytes = map_bytes
        self.damage = Damage()
        self.other_spaces: tuple[int, ...] = ()
        self._pid = os.getpid()
        self._is_closed = False
        with ExitStack() as opened:
            self._lock = None if is_read_only else _locked(directory)
            if self._lock is not None:
                opened.callback(self._lock.release)
            self._file = _data_file(directory, self._lock)
            opened.callback(self._file.release)
            self._env = opened.enter_context(closing(_opened(directory, map_bytes, is_read_only=is_read_only)))
            # A file put there in the meantime has not been checked.
            self._file.require_path()
            self.tables = _tables(self._env, directory, is_read_only=is_read_only)
            self._every_table = [getattr(self.tables, name) for name in TABLE_NAMES]
            self.space_number = self._record_space()
            if self._lock is not None:
                self._lock.note_use()
            opened.pop_all()

    def reading(self, scope: Scope = None) -> AbstractContextManager[Transaction]:
        """A read transaction for a short `with` block: while it is open, no page that it sees is reused."""
        self._require_usable()
        self._file.require_size()
        return cast("AbstractContextManager[Transaction]", self._env.begin())

    @contextmanager
    def answering(self, scope: Scope = None) -> Iterator[Transaction]:
        """A read transaction for a caller. Raises: DatabaseDamaged: it met invalid pages."""
        try:
            with self.reading() as txn:
                yield txn
        except (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.BadTxnError) as error:
            damaged = DatabaseDamaged(self.directory, str(error))
            self.damage.of_database = damaged
            raise damaged from error

    looking = answering

    def writing(
        self,
        parent: Transaction | None = None,
        projects: Sequence[str] = (),
        number: int | None = None,
        foreseen: Mapping[str, Foreseen] | None = None,
    ) -> AbstractContextManager[Transaction]:
        """The only write transaction; an exception aborts it. Raises: DataFileCut, DirectoryReplaced."""
        self._require_usable()
        self.require_files()
        begun = self._env.begin(parent=None if parent is None else _own(parent), write=True)
        return cast("AbstractContextManager[Transaction]", begun)

    def require_files(self) -> None:
        """Check that writes will not be lost. Raises: DataFileCut, DirectoryReplaced."""
        self._file.require_size()
        self._file.require_path()
        if self._lock is not None:
            self._lock.require_path()

    def touch(self, txn: Transaction) -> None:
        """Rewrite an unchanged record, so that the transaction has something to commit."""
        txn.put(DIRECTORY_KEY, txn.get(DIRECTORY_KEY, b"", db=self.tables.meta), db=self.tables.meta)

    def next_number(self, txn: Transaction) -> int:
        number = int.from_bytes(txn.get(NEXT_PROJECT_KEY, b"\x01", db=self.tables.meta), "big")
        txn.put(NEXT_PROJECT_KEY, keys.pack_project(number + 1), db=self.tables.meta)
        return number

    def prefetch(self, txn: Transaction, wanted: Mapping[str, Sequence[bytes]]) -> None:
        """Does nothing: a mapped file need not be read ahead."""

    @staticmethod
    def between(txn: Transaction, table: Table, first: bytes, end: bytes, limit: int) -> Sequence[tuple[bytes, bytes]]:
        with txn.cursor(table) as cursor:
            if not cursor.set_range(first):
                return []
            return list(takewhile(lambda entry: entry[0] < end, islice(cursor.iternext(), limit)))

    def tell(self, txn: Transaction, project: str, seq: int) -> None:
        """Does nothing: other readers see commits at once."""

    def require_claim(self, txn: Transaction, claim: Claim) -> None:
        """Does nothing: this process has all claims."""

    def pending_count(self, txn: Transaction) -> int:
        return self.count(txn, self.tables.pending)

    def count(self, txn: Transaction, table: Table) -> int:
        return int(_own(txn).stat(table)["entries"])

    def table_bytes(self, txn: Transaction, table: Table) -> int:
        """Bytes of the pages that a table's values take."""
        stat = _own(txn).stat(table)
        return int((stat["leaf_pages"] + stat["overflow_pages"]) * stat["psize"])

    def used_bytes(self, txn: Transaction) -> int:
        """Bytes of the pages in use, as the transaction sees them; freed pages do not count."""
        stats = [*map(_own(txn).stat, self._every_table)]
        pages = sum([stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats])
        return int(pages * stats[0]["psize"])

    def unusable(self, error: Exception) -> DirectoryUnusable:
        return unusable(self.directory, error)

    def last_commit(self) -> int:
        self._require_usable()
        return int(self._env.info()["last_txnid"])

    def clear_dead_readers(self) -> int:
        """Release the transactions of dead reader processes; returns their number."""
        return int(self._env.reader_check())

    def oldest_reader(self) -> tuple[int, int] | None:
        """Process id and number of the oldest read transaction of any process."""
        # Each line has a process, a thread and a transaction, "-" if there is none.
        rows = [line.split() for line in self._env.readers().splitlines()]
        reading = [(int(row[2]), int(row[0])) for row in rows if len(row) == 3 and row[2].isdecimal()]
        if not reading:
            return None
        transaction, pid = min(reading)
        return pid, transaction

    def free_disk_bytes(self) -> int:
        """Free bytes of the disk. Raises: OSError."""
        return shutil.disk_usage(self.directory).free

    def close(self) -> None:
        """Close LMDB and release the lock; in a forked child only the descriptors' copies."""
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
        with self._env.begin() as txn:
            recorded = _read_directory(txn, self.tables.meta, self.directory)
        if recorded is None:
            return self._record_first_space()
        number = number_of_space(recorded, self.space, self.directory, switches=self._lock is not None)
        self.other_spaces = tuple(one.number for one in recorded.spaces if one.number != number)
        if self._lock is not None and recorded.schema < record_codec.SCHEMA:
            # Keeps earlier versions, which would not write all that this one expects, from opening it.
            self._record(msgspec.structs.replace(recorded, schema=record_codec.SCHEMA))
        return number

    def _record_first_space(self) -> int:
        record = first_record(self.space)
        try:
            # Before the record: a directory with a record is not synced again.
            _sync_names(self.directory)
        except OSError as error:
            raise unusable(self.directory, error) from error
        self._record(record)
        return record.active_space

    def _record(self, record: record_codec.DirectoryRecord) -> None:
        try:
            with self._env.begin(write=True) as txn:
                txn.put(DIRECTORY_KEY, record_codec.encode(record), db=self.tables.meta)
        except lmdb.Error as error:
            raise unusable(self.directory, error) from error


def recorded_model(directory: Path, *, is_in_use: bool = False) -> str | None:
    """Name of the model of a directory's vectors; None if it has none yet. Writes nothing.

    While another process writes it (`is_in_use`), LMDB's reader lock protects the pages that are read.

    Raises: DirectoryUnusable, AnalyzerTooNew, SchemaTooNew.
    """
    recorded = recorded_directory(directory, is_in_use=is_in_use)
    return None if recorded is None else active_space(recorded).model


def recorded_directory(directory: Path, *, is_in_use: bool) -> record_codec.DirectoryRecord | None:
    """The record of a directory; None if nothing was ever stored in it. Arguments and errors as `recorded_model`."""
    data = directory / DATA_FILE
    try:
        if not data.exists():
            return None
        require_whole(directory)
        # Empty if the very first start was interrupted.
        if data.stat().st_size == 0:
            return None
        with (
            lmdb.open(str(directory), readonly=True, lock=is_in_use, max_dbs=_ROOM_FOR_TABLES) as env,
            env.begin() as txn,
        ):
            meta = env.open_db(b"meta", txn=txn, create=False)
            return _read_directory(txn, meta, directory)
    except lmdb.NotFoundError:
        return None
    except (lmdb.Error, OSError) as error:
        raise unusable(directory, error) from error


def _locked(directory: Path) -> DirectoryLock:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return DirectoryLock(directory)
    except OSError as error:
        raise unusable(directory, error) from error


def _data_file(directory: Path, lock: DirectoryLock | None) -> DataFile:
    """Open the file that LMDB is about to map; a writer creates it in a new directory."""
    try:
        if lock is not None and lock.is_of_used_directory:
            require_data(directory)
        return DataFile(directory, is_read_only=lock is None)
    except OSError as error:
        raise unusable(directory, error) from error


def require_data(directory: Path) -> None:
    """Check that a used directory has its data: a lost store must not become empty. Raises: DirectoryUnusable."""
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
    # Otherwise a killed reader would keep its pages from being reused.
    env.reader_check()
    return env


def _sync_names(directory: Path) -> None:
    """Make the names of a new directory and its files durable; LMDB syncs only file contents."""
    path = directory.absolute()
    sync_folder(path)
    for parent in path.parents:
        # Parents that this user cannot read existed before.
        with suppress(OSError):
            sync_folder(parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _tables(env: lmdb.Environment, directory: Path, *, is_read_only: bool) -> Tables:
    names = TABLE_NAMES
    try:
        if is_read_only:
            return Tables(**{name: env.open_db(name.encode(), create=False) for name in names})
        # In one transaction: otherwise each new table would wait for the disk.
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
        return known_record(value, directory)
    except msgspec.MsgspecError as error:
        raise DirectoryUnusable(directory, f"its record is damaged ({error})", RESTORE) from error


def _own(txn: Transaction) -> lmdb.Transaction[bytes]:
    return cast("lmdb.Transaction[bytes]", txn)


def unusable(directory: Path, error: Exception) -> DirectoryUnusable:
    """The error for a directory that LMDB or the system does not let us use."""
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return DirectoryUnusable(directory, "it is not a directory", "choose another directory")
    if isinstance(error, lmdb.MapFullError):
        return DirectoryUnusable(directory, "its data file may not grow any more", "raise storage.map_bytes")
    cause = cause_of(error)
    if cause is not None:
        return DirectoryUnusable(directory, f"{cause[0]} ({error})", f"{cause[1]}, or choose another directory")
    if isinstance(error, lmdb.Error) and not isinstance(error, lmdb.LockError):
        return DirectoryUnusable(directory, str(error), RESTORE)
    return DirectoryUnusable(directory, str(error), "give its owner read and write access, or choose another directory")
