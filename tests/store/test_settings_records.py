"""Settings on disk."""

from __future__ import annotations

import msgspec
from hypothesis import given

from hummock.core.memory import Origin, SecretPolicy
from hummock.core.recall import DecayMode
from hummock.core.review import ReviewPolicy
from hummock.core.settings import (
    NO_SETTINGS,
    HistorySettings,
    PresetSettings,
    ProjectSettings,
    RetentionSettings,
    ReviewSettings,
    SecretSettings,
    SmallTalkPolicy,
    TimeSettings,
    TurnSettings,
)
from hummock.store.tables.record_codec import pack, unpack
from tests.strategies import project_settings

PRESET = [20, 5, None, None, 0.3, [1, 4], 2, 14.0, None, None, None, None, None]


@given(project_settings())
def test_settings_come_back_as_they_were(settings: ProjectSettings) -> None:
    """S4-46."""
    assert unpack(pack(settings)) == settings


def test_fields_of_a_later_version_are_skipped() -> None:
    """S4-44, S4-46."""
    newer = [
        [*PRESET, "later"],
        [],
        [None, 7],
        [],
        [],
        [3],
        [None, 9],
        [2, 5],
        [90.0, None, 7, "later"],
        [1, 9],
        ["Asia/Shanghai", 9],
        [2, 9],
        {"a group": "of later"},
    ]
    assert unpack(msgspec.msgpack.encode(newer)) == ProjectSettings(
        chat=PresetSettings(
            candidates=20,
            top_k=5,
            min_similarity=0.3,
            origins=frozenset({Origin.MANUAL, Origin.AI_OUTPUT}),
            decay_mode=DecayMode.EXPONENTIAL,
            half_life_days=14.0,
        ),
        agent=PresetSettings(top_k=7),
        history=HistorySettings(max_messages=3),
        codex=PresetSettings(top_k=9),
        secrets=SecretSettings(policy=SecretPolicy.WARN),
        retention=RetentionSettings(max_age_days=90.0, max_bytes=7),
        review=ReviewSettings(policy=ReviewPolicy.OFF),
        times=TimeSettings(zone="Asia/Shanghai"),
        turns=TurnSettings(small_talk=SmallTalkPolicy.KEEP),
    )


def test_values_of_a_later_version_are_skipped() -> None:
    """S4-44."""
    chat = unpack(msgspec.msgpack.encode([[None, None, None, None, None, [1, 99], 77]])).chat
    assert (chat.origins, chat.decay_mode) == (frozenset({Origin.MANUAL}), None)
    assert unpack(msgspec.msgpack.encode([[None, None, None, None, None, [99]]])) == NO_SETTINGS
    assert unpack(msgspec.msgpack.encode([[], [], [], [], [], [], [], [99]])).secret_policy() is SecretPolicy.REDACT
    assert not unpack(msgspec.msgpack.encode([*[[]] * 11, [99]])).keeps_small_talk()


def test_a_record_of_an_earlier_version_reads_well() -> None:
    """S4-44."""
    assert unpack(msgspec.msgpack.encode([[None, 3]])) == ProjectSettings(chat=PresetSettings(top_k=3))
