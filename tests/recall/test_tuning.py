"""The request, then the project, then the preset."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from hummock.core.candidates import SessionWindow
from hummock.core.memory import Filter, MemoryKind, Origin
from hummock.core.recall import DecayMode, Intent, Preset, RecallQuery
from hummock.core.settings import NO_SETTINGS, PresetSettings, ProjectSettings
from hummock.recall.plan import PRESETS, apply_settings, make_plan
from hummock.text.question import question_of
from tests.strategies import project_settings

QUERY = RecallQuery(project="p", text="潮汐 tide", preset=Preset.CHAT)
NUMBERS = [field.name for field in fields(PresetSettings) if field.name != "origins"]


def test_without_settings_the_query_is_the_very_same() -> None:
    """S4-46."""
    assert apply_settings(QUERY, NO_SETTINGS) == (QUERY, ())
    assert apply_settings(QUERY, NO_SETTINGS)[0] is QUERY
    assert apply_settings(QUERY, ProjectSettings(code=PresetSettings(top_k=1)))[0] is QUERY


@given(project_settings(), st.sampled_from(Preset), st.sets(st.sampled_from(NUMBERS)))
def test_a_value_of_the_request_stands_and_the_project_fills_the_rest(
    settings: ProjectSettings, preset: Preset, asked: set[str]
) -> None:
    """S4-46."""
    own: dict[str, Any] = {"decay_mode": DecayMode.TRUE_HALF_LIFE, "min_similarity": 0.125, "half_life_days": 3.5}
    values = {name: own.get(name, 9) for name in asked}
    query = RecallQuery(project="p", text="x", preset=preset, session_id="s", **values)
    filled, paths = apply_settings(query, settings)
    for name in NUMBERS:
        said = getattr(settings.preset(preset), name)
        assert getattr(filled, name) == (getattr(query, name) if name in asked else said)
        assert (f"{preset.name.lower()}.{name}" in paths) == (name not in asked and said is not None)


def test_ai_output_is_recalled_once_the_project_switches_it_on() -> None:
    """S4-53, S4-51, S4-23."""
    everything = ProjectSettings(chat=PresetSettings(origins=PRESETS[Preset.CHAT].origins | {Origin.AI_OUTPUT}))
    assert Origin.AI_OUTPUT not in plan_origins(QUERY, NO_SETTINGS)
    assert Origin.AI_OUTPUT in plan_origins(QUERY, everything)


def test_origins_of_a_filter_stand_and_its_other_conditions_stay() -> None:
    """S4-46, S4-53."""
    settings = ProjectSettings(chat=PresetSettings(origins=frozenset({Origin.AI_OUTPUT})))
    named = RecallQuery(project="p", text="x", preset=Preset.CHAT, filter=Filter(origins=frozenset({Origin.SUMMARY})))
    assert apply_settings(named, settings) == (named, ())
    notes = RecallQuery(project="p", text="x", preset=Preset.CHAT, filter=Filter(kinds=frozenset({MemoryKind.NOTE})))
    filled, paths = apply_settings(notes, settings)
    assert filled.filter == Filter(kinds=frozenset({MemoryKind.NOTE}), origins=frozenset({Origin.AI_OUTPUT}))
    assert paths == ("chat.origins",)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (PresetSettings(min_similarity=0.25), ("min_similarity", 0.25)),
        (PresetSettings(relevance_weight=0.5), ("relevance_weight", 0.5)),
        (PresetSettings(near_twin_bar=0.8), ("near_twin_bar", 0.8)),
    ],
)
def test_the_plan_follows(settings: PresetSettings, expected: tuple[str, float]) -> None:
    """S4-46, S2-06, S4-21."""
    query, _ = apply_settings(QUERY, ProjectSettings(chat=settings))
    assert getattr(make_plan(query, question_of(query.text), Intent(), 0.9, 0.0), expected[0]) == expected[1]


def test_a_window_is_set_for_recalls_that_name_a_session() -> None:
    """S4-46, S4-55."""
    settings = ProjectSettings(chat=PresetSettings(window_turns=3))
    assert apply_settings(QUERY, settings) == (QUERY, ())
    query, paths = apply_settings(replace(QUERY, session_id="s"), settings)
    assert make_plan(query, question_of(query.text), Intent(), 0.9, 0.0).window == SessionWindow(
        session_id="s", turns=3
    )
    assert paths == ("chat.window_turns",)


def test_decay_and_its_half_life_are_set_apart() -> None:
    """S4-22, S4-46, 1.1-3."""
    query, _ = apply_settings(QUERY, ProjectSettings(chat=PresetSettings(half_life_days=30.0)))
    decay = make_plan(query, question_of(query.text), Intent(), 0.9, 0.0).decay
    assert (decay.mode, decay.half_life_days) == (DecayMode.EXPONENTIAL, 30.0)


def plan_origins(query: RecallQuery, settings: ProjectSettings) -> frozenset[Origin]:
    applied = apply_settings(query, settings)[0]
    return make_plan(applied, question_of(query.text), Intent(), 0.9, 0.0).filter.origins
