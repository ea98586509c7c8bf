"""The learning of projects: how it lies in the store, and how it is read and written.

An event is stored with its time and, as the first element of its own array, a number that says what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import lmdb
import msgspec

from hummock.core.learning import (
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
from hummock.store.lmdb import keys, record_codec
from hummock.store.lmdb.environment import Tables
from hummock.store.lmdb.record_codec import Fields, decode_array, encode

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

encode_profile = encode
decode_profile = msgspec.msgpack.Decoder(Profile).decode


def encode_event(time: float, event: LearningEvent) -> bytes:
    """An event that happened at this time, in Unix seconds; its number in the project stands in the key."""
    number = _NUMBERS[type(event)]
    return encode((time, (number, *_EVENTS[number].values(event))))


def decode_event(number: int, value: bytes) -> LoggedEvent:
    """Inverse of `encode_event`."""
    time, (kind, *values) = decode_array(value)[:2]
    return LoggedEvent(number=number, time=time, event=_EVENTS[kind].value(values))


def encode_state(state: LearningState) -> bytes:
    """What concerns a whole project."""
    return encode(_STATE.values(state))


def decode_state(value: bytes) -> LearningState:
    """Inverse of `encode_state`."""
    return _STATE.value(decode_array(value))


def encode_turn(turn: int) -> bytes:
    """A scope's newest turn; the scope stands in the key."""
    return encode((turn,))


def decode_turn(value: bytes) -> int:
    """Inverse of `encode_turn`."""
    turn: int = decode_array(value)[0]
    return turn


def encode_usage(usage: Usage) -> bytes:
    """A memory's usage in a scope."""
    return encode((usage.frequency, usage.last_sent_turn))


def decode_usage(value: bytes) -> Usage:
    """Inverse of `encode_usage`."""
    # By hand: a turn reads all that its scope has used.
    frequency, last_sent_turn = decode_array(value)[:2]
    return Usage(frequency=frequency, last_sent_turn=last_sent_turn)


class StoredRows:
    """What a transaction sees of one project's learning."""

    def __init__(self, txn: lmdb.Transaction[bytes], tables: Tables, number: int) -> None:
        """Args are the transaction, the store's tables and the project's number."""
        self._txn = txn
        self._tables = tables
        self._number = number

    def state(self) -> LearningState:
        """What concerns the whole project."""
        value = self._txn.get(keys.project_prefix(self._number), db=self._tables.learning)
        return LearningState() if value is None else decode_state(value)

    def turn(self, scope: str) -> int | None:
        """The scope's newest turn; None for one that has had none."""
        value = self._txn.get(keys.name_key(self._number, scope), db=self._tables.turn)
        return None if value is None else decode_turn(value)

    def used(self, scope: str, memory_id: str) -> Usage | None:
        """How the scope has used a memory; None when it never did."""
        value = self._txn.get(keys.usage_key(self._number, keys.hashed(scope), memory_id), db=self._tables.usage)
        return None if value is None else decode_usage(value)

    def profile(self, memory_id: str) -> Profile | None:
        """What was learnt of a memory; None when it was never analysed and has no keywords."""
        value = self._txn.get(keys.name_key(self._number, memory_id), db=self._tables.link)
        return None if value is None else decode_profile(value)

    def usage(self, scope: str) -> dict[str, Usage]:
        """All that the scope has used, by memory id, in the order of their UTF-8 bytes."""
        prefix = keys.usage_key(self._number, keys.hashed(scope), "")
        return {
            keys.memory_of_usage_key(key): decode_usage(value)
            for key, value in keys.entries(self._txn, self._tables.usage, prefix)
        }

    def profiles(self) -> Iterator[tuple[str, Profile]]:
        """All profiles with their memory ids, in the order of their UTF-8 bytes."""
        for key, value in keys.entries(self._txn, self._tables.link, keys.project_prefix(self._number)):
            yield keys.name_in_key(key), decode_profile(value)

    def scopes(self) -> Iterator[tuple[str, int]]:
        """All scopes that have had a turn, with their newest."""
        for key, value in keys.entries(self._txn, self._tables.turn, keys.project_prefix(self._number)):
            yield keys.name_in_key(key), decode_turn(value)

    def events(self, after: int, limit: int) -> list[LoggedEvent]:
        """At most `limit` events behind the one of number `after` (0: the first), oldest first."""
        prefix = keys.project_prefix(self._number)
        found = keys.entries(self._txn, self._tables.event, prefix, keys.event_key(self._number, after + 1))
        return [decode_event(number, value) for number, (_, value) in enumerate(islice(found, limit), start=after + 1)]


