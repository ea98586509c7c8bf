"""Messages are made of values by the names of their fields, and back; what does not fit is named."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.errors import InvalidRequest
from hummock.core.learning import Injection, InjectionStatus, LearningSettings, LearningState, Usage
from hummock.core.learning_requests import SettingsChanges
from hummock.core.session import TurnSide
from hummock.rpc.conversion import message_of, value_of
from hummock_client.v1 import context_service_pb2, learning_pb2
from hummock_client.v1 import learning_service_pb2 as pb

EVENTS = [one.name for one in pb.LearningEvent.DESCRIPTOR.oneofs_by_name["event"].fields if one.name != "switched"]
INJECTION = Injection(memory_id="a", usage=Usage(), probability=0.5, status=InjectionStatus.IDLE, reason="")


def test_values_within_a_value_become_messages_too() -> None:
    message = message_of(pb.LearningState, LearningState(enabled=True, turns=3))
    assert (message.enabled, message.turns, message.settings.high_above) == (True, 3, 10)
    assert message.settings.cold_start_pause.ToMilliseconds() == 500


def test_what_differs_takes_the_place_of_the_values_own_and_none_leaves_it_unset() -> None:
    usage = message_of(learning_pb2.EntryUsage, Usage(frequency=2), last_sent_turn=None)
    assert (usage.frequency, usage.HasField("last_sent_turn")) == (2, False)
    assert message_of(learning_pb2.Injection, INJECTION, usage=usage, forced=True).forced


def test_a_message_may_be_made_of_its_fields_alone() -> None:
    message = message_of(pb.LearningEvent, number=1, event_time=2.5, **dict.fromkeys(EVENTS), switched=False)
    assert (message.event_time.ToMilliseconds(), message.WhichOneof("event")) == (2500, "switched")


def test_a_field_that_the_value_lacks_is_named() -> None:
    with pytest.raises(AttributeError, match="'Usage' object has no attribute 'memory_id'"):
        message_of(learning_pb2.Injection, Usage())


def test_a_field_that_the_message_lacks_is_named() -> None:
    with pytest.raises(ValueError, match='no "turn" field'):
        message_of(learning_pb2.EntryUsage, Usage(), last_sent_turn=None, turn=1)


def test_what_a_message_leaves_unset_is_none_and_zero_stays_zero() -> None:
    changes = value_of(SettingsChanges, learning_pb2.LearningSettings(high_above=0))
    assert {name: value for name, value in asdict(changes).items() if value is not None} == {"high_above": 0}


@given(
    st.builds(
        LearningSettings,
        high_above=st.integers(500, 1000),
        mid_above=st.integers(0, 500),
        min_similarity=st.floats(0, 1),
        cold_start_pause_s=st.integers(0, 3600 * 1000).map(lambda milliseconds: milliseconds / 1000),
    )
)
def test_a_value_that_became_a_message_is_read_as_it_was(settings: LearningSettings) -> None:
    message = message_of(learning_pb2.LearningSettings, settings)
    assert value_of(LearningSettings, message) == settings


def test_a_time_that_is_none_is_named_by_its_path() -> None:
    side = context_service_pb2.TurnSide(text="t", create_time=Timestamp(seconds=10**12))
    with pytest.raises(InvalidRequest, match=r"^user\.create_time: is not a time"):
        value_of(TurnSide, side, "user.")
    side.ClearField("create_time")
    assert value_of(TurnSide, side, "user.", speaker="Ada") == TurnSide(
        text="t", message_id="", raw="", emotion_label="", speaker="Ada"
    )
