"""What an engine of ordered tables does: transactions over keys and values, of whichever database keeps them.

Whatever Hummock keeps is in tables of keys and values, bytes both, in the order of the keys' bytes. An engine has
transactions that see one moment, and commits them whole and durably. Records, keys, views, ranking and all that is
recalled stand on this page and know nothing else of the database below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, overload

from hummock.core.embedding import EmbeddingSpace
from hummock.core.errors import HummockError
from hummock.ports.claims import Claim

if TYPE_CHECKING:
    # It looks through tables itself.
    from hummock.store.tables.integrity import Damage

Table: TypeAlias = Any
"""A table, as its engine knows it."""

Scope: TypeAlias = str | int | None
"""The keys a transaction reads: those of a project, by name or number, or with None those of no project."""


Foreseen: TypeAlias = Callable[[int], tuple[Mapping[str, Sequence[bytes]], Mapping[str, Sequence[bytes]]]]
"""What a write is likely to read of a project of this number: keys by the names of tables, and starts of walks."""


class Cursor(Protocol):
    """A place in a table. A write transaction's sees what that transaction has written."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *args: object) -> None: ...

    def set_range(self, key: bytes, /) -> bool:
        """Goes to the first entry whose key is not before this one; False where there is none."""

    def first(self) -> bool:
        """Goes to the first entry; False where there is none."""

    def last(self) -> bool:
        """Goes to the last entry; False where there is none."""

    def next(self) -> bool:
        """Goes to the next entry; False where there is none, and then the cursor is nowhere."""

    def prev(self) -> bool:
        """Goes to the entry before; False where there is none, and then the cursor is nowhere."""

    def key(self) -> bytes:
        """The key at the cursor; empty where it is nowhere."""

    def value(self) -> bytes:
        """The value at the cursor; empty where it is nowhere."""

    def item(self) -> tuple[bytes, bytes]:
        """Both."""

    @property
    def iternext(self) -> Callable[..., Iterator[Any]]:
        """From the entry at the cursor upwards, which goes along: `keys`, `values`, or both where neither is False."""

    @property
    def iterprev(self) -> Callable[..., Iterator[Any]]:
        """From the entry at the cursor downwards, which goes along; arguments as for `iternext`."""

    @property
    def getmulti(self) -> Callable[[Sequence[bytes]], Iterable[tuple[bytes, bytes]]]:
        """Those of some keys that are there, with their values."""

    @property
    def putmulti(self) -> Callable[[Sequence[tuple[bytes, bytes]]], object]:
        """Puts all of some entries."""


class Transaction(Protocol):
    """Reads at one moment, or writes that happen together or not at all."""

    @overload
    def get(self, key: bytes, /, *, db: Table) -> bytes | None: ...

    @overload
    def get(self, key: bytes, default: bytes, /, *, db: Table) -> bytes: ...

    def get(self, key: bytes, default: bytes | None = None, /, *, db: Table) -> bytes | None:
        """The value of a key."""

    def put(self, key: bytes, value: bytes, /, *, db: Table) -> object:
        """Gives a key a value, in the place of what it had."""

    def delete(self, key: bytes, /, *, db: Table) -> object:
        """Removes a key, if it is there."""

    def pop(self, key: bytes, /, *, db: Table) -> bytes | None:
        """Removes a key; what it had."""

    def replace(self, key: bytes, value: bytes, /, *, db: Table) -> bytes | None:
        """Gives a key a value; what it had before."""

    def cursor(self, db: Table, /) -> Cursor:
        """A cursor that is nowhere yet."""


class ChecksItsPages:
    """A transaction of a database that checks its own pages: no key of it is damaged without a word."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """All tables; each is named after its field.

    Attributes:
        meta: "directory" to DirectoryRecord, "next_project" to a number, "reanalysed" to Reanalysed while terms are
            made anew (`reanalyse.py`), "reached" and a hash of a name to how far a removed project had come, "copying"
            and "copied" with a number to what is noted of copies (`moving/landing.py`).
        project: Name to number, number to ProjectRecord.
        project_removed: Number to nothing, of a project that is removed and left something (`project_removal.py`).
        memory: Doc to MemoryRecord.
        payload: Doc to Payload.
        checksum: Doc to the checksums of its parts (`integrity.py`).
        vector: Chunk to float16 components.
        token: Chunk to int8 token vectors.
        by_digest: Digest of a text and chunk to nothing, where the chunk may be found by it (`text_vectors.py`).
        retired: Digest to the time at which the last such chunk was removed, and its vectors.
        retired_age: That time and digest to nothing.
        terms: Doc to its forward list (`forward_lists.py`).
        term: Term to its number in the project, little-endian u32.
        column: Doc to its row of columns (`row_codec.py`).
        by_id: Memory id to doc.
        by_text: Text key and doc to nothing.
        session: Session id to the number of memories it has had.
        expiry: When a memory ends, and its doc, to nothing (`expiry.py`).
        pending: Doc to nothing, where the vectors of a memory are still to be made.
        settings: Project to ProjectSettings (`record_codec.py`).
        review: Memory id to Quarantined (`review.py`).
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

    meta: Table
    project: Table
    project_removed: Table
    memory: Table
    payload: Table
    checksum: Table
    vector: Table
    token: Table
    by_digest: Table
    retired: Table
    retired_age: Table
    terms: Table
    term: Table
    column: Table
    by_id: Table
    by_text: Table
    session: Table
    expiry: Table
    pending: Table
    settings: Table
    review: Table
    ops: Table
    removed: Table
    request: Table
    request_age: Table
    learning: Table
    event: Table
    turn: Table
    usage: Table
    usage_scope: Table
    link: Table
    session_record: Table
    session_order: Table
    session_deleted: Table
    message: Table
    message_id: Table


