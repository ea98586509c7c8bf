"""The learning log of projects: storage format, reads and writes.

An event is stored with its time and, as the first element of its own array, a number for its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from hummock.core.learning import (
    NEVER,
    FeedbackGiven,
    Forgotten,
    Injected,
    KeywordsLearned,
    KeywordsSet,
    LearningChanges,
    LearningEvent,
    LearningState,
    LoggedEvent,
    Profile,
    SettingsChanged,
    Switched,
    TurnObserved,
    Usage,
    forgetting,
)
from hummock.ports.learning import LearningReader, LearningUnit
from hummock.store.errors import EntryDamaged
from hummock.store.tables import integrity, keys
from hummock.store.tables.engine import Table, Tables, Transaction
from hummock.store.tables.integrity import Damage
from hummock.store.tables.record_codec import Fields, decode_array, encode

_EVENTS: Final[dict[int, Fields[Any]]] = {
    1: Fields(TurnObserved),
    2: Fields(KeywordsLearned),
    3: Fields(Injected),
    4: Fields(KeywordsSet),
    5: Fields(Switched),
    6: Fields(SettingsChanged),
    7: Fields(Forgotten),
    8: Fields(FeedbackGiven),
}
_NUMBERS: Final = {fields.kind: number for number, fields in _EVENTS.items()}
_STATE = Fields(LearningState)

Value = TypeVar("Value")

encode_profile = encode
decode_profile = msgspec.msgpack.Decoder(Profile).decode


def encode_event(time: float, event: LearningEvent) -> bytes:
    """Encode an event and its time in Unix seconds; its number in the project is in the key."""
    number = _NUMBERS[type(event)]
    return encode((time, (number, *_EVENTS[number].values(event))))


def decode_event(number: int, value: bytes) -> LoggedEvent:
    """Inverse of `encode_event`."""
    time, (kind, *values) = decode_array(value)[:2]
    return LoggedEvent(number=number, time=time, event=_EVENTS[kind].value(values))


def encode_state(state: LearningState) -> bytes:
    """Encode a project's learning state."""
    return encode(_STATE.values(state))


@lru_cache(64)
def decode_state(value: bytes) -> LearningState:
    """Inverse of `encode_state`; kept, as each turn reads it in both of its transactions."""
    return _STATE.value(decode_array(value))


def decode_turn(value: bytes) -> int:
    """Inverse of `encode_turn`."""
    turn: int = decode_array(value)[0]
    return turn


def encode_usage(usage: Usage) -> bytes:
    """Encode a memory's usage in a scope."""
    return encode((usage.frequency, usage.last_sent_turn, usage.counted_turn))


def decode_usage(value: bytes) -> Usage:
    """Inverse of `encode_usage`."""
    # Inlined for speed: a turn reads all usage of its scope.
    frequency, last_sent_turn, counted_turn = (*decode_array(value), NEVER)[:3]
    return Usage(frequency=frequency, last_sent_turn=last_sent_turn, counted_turn=counted_turn)


_USAGE, _PROFILE, _TURN = "how a scope used a memory", "what was learnt of a memory", "the turn of a scope"
_STATE_OF = "the state of a project's learning"


def event_of(key: bytes, stored: bytes) -> LoggedEvent:
    """Decode a stored event. Raises: EntryDamaged."""
    number = keys.doc_of_doc_key(key)
    return integrity.decoded(
        f"event {number} of the learning log", key, stored, lambda value: decode_event(number, value)
    )


