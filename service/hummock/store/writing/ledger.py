"""The writes of one transaction, project by project: what they share is read and written once."""

from __future__ import annotations

from dataclasses import dataclass

import lmdb
import msgspec

from hummock.core.errors import InvalidRequest
from hummock.ports import Clock, Reply, WriteRequest, Written
from hummock.store import keys
from hummock.store.environment import Environment
from hummock.store.limits import MAX_PROJECT_BYTES, StoreLimits
from hummock.store.records import codec, operations
from hummock.store.records.vocabulary import Vocabularies
from hummock.store.writing import requests
from hummock.store.writing.shelf import Shelf
from hummock.store.writing.unit import Unit, Writing

_NEXT_PROJECT_KEY = b"next_project"


@dataclass(slots=True, kw_only=True, eq=False)
class _Page:
    """A project: its record as the last request left it, and the operations that were noted."""

    number: int
    record: codec.ProjectRecord
    shelf: Shelf
    operations: int = 0
    is_written_to: bool = False


class Ledger:
    """Applies requests to a transaction. What they put is written by `finish`; until then it waits."""

    def __init__(
        self,
        environment: Environment,
        txn: lmdb.Transaction[bytes],
        vocabularies: Vocabularies,
        clock: Clock,
        limits: StoreLimits,
    ) -> None:
        self._environment = environment
        self._tables = environment.tables
        self._txn = txn
        self._vocabularies = vocabularies
        self._clock = clock
        self._limits = limits
        self._pages: dict[str, _Page] = {}
        self.has_grown = False
        self.put_bytes = 0
        """About what the memories and messages take that were put."""

    def apply(self, project: str, request: WriteRequest[Reply], writing: Writing) -> Written[Reply]:
        """Applies a request, or finds what it was answered before. One that fails leaves no trace in what waits."""
        now = self._clock.now()
        page = self._pages.get(project) or self._open(project, now, writing)
        oldest = now - self._limits.request_kept_s
        earlier = requests.earlier(
            self._txn, self._tables, page.number, request.request_id, request.fingerprint, oldest
        )
        if earlier is not None:
            return requests.written(earlier, request.reply_type)
        record = msgspec.structs.replace(page.record, seq=page.record.seq + 1, kinds=dict(page.record.kinds))
        unit = Unit(self._environment, self._txn, page.number, record, page.shelf, writing, now)
        reply = request.apply(unit)
        writing.has_begun = True
        unit.finish()
        record.content_seq += unit.has_changed
        if request.request_id:
            kept = codec.RequestRecord(request.fingerprint, record.seq, codec.encode(reply), now)
            requests.remember(self._txn, self._tables, page.number, request.request_id, kept)
        page.record, page.is_written_to = record, True
        page.operations += unit.operations
        writing.operations = unit.operations
        self.has_grown |= unit.has_grown
        self.put_bytes += unit.put_bytes + unit.sessions.put_bytes
        return Written(seq=record.seq, reply=reply)

    def finish(self) -> None:
        """Writes what waits, forgets what is outdated, and stores the records of the projects."""
        oldest = self._clock.now() - self._limits.request_kept_s
        for page in self._pages.values():
            if not page.is_written_to:
                continue
            page.shelf.write(page.record)
            requests.trim(self._txn, self._tables, page.number, oldest, self._limits)
            most = self._limits.trimmed_entries + page.operations
            operations.trim(self._txn, self._tables, page.number, page.record, self._limits.ops_kept, most)
            self._txn.put(keys.project_number_key(page.number), codec.encode(page.record), db=self._tables.project)

    def _open(self, name: str, now: float, writing: Writing) -> _Page:
        number, record = self._project(name, now, writing)
        shelf = Shelf(self._environment, self._txn, number, self._vocabularies.of(name))
        page = self._pages[name] = _Page(number=number, record=record, shelf=shelf)
        return page

    def _project(self, name: str, now: float, writing: Writing) -> tuple[int, codec.ProjectRecord]:
        """The project's number and record; a new one is made."""
        known = self._txn.get(keys.project_name_key(name), db=self._tables.project)
        if known is not None:
            number = keys.unpack_project(known)
            return number, self._environment.project_record(self._txn, number)
        if not name or len(name.encode()) > MAX_PROJECT_BYTES:
            raise InvalidRequest("project", f"has {len(name.encode())} bytes; it must be 1 to {MAX_PROJECT_BYTES}")
        writing.has_begun = True
        number = int.from_bytes(self._txn.get(_NEXT_PROJECT_KEY, b"\x01", db=self._tables.meta), "big")
        self._txn.put(_NEXT_PROJECT_KEY, keys.pack_project(number + 1), db=self._tables.meta)
        self._txn.put(keys.project_name_key(name), keys.pack_project(number), db=self._tables.project)
        space = self._environment.space_number
        return number, codec.ProjectRecord(name=name, create_time=now, active_space=space)