TABLE_NAMES = tuple(field.name for field in fields(Tables))
"""In the order of their fields."""


class Engine(Protocol):
    """A database of tables. Safe to call from several threads.

    Attributes:
        tables: All of them.
        space: Of all vectors.
        space_number: What keys say of the space.
        damage: What is known to be damaged.
        failures: What the database raises where it fails a transaction.
        fatal: Those of them after which it takes nothing any more, until it is opened again.
    """

    failures: tuple[type[Exception], ...]
    fatal: tuple[type[Exception], ...]
    tables: Tables
    space: EmbeddingSpace
    space_number: int
    damage: Damage

    @property
    def place(self) -> str:
        """Where the data are, for people; it tells no secret."""

    def reading(self, scope: Scope = None) -> AbstractContextManager[Transaction]:
        """A transaction that reads, to be left soon."""

    def answering(self, scope: Scope = None) -> AbstractContextManager[Transaction]:
        """A transaction that reads for a caller. Raises: HummockError: the database cannot answer."""

    def looking(self, scope: Scope = None) -> AbstractContextManager[Transaction]:
        """One whose reads need not be of one moment, each of what comes last at least when it is asked for.

        Raises: HummockError: the database cannot answer; ProjectGone: the name may be another project's, ask again.
        """

    def writing(
        self,
        parent: Transaction | None = None,
        projects: Sequence[str] = (),
        number: int | None = None,
        foreseen: Mapping[str, Foreseen] | None = None,
    ) -> AbstractContextManager[Transaction]:
        """A transaction that writes; leaving its `with` commits, an exception aborts.

        Args:
            parent: A transaction that writes, of which this one becomes a part.
            projects: The names of all that it writes to: nobody else writes to them until it ends.
            number: The number of one that has no name any more.
            foreseen: By project what it is likely to read, so that it is read in one go. It may say too little, or too
                much; nothing happens where each read takes a moment anyway.

        Raises: HummockError: nothing can be written.
        """

    def next_number(self, txn: Transaction, /) -> int:
        """A number for a new project, which none has or had; the transaction may write under it."""

    def prefetch(self, txn: Transaction, wanted: Mapping[str, Sequence[bytes]], /) -> None:
        """Says what a transaction will `get` soon, by the names of tables, so that it is read in one go.

        All keys are of one project. Nothing happens where each takes a moment anyway.
        """

    def between(
        self, txn: Transaction, table: Table, first: bytes, end: bytes, limit: int, /
    ) -> Sequence[tuple[bytes, bytes]]:
        """At most `limit` entries from the key `first` on and before `end`, in order; nobody keeps them.

        Both keys are of one project.
        """

    def tell(self, txn: Transaction, project: str, seq: int, /) -> None:
        """Lets whoever else has the database open know of a write to a project, once it is durable."""

    def require_claim(self, txn: Transaction, claim: Claim, /) -> None:
        """What the transaction writes happens under a claim, or not at all. Raises: ClaimLost."""

    def pending_count(self, txn: Transaction, /) -> int:
        """Memories of all projects whose vectors are still to be made."""

    def count(self, txn: Transaction, table: Table, /) -> int:
        """The entries of a table, of all projects."""

    def table_bytes(self, txn: Transaction, table: Table, /) -> int:
        """About what a table's values take."""

    def used_bytes(self, txn: Transaction, /) -> int:
        """What all tables take."""

    def last_commit(self) -> int:
        """A number that moves with every transaction that writes, of whatever process."""

    def unusable(self, error: Exception, /) -> HummockError:
        """What is said at the start of a failure."""

    def close(self) -> None:
        """Lets go of the database. Transactions must have ended."""


class Room(Protocol):
    """What a store may still take, and what is said of a failure to take it. The writer's alone.

    Attributes:
        quota_bytes: Most that live data may take.
        fault: Why writes are refused, all or those that need room; None while they are stored.
    """

    quota_bytes: int
    fault: HummockError | None

    def require(self, txn: Transaction, /) -> None:
        """Raises: StorageFull, or what else is at fault: what the transaction wrote may not stay."""

    def failure_of(self, error: Exception, /) -> Exception:
        """What callers are told of a failure of the database; the error itself where there is nothing better."""


class Health(Protocol):
    """What is wrong below, for people; empty while all is well."""

    @property
    def trouble(self) -> str:
        """Why the service cannot be relied on."""

    @property
    def write_fault(self) -> str:
        """Why writes are refused."""

    def look(self) -> None:
        """Looks at all of it. The writer's alone."""