class StoredLearning(LearningReader):
    """One project's learning data as a transaction sees them.

    Usage and profiles are derived from the log: damaged ones are recorded and treated as missing, so that turns
    continue. Other damage is an error.
    """

    def __init__(self, txn: Transaction, tables: Tables, damage: Damage, number: int) -> None:
        """`damage` collects damaged entries; `number` is the project's."""
        self._txn = txn
        self._tables = tables
        self._damage = damage
        self._number = number
        self._state: LearningState | None = None

    def state(self) -> LearningState:
        if self._state is None:
            self._state = self._stored_state()
        return self._state

    def version(self) -> tuple[int, int]:
        return self._number, self.state().events

    def turn(self, scope: str) -> int | None:
        key = keys.name_key(self._number, scope)
        value = self._txn.get(key, db=self._tables.turn)
        if value is None:
            self._require_absent(self._tables.turn, key, _TURN)
            return None
        return integrity.decoded(_TURN, key, value, decode_turn)

    def used(self, scope: str, memory_id: str) -> Usage | None:
        key = keys.usage_key(self._number, keys.hashed(scope), memory_id)
        value = self._txn.get(key, db=self._tables.usage)
        return None if value is None else self._derived(_USAGE, key, value, decode_usage)

    def profile(self, memory_id: str) -> Profile | None:
        key = keys.name_key(self._number, memory_id)
        value = self._txn.get(key, db=self._tables.link)
        if value is not None:
            return self._derived(_PROFILE, key, value, decode_profile)
        if integrity.is_lost(self._txn, self._tables.link, key):
            self._damage.note_entry(_PROFILE, key)
        return None

    def usage(self, scope: str) -> dict[str, Usage]:
        prefix = keys.usage_key(self._number, keys.hashed(scope), "")
        found = integrity.sound(self._txn, self._tables.usage, prefix, _USAGE, decode_usage, self._damage)
        return {keys.memory_of_usage_key(key): usage for key, usage in found}

    def profiles(self) -> Iterator[tuple[str, Profile]]:
        prefix = keys.project_prefix(self._number)
        found = integrity.sound(self._txn, self._tables.link, prefix, _PROFILE, decode_profile, self._damage)
        return ((keys.name_in_key(key), profile) for key, profile in found)

    def scopes(self) -> Iterator[tuple[str, int]]:
        prefix = keys.project_prefix(self._number)
        found = integrity.sound(self._txn, self._tables.turn, prefix, _TURN, decode_turn, self._damage)
        return ((keys.name_in_key(key), turn) for key, turn in found)

    def events(self, after: int, limit: int) -> list[LoggedEvent]:
        """At most `limit` events after number `after` (0: from the first); damaged ones are noted and left out."""
        found: list[LoggedEvent] = []
        numbers = range(after + 1, min(after + limit, self.state().events) + 1)
        wanted = [keys.event_key(self._number, number) for number in numbers]
        with self._txn.cursor(self._tables.event) as cursor:
            stored = dict(cursor.getmulti(wanted))
        for number, key in zip(numbers, wanted, strict=True):
            try:
                found.append(event_of(key, stored.get(key, b"")))
            except EntryDamaged:
                self._damage.note_entry(f"event {number} of a learning log", key)
        return found

    def _stored_state(self) -> LearningState:
        key = keys.project_prefix(self._number)
        value = self._txn.get(key, db=self._tables.learning)
        if value is None:
            self._require_absent(self._tables.learning, key, _STATE_OF)
            return LearningState()
        return integrity.decoded(_STATE_OF, key, value, decode_state)

    def _derived(self, what: str, key: bytes, stored: bytes, decode: Callable[[bytes], Value]) -> Value | None:
        try:
            return integrity.decoded(what, key, stored, decode)
        except EntryDamaged:
            self._damage.note_entry(what, key)
            return None

    def _require_absent(self, table: Table, key: bytes, what: str) -> None:
        """Check that a missing key was never stored. Raises: EntryDamaged: it is lost."""
        if integrity.is_lost(self._txn, table, key):
            raise EntryDamaged(what)


