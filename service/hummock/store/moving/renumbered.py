"""Entries of a project, rewritten for another number.

Keys begin with the project's number, and a checksum or a seal covers its entry's key. So whatever is copied is checked
in the one store, and sealed anew for its key in the other.

What a store keeps to be found again by is copied too, but for the vectors of removed texts (`text_vectors.py`): a new
store has no need of what was removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from hummock.store.errors import EntryDamaged
from hummock.store.moving.moment import Entry, Moment, size_of
from hummock.store.moving.windows import windows
from hummock.store.tables import keys, record_codec, sealed
from hummock.store.tables.sessions import clock_key
from hummock.store.upkeep.inspection import has_seals, unsealed

ALONE = (
    "term", "by_id", "by_text", "session", "pending", "settings", "review", "ops", "removed", "request", "request_age",
    "learning", "event", "turn", "usage", "usage_scope", "link", "session_record", "session_order", "message",
    "message_id",
)  # fmt: skip # a list of names
"""Tables whose entries are copied one by one. Those of memories go together (`windows.py`)."""

_OF_MESSAGES = ("message", "message_id")
_BATCH_BYTES = 4 << 20
_ENTRIES_AT_ONCE = 1024


@dataclass(slots=True)
class Batch:
    """The entries of one transaction.

    Attributes:
        entries: By table.
        memory_count: How many memories they are.
        size_bytes: Of keys and values.
    """

    entries: dict[str, list[Entry]] = field(default_factory=dict)
    memory_count: int = 0
    size_bytes: int = 0

    def add(self, entries: Mapping[str, Sequence[Entry]]) -> None:
        """Takes more of some tables."""
        for table, some in entries.items():
            self.entries.setdefault(table, []).extend(some)
            self.size_bytes += size_of(some)


def batches(moment: Moment, number: int, record: record_codec.ProjectRecord, new: int, space: int) -> Iterator[Batch]:
    """All that a project has but its record and its name.

    Args:
        moment: When, of a transaction that has entered the project.
        number: The project's in its own store.
        record: The project's.
        new: Its number where it is copied to.
        space: The number of the space there.

    Raises: MemoryDamaged, EntryDamaged.
    """
    batch = Batch()
    for window in windows(moment, number, record, new, space):
        batch.add(window.entries)
        batch.memory_count += window.memory_count
        if batch.size_bytes >= _BATCH_BYTES:
            yield batch
            batch = Batch()
    for table in ALONE:
        entries = _renumbered(moment, table, number, new)
        while some := list(islice(entries, _ENTRIES_AT_ONCE)):
            batch.add({table: some})
            if batch.size_bytes >= _BATCH_BYTES:
                yield batch
                batch = Batch()
    yield batch


def _renumbered(moment: Moment, table: str, number: int, new: int) -> Iterator[Entry]:
    """The entries of a table. Raises: EntryDamaged."""
    before, after = keys.project_prefix(number), keys.project_prefix(new)
    # Messages of removed sessions, which are cleared some time, stay behind.
    removed = tuple(key for key, _ in moment.entries("session_deleted", before)) if table in _OF_MESSAGES else ()
    for key, stored in moment.entries(table, before):
        if key.startswith(removed):
            continue
        value = unsealed(table, key, stored)
        if value is None:
            raise EntryDamaged(f"an entry of table {table}")
        if table == "request_age" or (table == "session_order" and key != clock_key(number)):
            value = after + value[len(before) :]  # a key
        moved = after + key[len(before) :]
        yield moved, sealed.seal(moved, value) if has_seals(table) else value
