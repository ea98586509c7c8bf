"""Settings at run time: they are shown, changed, and followed by the next recall."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from hummock.core.errors import ProjectNotFound
from hummock.core.memory import Origin, SecretPolicy
from hummock.core.recall import Preset, Recalled, RecallQuery
from hummock.core.render import Quotas, RenderForm
from hummock.core.settings import NO_SETTINGS, SETTING_PATHS, PresetSettings, ProjectSettings, SettingOrigin
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


def test_a_changed_setting_is_followed_by_the_next_equal_recall(settings: Settings, recall: CachedRecall) -> None:
    """S4-46, 1.1-1."""
    assert len(recall(QUERY).hits) == 5
    change(settings, chat(top_k=8), "chat.top_k")
    now = recall(QUERY)
    assert (len(now.hits), now.receipt.project_settings) == (8, ("chat.top_k",))
    change(settings, NO_SETTINGS, "chat.top_k")
    then = recall(QUERY)
    assert (len(then.hits), then.receipt.project_settings) == (5, ())


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


def test_what_a_model_said_is_recalled_only_where_the_project_switches_it_on(
    work: Workplace, settings: Settings, recall: CachedRecall
) -> None:
    """S4-53, S4-51."""
    work.teach(note("only a model says zebra", "said", origin=Origin.AI_OUTPUT))
    zebra = RecallQuery(project="p", text="zebra", preset=Preset.CHAT)
    assert "said" not in {hit.memory.id for hit in recall(zebra).hits}
    change(settings, chat(origins=frozenset({Origin.MANUAL, Origin.AI_OUTPUT})), "chat.origins")
    assert "said" in {hit.memory.id for hit in recall(zebra).hits}


def test_a_repeated_change_happens_once(settings: Settings) -> None:
    """S4-46."""
    request_id = "0b9d7c0e-4d2f-4b8a-9c53-0e6a5c1b7f11"
    settings.change("p", request_id, chat(top_k=8), ["chat.top_k"], b"f")
    change(settings, chat(top_k=3), "chat.top_k")
    assert settings.change("p", request_id, chat(top_k=8), ["chat.top_k"], b"f").own == chat(top_k=3)


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
