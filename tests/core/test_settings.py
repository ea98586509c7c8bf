"""A project's settings as a value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields

from hummock.core.recall import Preset, RecallQuery
from hummock.core.settings import NO_SETTINGS, SETTING_PATHS, PresetSettings, ProjectSettings
from tests.strategies import project_settings


@given(project_settings(), project_settings(), st.sets(st.sampled_from(SETTING_PATHS)))
def test_a_change_touches_the_named_paths_and_nothing_else(
    before: ProjectSettings, values: ProjectSettings, paths: set[str]
) -> None:
    """S4-46."""
    after = before.changed(values, paths)
    for path in SETTING_PATHS:
        assert after.value(path) == (values if path in paths else before).value(path)


@given(project_settings())
def test_unsetting_everything_leaves_nothing(settings: ProjectSettings) -> None:
    """S4-46."""
    assert settings.changed(NO_SETTINGS, SETTING_PATHS) == NO_SETTINGS


def test_every_preset_has_its_group() -> None:
    settings = ProjectSettings(
        chat=PresetSettings(top_k=1),
        code=PresetSettings(top_k=2),
        agent=PresetSettings(top_k=3),
        codex=PresetSettings(top_k=4),
    )
    assert [settings.preset(preset).top_k for preset in Preset] == [1, 2, 3, 4]


def test_what_a_preset_sets_is_a_field_of_a_recall_but_for_the_origins_of_its_filter() -> None:
    names = {field.name for field in fields(PresetSettings)}
    assert names - {field.name for field in fields(RecallQuery)} == {"origins"}
