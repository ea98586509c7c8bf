"""Settings at run time: they are shown, changed, and followed by the next recall."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from hummock.core.errors import ProjectNotFound
from hummock.core.memory import SecretPolicy
from hummock.core.recall import Preset, Recalled, RecallQuery
from hummock.core.render import Quotas, RenderForm
from hummock.core.settings import SETTING_PATHS, PresetSettings, ProjectSettings, SettingOrigin
from hummock.projects.projects import Settings
from hummock.recall.cache import CachedRecall
from hummock.recall.pipeline import Recall
from hummock.recall.plan import PRESETS
from hummock.render.compose import FORMS
from tests.strategies import SPACE
from tests.workplace import Workplace, note

QUERY = RecallQuery(project="p", text="tide", preset=Preset.CHAT)


@pytest.fixture
def settings(work: Workplace) -> Settings:
    work.teach(*(note(f"tide number {number} of many", f"m{number}") for number in range(12)))
    return Settings(work.store, near_twin_bar=0.9)


@pytest.fixture
def recall(work: Workplace) -> CachedRecall:
    return CachedRecall(Recall(work.embedder, work.clock), work.store, SPACE.id, work.clock)


def change(settings: Settings, values: ProjectSettings, *paths: str) -> None:
    settings.change("p", "", values, paths, b"f")


def chat(**values: object) -> ProjectSettings:
    return ProjectSettings(chat=PresetSettings(**values))  # type: ignore[arg-type] # fields of PresetSettings


def test_every_value_is_shown_with_its_default(settings: Settings) -> None:
    """S4-46, S4-19, S4-20, S4-21, S4-22, S4-23, S2-06, S2-08, S2-19, S0-20, S0-33."""
    shown = settings.get("p")
    assert tuple(one.path for one in shown.settings) == SETTING_PATHS
    assert {one.origin for one in shown.settings} == {SettingOrigin.DEFAULT}
    values = {one.path: one.value for one in shown.settings}
    assert all(one.value == one.default for one in shown.settings)
    for preset in Preset:
        for name in ("candidates", "top_k", "min_similarity", "origins", "decay_mode", "half_life_days"):
            assert values[f"{preset.name.lower()}.{name}"] == getattr(PRESETS[preset], name)
    assert {values[f"{preset.name.lower()}.near_twin_bar"] for preset in Preset} == {0.9}
    assert [values[f"budget_tokens.{form.name.lower()}"] for form in RenderForm] == [
        FORMS[form].budget_tokens for form in RenderForm
    ]
    assert values["quotas.learning_records"] == Quotas().learning_records
    assert values["secrets.policy"] is SecretPolicy.REDACT


def test_a_project_that_does_not_exist_has_none_and_a_change_makes_it(settings: Settings) -> None:
    with pytest.raises(ProjectNotFound):
        settings.get("new")
    settings.change("new", "", chat(top_k=2), ["chat.top_k"], b"f")
    assert settings.get("new").own == chat(top_k=2)


def test_a_change_moves_the_generation_that_watchers_see(settings: Settings) -> None:
    """S4-46."""
    before = settings.get("p").content_seq
    change(settings, chat(top_k=8), "chat.top_k")
    assert settings.get("p").content_seq == before + 1


def test_the_request_goes_before_the_project(settings: Settings, recall: CachedRecall) -> None:
    """S4-46."""
    change(settings, chat(top_k=8), "chat.top_k")
    asked = recall(RecallQuery(project="p", text="tide", preset=Preset.CHAT, top_k=2))
    assert (len(asked.hits), asked.receipt.project_settings) == (2, ())
    assert len(recall(RecallQuery(project="p", text="tide", preset=Preset.AGENT)).hits) == 10


def test_an_answer_that_is_used_again_says_whose_settings_they_were(settings: Settings, recall: CachedRecall) -> None:
    """S4-46, S1-19."""
    change(settings, chat(top_k=8), "chat.top_k")
    asked_so = RecallQuery(project="p", text="tide", preset=Preset.CHAT, top_k=8)
    assert said(recall(asked_so)) == (False, ())
    assert said(recall(QUERY)) == (True, ("chat.top_k",))
    assert said(recall(asked_so)) == (True, ())


def said(recalled: Recalled) -> tuple[bool, tuple[str, ...]]:
    return recalled.receipt.cached, recalled.receipt.project_settings


def test_a_recall_without_settings_makes_one_call_for_them(settings: Settings, recall: CachedRecall) -> None:
    """S4-46: their cost on the way of a recall that is in the cache."""
    recall(QUERY)
    calls: list[tuple[str, str]] = []

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls.append((frame.f_code.co_filename.rsplit("/", 1)[-1], frame.f_code.co_name))

    sys.setprofile(count)
    try:
        recall(QUERY)
    finally:
        sys.setprofile(None)
    of_settings = [
        name for file, name in calls if name == "apply_settings" or file in {"settings.py", "record_codec.py"}
    ]
    assert of_settings == ["apply_settings"]
