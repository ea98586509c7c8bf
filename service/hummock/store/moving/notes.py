"""Notes of a store on copies: the numbers that still have no name, and the projects that are copies."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hummock.store.moving.moment import Moment
from hummock.store.tables import keys, record_codec
from hummock.store.tables.engine import Engine, Transaction

_NUMBER_BYTES = 4
_COPIED = keys.copied_key(0)[:-_NUMBER_BYTES]


class CopyNote(msgspec.Struct, array_like=True, frozen=True):
    """Origin of a copied project.

    Attributes:
        seq: How far it had come. One that has come further was written to since.
        source: Where it was copied from, for people.
    """

    seq: int
    source: str


def note_of(moment: Moment, number: int) -> CopyNote | None:
    """The note of a project; None if it is no copy."""
    value = moment.value("meta", keys.copied_key(number))
    return None if value is None else msgspec.msgpack.decode(value, type=CopyNote)


def put_note(txn: Transaction, engine: Engine, number: int, note: CopyNote) -> None:
    """Notes that a project is a copy."""
    txn.put(keys.copied_key(number), record_codec.encode(note), db=engine.tables.meta)


def copying(moment: Moment) -> list[int]:
    """Numbers under which something was copied that has no name."""
    return list(_numbers(moment, keys.COPYING))


def noted(moment: Moment) -> list[int]:
    """Numbers of all projects that are, or were, copies."""
    return list(_numbers(moment, _COPIED))


def _numbers(moment: Moment, prefix: bytes) -> Iterator[int]:
    return (keys.unpack_project(key[-_NUMBER_BYTES:]) for key, _ in moment.entries("meta", prefix))