class StoredLearning(StoredRows):
    """The store's LearningReader."""

    def entries_seq(self) -> int:
        """Of the newest write that stored or removed an entry; 0 when none did."""
        value = self._txn.get(keys.project_number_key(self._number), db=self._tables.project)
        return 0 if value is None else record_codec.decode_project(value).entries_seq


class LearningWriting(StoredRows):
    """The store's LearningUnit.

    Attributes:
        has_grown: Whether something was written that takes room; what only removes does not.
    """

    def __init__(
        self,
        txn: lmdb.Transaction[bytes],
        tables: Tables,
        number: int,
        now: float,
        set_learned: Callable[[str, Sequence[str]], None],
        set_verdicts: Callable[[str], None],
    ) -> None:
        """Args are as for `StoredRows`; `now` is the time of events in Unix seconds.

        `set_learned` lets a memory be found by these words, whenever those of its profile change; `set_verdicts` lets
        it be ranked by the voices of its profile, which is stored by then.
        """
        super().__init__(txn, tables, number)
        self._now = now
        self._set_learned = set_learned
        self._set_verdicts = set_verdicts
        self.has_grown = False

    def append(self, event: LearningEvent, changes: LearningChanges) -> None:
        """Logs an event and stores what it changes."""
        self.has_grown |= not isinstance(event, Forgotten)
        number = self._number
        logged = encode_event(self._now, event)
        self._txn.put(keys.event_key(number, changes.state.events), logged, db=self._tables.event)
        self._txn.put(keys.project_prefix(number), encode_state(changes.state), db=self._tables.learning)
        for scope, turn in changes.turns.items():
            self._txn.put(keys.name_key(number, scope), encode_turn(turn), db=self._tables.turn)
        for (scope, memory_id), usage in changes.usage.items():
            self._put_usage(keys.hashed(scope), memory_id, usage)
        for memory_id, profile in changes.profiles.items():
            known = self.profile(memory_id) or Profile()
            self._txn.put(keys.name_key(number, memory_id), encode_profile(profile), db=self._tables.link)
            if profile.words != known.words:
                self._set_learned(memory_id, profile.words)
            if profile.voices != known.voices:
                self._set_verdicts(memory_id)
        for memory_id in changes.forgotten:
            self._forget(memory_id)

    def rewrite(self, number: int, event: LearningEvent) -> None:
        """Puts another event in the place of one that is logged; its time stays."""
        key = keys.event_key(self._number, number)
        time = decode_event(number, self._txn.get(key, b"", db=self._tables.event)).time
        self._txn.put(key, encode_event(time, event), db=self._tables.event)

    def drop_scope(self, scope: str) -> None:
        """Removes the turn and the usage of a scope that no event names any more."""
        hashed = keys.hashed(scope)
        for memory_id in self.usage(scope):
            self._txn.delete(keys.usage_key(self._number, hashed, memory_id), db=self._tables.usage)
            self._txn.delete(keys.usage_scope_key(self._number, memory_id, hashed), db=self._tables.usage_scope)
        self._txn.delete(keys.name_key(self._number, scope), db=self._tables.turn)

    def forget(self, memory_id: str, *, is_entry: bool) -> None:
        """Forgets a memory that is removed; no event where nothing can be known of it.

        Of an entry something may be learnt later of turns that are in the log: those of before are of another one.
        """
        may_be_named = is_entry and self.state().events > 0
        if may_be_named or self.profile(memory_id) is not None or next(self._scopes_of(memory_id), None) is not None:
            ids = (memory_id,)
            self.append(Forgotten(memory_ids=ids), forgetting(self.state(), ids))

    def _put_usage(self, scope: bytes, memory_id: str, usage: Usage) -> None:
        key = keys.usage_key(self._number, scope, memory_id)
        if self._txn.replace(key, encode_usage(usage), db=self._tables.usage) is None:
            self._txn.put(keys.usage_scope_key(self._number, memory_id, scope), scope, db=self._tables.usage_scope)

    def _forget(self, memory_id: str) -> None:
        for key, scope in list(self._scopes_of(memory_id)):
            self._txn.delete(key, db=self._tables.usage_scope)
            self._txn.delete(keys.usage_key(self._number, scope, memory_id), db=self._tables.usage)
        self._txn.delete(keys.name_key(self._number, memory_id), db=self._tables.link)

    def _scopes_of(self, memory_id: str) -> Iterator[tuple[bytes, bytes]]:
        prefix = keys.usage_scope_key(self._number, memory_id, b"")
        return keys.entries(self._txn, self._tables.usage_scope, prefix)
