"""Interface of an engine of ordered tables: transactions over keys and values, in any database.

All of Hummock's data are in tables of keys and values, both bytes, in the order of the keys' bytes. An engine has
transactions that see one moment and commit atomically and durably. Records, views and ranking use only this interface
and nothing else of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, overload

from hummock.core.embedding import EmbeddingSpace
from hummock.core.errors import HummockError
from hummock.ports.writes import Claim

if TYPE_CHECKING:
    # Would be a circular import: that module reads tables itself.
    from hummock.store.tables.integrity import Damage

Table: TypeAlias = Any  # A table handle of the engine.

Scope: TypeAlias = str | int | None
"""The keys a transaction reads: those of a project, by name or number, or with None those of no project."""


Foreseen: TypeAlias = Callable[[int], tuple[Mapping[str, Sequence[bytes]], Mapping[str, Sequence[bytes]]]]
"""Returns the likely reads of a write to this project number, by table: keys, and start keys of ordered reads."""


class Cursor(Protocol):
    """A position in a table. A write transaction's cursor sees that transaction's writes."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *args: object) -> None: ...

    def set_range(self, key: bytes, /) -> bool:
        """Move to the first entry with this key or a later one; False if there is none."""

    def first(self) -> bool:
        """Move to the first entry; False if there is none."""

    def last(self) -> bool:
        """Move to the last entry; False if there is none."""

    def next(self) -> bool:
        """Move to the next entry; False if there is none, which leaves the cursor unpositioned."""

    def prev(self) -> bool:
        """Move to the previous entry; False if there is none, which leaves the cursor unpositioned."""

    def key(self) -> bytes:
        """The key at the cursor; empty if it is unpositioned."""

    def value(self) -> bytes:
        """The value at the cursor; empty if it is unpositioned."""

    def item(self) -> tuple[bytes, bytes]:
        """The key and the value at the cursor."""

    @property
    def iternext(self) -> Callable[..., Iterator[Any]]:
        """Iterate forward from the cursor, moving it: `keys`, `values`, or both if neither is False."""

    @property
    def iterprev(self) -> Callable[..., Iterator[Any]]:
        """Iterate backward from the cursor, moving it; arguments as for `iternext`."""

    @property
    def getmulti(self) -> Callable[[Sequence[bytes]], Iterable[tuple[bytes, bytes]]]:
        """The existing ones of some keys, with their values."""

    @property
    def putmulti(self) -> Callable[[Sequence[tuple[bytes, bytes]]], object]:
        """Put all of some entries."""


class Transaction(Protocol):
    """Reads at one moment, or atomic writes."""

    @overload
    def get(self, key: bytes, /, *, db: Table) -> bytes | None: ...

    @overload
    def get(self, key: bytes, default: bytes, /, *, db: Table) -> bytes: ...

    def get(self, key: bytes, default: bytes | None = None, /, *, db: Table) -> bytes | None:
        """The value of a key, or `default`."""

    def put(self, key: bytes, value: bytes, /, *, db: Table) -> object:
        """Set the value of a key."""

    def delete(self, key: bytes, /, *, db: Table) -> object:
        """Remove a key, if present."""

    def pop(self, key: bytes, /, *, db: Table) -> bytes | None:
        """Remove a key and return its value, or None."""

    def replace(self, key: bytes, value: bytes, /, *, db: Table) -> bytes | None:
        """Set the value of a key and return the previous one, or None."""

    def cursor(self, db: Table, /) -> Cursor:
        """A new, unpositioned cursor."""


