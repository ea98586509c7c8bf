"""Targets of copies: first under a number without a name, and at last, whole, under their name.

The transaction that names a copy takes the name from the project that had it. That project, and the rest of an
interrupted copy, are cleared like removed projects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from hummock.ports.writes import Claims
from hummock.store.errors import CopyDisturbed
from hummock.store.moving.renumbered import Batch
from hummock.store.tables import keys, record_codec
from hummock.store.tables.engine import Engine, Transaction
from hummock.store.upkeep.moment import Moment, ProjectDigest, digest_of
from hummock.store.write.project_removal import Remains

_NUMBER_BYTES = 4
_COPIED = keys.copied_key(0)[:-_NUMBER_BYTES]


class CopyNote(msgspec.Struct, array_like=True, frozen=True):
    """Origin of a copied project."""

    seq: int  # Its seq when it was copied; a larger one shows later writes.
    source: str  # Source store, for messages.


_decode_note = msgspec.msgpack.Decoder(CopyNote).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An existing project of the target."""

    number: int  # Its number.
    seq: int  # Its sequence number.
    create_time: float  # Creation time; for a copy that of the original.
    note: CopyNote | None  # Origin of a copy; None for other projects.

    @property
    def is_untouched(self) -> bool:
        """Whether it is an unmodified copy."""
        return self.note is not None and self.note.seq == self.seq