class LearningWriting(StoredLearning, LearningUnit):
    """Learning within a unit of work. `has_grown`: anything but removals was written, which needs space."""

    def __init__(
        self,
        txn: Transaction,
        tables: Tables,
        damage: Damage,
        number: int,
        now: float,
        set_learned: Callable[[str, Sequence[str]], None],
        set_verdicts: Callable[[str], None],
    ) -> None:
        """Arguments as for `StoredLearning`; `now` is the time of events in Unix seconds.

        `set_learned` gets the learned words of a memory when they change; `set_verdicts` its id, after its profile is
        stored with changed verdicts.
        """
        super().__init__(txn, tables, damage, number)
        self._now = now
        self._set_learned = set_learned
        self._set_verdicts = set_verdicts
        self.has_grown = False

    def append(self, event: LearningEvent, changes: LearningChanges, time: float | None = None) -> None:
        self.has_grown |= not isinstance(event, Forgotten)
        number = self._number
        logged = encode_event(self._now if time is None else time, event)
        self._put(self._tables.event, keys.event_key(number, changes.state.events), logged)
        self._put(self._tables.learning, keys.project_prefix(number), encode_state(changes.state))
        for scope, turn in changes.turns.items():
            self._put(self._tables.turn, keys.name_key(number, scope), encode((turn,)))
        hashes = {scope: keys.hashed(scope) for scope in {scope for scope, _ in changes.usage}}
        for (scope, memory_id), usage in changes.usage.items():
            self._put_usage(hashes[scope], memory_id, usage)
        for memory_id, profile in changes.profiles.items():
            known = self.profile(memory_id) or Profile()
            self._put(self._tables.link, keys.name_key(number, memory_id), encode_profile(profile))
            if profile.words != known.words:
                self._set_learned(memory_id, profile.words)
            if profile.voices != known.voices:
                self._set_verdicts(memory_id)
        for memory_id in changes.forgotten:
            self._forget(memory_id)
        self._state = changes.state

    def rewrite(self, number: int, event: LearningEvent) -> None:
        key = keys.event_key(self._number, number)
        time = event_of(key, self._txn.get(key, b"", db=self._tables.event)).time
        self._put(self._tables.event, key, encode_event(time, event))

    def drop_scope(self, scope: str) -> None:
        hashed = keys.hashed(scope)
        for memory_id in self.usage(scope):
            self._txn.delete(keys.usage_key(self._number, hashed, memory_id), db=self._tables.usage)
            self._txn.delete(keys.usage_scope_key(self._number, memory_id, hashed), db=self._tables.usage_scope)
        self._txn.delete(keys.name_key(self._number, scope), db=self._tables.turn)

    def forget(self, memory_id: str, *, is_entry: bool) -> None:
        """Forget a removed memory; logs no event if nothing can be known of it.

        An entry gets one if the log has any event: a later entry with its id must not learn from turns of this one.
        """
        may_be_named = is_entry and self.state().events > 0
        is_known = self._txn.get(keys.name_key(self._number, memory_id), db=self._tables.link) is not None
        if may_be_named or is_known or next(self._scopes_of(memory_id), None) is not None:
            ids = (memory_id,)
            self.append(Forgotten(memory_ids=ids), forgetting(self.state(), ids))

    def _put_usage(self, scope: bytes, memory_id: str, usage: Usage) -> None:
        key = keys.usage_key(self._number, scope, memory_id)
        if self._txn.replace(key, integrity.seal(key, encode_usage(usage)), db=self._tables.usage) is None:
            self._txn.put(keys.usage_scope_key(self._number, memory_id, scope), scope, db=self._tables.usage_scope)

    def _put(self, table: Table, key: bytes, value: bytes) -> None:
        self._txn.put(key, integrity.seal(key, value), db=table)

    def _forget(self, memory_id: str) -> None:
        for key, scope in list(self._scopes_of(memory_id)):
            self._txn.delete(key, db=self._tables.usage_scope)
            self._txn.delete(keys.usage_key(self._number, scope, memory_id), db=self._tables.usage)
        self._txn.delete(keys.name_key(self._number, memory_id), db=self._tables.link)

    def _scopes_of(self, memory_id: str) -> Iterator[tuple[bytes, bytes]]:
        prefix = keys.usage_scope_key(self._number, memory_id, b"")
        return keys.entries(self._txn, self._tables.usage_scope, prefix)
