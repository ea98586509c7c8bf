"""Learning as it lies in the store: values as arrays of their fields; see `record_codec`.

An event is stored with its time and, as the first element of its own array, a number that says what it is.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from hummock.core.learning import (
    FeedbackGiven,
    Forgotten,
    Injected,
    KeywordsLearned,
    KeywordsSet,
    LearningEvent,
    LearningState,
    LoggedEvent,
    Profile,
    SettingsChanged,
    Switched,
    TurnObserved,
    Usage,
)
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