class Landing:
    """The target store. No other process may copy into it."""

    def __init__(self, engine: Engine, claims: Claims, source: str) -> None:
        """`claims` give the right to work in it; `source` names the source store in messages."""
        self._engine = engine
        self._claims = claims
        self._source = source

    def clear(self) -> None:
        """Clear replaced projects and the rest of interrupted copies; a service that is clearing does the rest."""
        with self._reading() as moment:
            unnamed = list(_numbers(moment, keys.COPYING))
            numbers = {number for number, _ in moment.projects().values()}
            outdated = [number for number in _numbers(moment, _COPIED) if number not in numbers]
        for number in unnamed:
            with self._writing(number=number) as txn:
                self._leave(txn, number)
                txn.delete(keys.copying_key(number), db=self._engine.tables.meta)
        if outdated:
            with self._writing() as txn:
                for number in outdated:
                    txn.delete(keys.copied_key(number), db=self._engine.tables.meta)
        remains = Remains(self._engine, self._claims)
        while remains.clear_some():
            pass

    def standings(self) -> dict[str, Standing]:
        """All existing projects by name."""
        with self._reading() as moment:
            return {name: _standing(moment, number, record) for name, (number, record) in moment.projects().items()}

    def standing(self, name: str) -> Standing | None:
        """The project with this name, or None."""
        with self._reading() as moment:
            found = moment.project(name)
            return None if found is None else _standing(moment, *found)

    def digest(self, name: str) -> ProjectDigest | None:
        """Digest of a project as it is now; None if it does not exist."""
        with self._reading(name) as moment:
            found = moment.project(name)
            return None if found is None else digest_of(moment, *found, by_any_number=True)

    def begin(self) -> int:
        """A number that has no name yet."""
        with self._writing() as txn:
            number = self._engine.next_number(txn)
            txn.put(keys.copying_key(number), b"", db=self._engine.tables.meta)
        return number

    def put(self, number: int, batch: Batch) -> None:
        """Write a batch of entries under a number."""
        with self._writing(number=number) as txn:
            for table, entries in batch.entries.items():
                with txn.cursor(getattr(self._engine.tables, table)) as cursor:
                    cursor.putmulti(entries)

    def name(
        self, number: int, record: record_codec.ProjectRecord, expected: ProjectDigest, instead_of: Standing | None
    ) -> None:
        """Give a copy its name, instead of the project that has it now. `record` is the source's.

        Raises: CopyDisturbed: the copy's digest is not the expected one, or another project has the name.
        """
        own = msgspec.structs.replace(record, active_space=self._engine.space_number)
        with self._reading(number) as moment:
            if digest_of(moment, number, own, by_any_number=True) != expected:
                raise CopyDisturbed(self._engine.place, record.name)
        tables = self._engine.tables
        with self._writing([record.name], number) as txn:
            if txn.get(keys.copying_key(number), db=tables.meta) is None:
                raise CopyDisturbed(self._engine.place, record.name)
            self._take_name(txn, record.name, instead_of)
            txn.put(keys.project_name_key(record.name), keys.pack_project(number), db=tables.project)
            txn.put(keys.project_number_key(number), record_codec.encode(own), db=tables.project)
            txn.delete(keys.copying_key(number), db=tables.meta)
            self._note(txn, number, CopyNote(seq=own.seq, source=self._source))
            self._engine.tell(txn, record.name, own.seq)

    def note_copy(self, name: str, standing: Standing) -> None:
        """Record that an existing project, found equal, is a copy."""
        note = CopyNote(seq=standing.seq, source=self._source)
        if standing.note != note:
            with self._writing([name]) as txn:
                self._note(txn, standing.number, note)

    def remove(self, name: str, standing: Standing) -> None:
        """Remove the copy of a removed project. Raises: CopyDisturbed: it has changed."""
        with self._writing([name]) as txn:
            self._take_name(txn, name, standing)
            self._engine.tell(txn, name, standing.seq + 1)

    def put_shared(self, table: str, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Write entries of no project, unless their keys exist."""
        found = getattr(self._engine.tables, table)
        if not entries:
            return
        with self._writing() as txn:
            for key, value in entries:
                if txn.get(key, db=found) is None:
                    txn.put(key, value, db=found)

    def _take_name(self, txn: Transaction, name: str, standing: Standing | None) -> None:
        """Free the name for the copy, and mark the project that had it for removal. Raises: CopyDisturbed."""
        found = Moment.of(self._engine, txn).project(name)
        if (None if found is None else (found[0], found[1].seq)) != (standing and (standing.number, standing.seq)):
            raise CopyDisturbed(self._engine.place, name)
        if standing is None:
            return
        tables = self._engine.tables
        txn.delete(keys.project_name_key(name), db=tables.project)
        txn.delete(keys.project_number_key(standing.number), db=tables.project)
        txn.delete(keys.copied_key(standing.number), db=tables.meta)
        self._leave(txn, standing.number)

    def _note(self, txn: Transaction, number: int, note: CopyNote) -> None:
        txn.put(keys.copied_key(number), record_codec.encode(note), db=self._engine.tables.meta)

    def _leave(self, txn: Transaction, number: int) -> None:
        txn.put(keys.project_prefix(number), b"", db=self._engine.tables.project_removed)

    @contextmanager
    def _reading(self, scope: str | int | None = None) -> Iterator[Moment]:
        with said(self._engine), self._engine.answering(scope) as txn:
            yield Moment.of(self._engine, txn)

    @contextmanager
    def _writing(self, projects: Sequence[str] = (), number: int | None = None) -> Iterator[Transaction]:
        with said(self._engine), self._engine.writing(projects=projects, number=number) as txn:
            yield txn


@contextmanager
def said(engine: Engine) -> Iterator[None]:
    """Turn failures of the database into errors with messages. Raises: HummockError."""
    try:
        yield
    except engine.failures as error:
        raise engine.unusable(error) from error


def _standing(moment: Moment, number: int, record: record_codec.ProjectRecord) -> Standing:
    value = moment.get("meta", keys.copied_key(number))
    note = None if value is None else _decode_note(value)
    return Standing(number=number, seq=record.seq, create_time=record.create_time, note=note)


def _numbers(moment: Moment, prefix: bytes) -> Iterator[int]:
    return (keys.unpack_project(key[-_NUMBER_BYTES:]) for key, _ in moment.entries("meta", prefix))