class ChecksItsPages:
    """Marks transactions of a database that checks its own pages, so that no damaged key goes unnoticed."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """All tables; each is named after its field."""

    # "directory" to DirectoryRecord, "next_project" to a number, "reanalysed" to Reanalysed while terms are updated
    # (`reanalyse.py`), "reached" and a hash of a name to the last position of a removed project, "copying" and "copied"
    # with a number to the state of copies (`moving/landing.py`).
    meta: Table
    project: Table  # Name to number, number to ProjectRecord.
    # Number to nothing, for a removed project with entries left to clear (`project_removal.py`).
    project_removed: Table
    memory: Table  # Doc to MemoryRecord.
    payload: Table  # Doc to Payload.
    checksum: Table  # Doc to the checksums of its parts (`integrity.py`).
    vector: Table  # Chunk to float16 components.
    token: Table  # Chunk to int8 token vectors.
    by_digest: Table  # Digest of a text and chunk to nothing, for chunks with a known digest (`text_vectors.py`).
    retired: Table  # Digest to the time at which the last such chunk was removed, and its vectors.
    retired_age: Table  # That time and digest to nothing.
    terms: Table  # Doc to its forward list (`forward_lists.py`).
    term: Table  # Term to its number in the project, little-endian u32.
    column: Table  # Doc to its row of columns (`row_codec.py`).
    by_id: Table  # Memory id to doc.
    by_text: Table  # Text key and doc to nothing.
    session: Table  # Session id to the number of memories it has had.
    expiry: Table  # Expiry time of a memory and its doc to nothing (`lookups.py`).
    pending: Table  # Doc to nothing, for a memory without vectors yet.
    settings: Table  # Project to ProjectSettings (`record_codec.py`).
    review: Table  # Memory id to Quarantined (`review.py`).
    ops: Table  # Seq and number to an operation (`op_log.py`).
    removed: Table  # Seq and number of an operation to the id of the memory that it removed.
    request: Table  # Request id to RequestRecord.
    request_age: Table  # Time and seq to request id.
    learning: Table  # Project to LearningState.
    event: Table  # Number to an event of the learning log (`learning_log.py`).
    turn: Table  # Scope to its turn (`learning_log.py`).
    usage: Table  # Scope and memory id to Usage.
    usage_scope: Table  # Memory and scope, both hashed, to the scope's hash: finds the `usage` of a memory.
    link: Table  # Memory id to Profile.
    session_record: Table  # Session id to SessionRecord (`sessions.py`).
    session_order: Table  # Archived flag and time rank to a session's key; also the project's last number.
    session_deleted: Table  # Session to nothing, while its messages are still to be removed.
    message: Table  # Session and position to SessionMessage.
    message_id: Table  # Session and message id to position.


TABLE_NAMES = tuple(field.name for field in fields(Tables))  # Table names in the order of the fields.


class Engine(Protocol):
    """A database of tables. Thread-safe."""

    failures: tuple[type[Exception], ...]  # Exceptions that the database raises for a failed transaction.
    fatal: tuple[type[Exception], ...]  # Those after which it accepts no transaction until it is opened again.
    tables: Tables  # All tables.
    space: EmbeddingSpace  # Embedding space of all vectors.
    space_number: int  # Number of the space in keys.
    other_spaces: tuple[int, ...]  # Numbers of spaces whose vectors lie beside those in use (`write/spaces.py`).
    damage: Damage  # Known damage.

    @property
    def place(self) -> str:
        """Location of the data, for messages; contains no secret."""

    def reading(self, scope: Scope = None) -> AbstractContextManager[Transaction]:
        """A read transaction, to be closed soon."""

    def answering(self, scope: Scope = None) -> AbstractContextManager[Transaction]:
        """A read transaction for a caller. Raises: HummockError: the database cannot answer."""

    def looking(self, scope: Scope = None) -> AbstractContextManager[Transaction]:
        """A transaction whose reads may be of different moments, each at least as new as its call.

        Raises: HummockError: the database cannot answer; ProjectGone: the name may be a new project's, try again.
        """

    def writing(
        self,
        parent: Transaction | None = None,
        projects: Sequence[str] = (),
        number: int | None = None,
        foreseen: Mapping[str, Foreseen] | None = None,
    ) -> AbstractContextManager[Transaction]:
        """A write transaction; leaving its `with` block commits, an exception aborts.

        Args:
            parent: A write transaction in which this one is nested.
            projects: Names of all projects it writes to, locked until it ends.
            number: The number of a project without a name.
            foreseen: Likely reads by project, to be fetched at once. They may be too few or too many, and are ignored
                by an engine with cheap reads.

        Raises: HummockError: nothing can be written.
        """

    def next_number(self, txn: Transaction, /) -> int:
        """A never used number for a new project; the transaction may write under it."""

    def prefetch(self, txn: Transaction, wanted: Mapping[str, Sequence[bytes]], /) -> None:
        """Fetch at once keys of one project that a transaction will `get` soon, by table, where reads are costly."""

    def between(
        self, txn: Transaction, table: Table, first: bytes, end: bytes, limit: int, /
    ) -> Sequence[tuple[bytes, bytes]]:
        """At most `limit` entries from the key `first` on and before `end`, in order, not cached; of one project."""

    def tell(self, txn: Transaction, project: str, seq: int, /) -> None:
        """Notify other processes that have the database open of a write to a project, once it is durable."""

    def require_claim(self, txn: Transaction, claim: Claim, /) -> None:
        """Let the transaction commit only under this claim. Raises: ClaimLost."""

    def pending_count(self, txn: Transaction, /) -> int:
        """Number of memories without vectors in all projects."""

    def count(self, txn: Transaction, table: Table, /) -> int:
        """Number of entries of a table in all projects."""

    def table_bytes(self, txn: Transaction, table: Table, /) -> int:
        """Approximate size of a table's values."""

    def used_bytes(self, txn: Transaction, /) -> int:
        """Size of all tables."""

    def last_commit(self) -> int:
        """A number that changes with every write transaction of any process."""

    def unusable(self, error: Exception, /) -> HummockError:
        """The error to report for a failure at the start."""

    def close(self) -> None:
        """Release the database. Transactions must have ended."""


class Room(Protocol):
    """Space left in a store, and the errors for failed writes. Used by the writer only."""

    quota_bytes: int  # Upper bound on the size of live data.
    fault: HummockError | None  # Why all writes, or those that need space, are refused; None while they are accepted.

    def require(self, txn: Transaction, /) -> None:
        """Check that the transaction may be committed. Raises: StorageFull, or another fault of the disk."""

    def failure_of(self, error: Exception, /) -> Exception:
        """The error to report for a failure of the database; the failure itself by default."""


class Health(Protocol):
    """Messages about faults of the engine; empty if there are none."""

    @property
    def trouble(self) -> str:
        """The fault that makes the service unreliable."""

    @property
    def write_fault(self) -> str:
        """Why writes are refused."""

    def look(self) -> None:
        """Check for faults. Used by the writer only."""
