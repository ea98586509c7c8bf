"""Values that are stored, or made by the thousand."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from hummock.core.errors import InvalidRequest
from hummock.core.learning import LearningChanges, LearningState
from hummock.core.memory import CodeFragment, Filter, Memory, MemoryKind
from hummock.core.recall import MAX_CONTEXT_WINDOW, MAX_QUERY_CHARACTERS, MAX_TOP_K, Preset, RecallQuery
from hummock.core.render import MAX_BUDGET_TOKENS, RenderCommit, RenderForm, RenderQuery
from hummock.core.session import PromptMessage, PromptRole, PromptTarget, Session
from hummock.core.settings import NO_SETTINGS, SETTING_PATHS, PresetSettings, ProjectSettings
from tests.strategies import Entry, entries, project_settings

MEMORY = Entry(id="世界", tags=("java",)).memory()


@given(entries())
def test_equal_fields_make_equal_values(entry: Entry) -> None:
    made = entry.memory()
    assert made == entry.memory()
    assert hash(made) == hash(entry.memory())
    assert replace(made, id="other") != made
    assert replace(made, id="other").index == made.index


def test_a_value_shows_its_fields() -> None:
    shown = "CodeFragment(path='a.py', start_line=9, end_line=9, language='', symbol='')"
    assert repr(CodeFragment(path="a.py", start_line=9, end_line=9)) == shown


def test_a_default_that_can_change_is_made_for_each() -> None:
    state = LearningState()
    assert LearningChanges(state=state).turns is not LearningChanges(state=state).turns


@pytest.mark.parametrize("value", [MEMORY, MEMORY.index, Filter(), LearningState()])
def test_a_value_stays_frozen(value: Any) -> None:
    name = value.__struct_fields__[0]
    with pytest.raises(AttributeError, match="immutable"):
        setattr(value, name, "b")
    with pytest.raises(AttributeError, match="immutable"):
        delattr(value, name)


def test_a_value_asks_for_its_arguments_by_name() -> None:
    with pytest.raises(TypeError, match="Missing required argument 'path'"):
        CodeFragment()  # type: ignore[call-arg] # that is what is tried
    with pytest.raises(TypeError, match="Unexpected keyword argument 'size'"):
        CodeFragment(path="a.py", size=1)  # type: ignore[call-arg] # that is what is tried
    with pytest.raises(TypeError, match="Extra positional arguments"):
        CodeFragment("a.py")  # type: ignore[call-arg] # that is what is tried


def test_a_value_is_copied() -> None:
    assert type(MEMORY) is Memory
    assert copy.copy(MEMORY) == MEMORY
    assert hash(MEMORY) == hash(copy.deepcopy(MEMORY)) == hash(pickle.loads(pickle.dumps(MEMORY)))  # noqa: S301 # ours


def test_its_invariants_are_checked() -> None:
    with pytest.raises(InvalidRequest, match="before start_line"):
        CodeFragment(path="a.py", start_line=9, end_line=3)
    with pytest.raises(InvalidRequest, match="before start_line"):
        replace(CodeFragment(path="a.py", start_line=2, end_line=3), start_line=9)


def test_how_long_a_caller_waits_is_no_part_of_what_is_asked() -> None:
    query = RecallQuery(project="p", text="tide", filter=Filter(kinds=frozenset({MemoryKind.NOTE})))
    late = replace(query, until_s=9.0)
    assert (late, hash(late)) == (query, hash(query))
    assert replace(query, echo_window_s=9.0) != query
    assert query != "tide"


def test_the_number_of_a_session_is_the_stores_own() -> None:
    session = Session(id="s", title="t", create_time=1.0, update_time=2.0)
    numbered = replace(session, number=7)
    assert (numbered, hash(numbered)) == (session, hash(session))
    assert replace(session, message_count=1) != session
    assert session != "s"


# A project's settings as a value.


@pytest.mark.long
@given(project_settings(), project_settings(), st.sets(st.sampled_from(SETTING_PATHS)))
def test_a_change_touches_the_named_paths(before: ProjectSettings, values: ProjectSettings, paths: set[str]) -> None:
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


# Invalid values of a query or a rendering are refused by the value itself, with the field and the limit.


QUERY = RecallQuery(project="p", text="还款 parse_date")
CURRENT = PromptMessage(role=PromptRole.USER, content="还款？")


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("query_text", {"text": " \n"}),
        ("query_text", {"text": "还" * (MAX_QUERY_CHARACTERS + 1)}),
        ("top_k", {"top_k": MAX_TOP_K + 1}),
        ("context_window", {"context_window": MAX_CONTEXT_WINDOW + 1}),
    ],
)
def test_a_query_beyond_a_limit_is_refused_by_its_field(field: str, said: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        RecallQuery(**{"project": "p", "text": "还款", **said})
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("source", {}),
        ("source", {"recall": QUERY, "memory_ids": ("a",)}),
        ("recall", {"memory_ids": ("a",), "commit": RenderCommit(scope="", turn=1, request_id="r", fingerprint=b"")}),
        ("budget_tokens", {"recall": QUERY, "budget_tokens": MAX_BUDGET_TOKENS + 1}),
        ("current", {"recall": QUERY, "form": RenderForm.MESSAGES}),
        ("current", {"recall": QUERY, "current": CURRENT}),
        ("target", {"recall": QUERY, "form": RenderForm.MESSAGES, "current": CURRENT, "target": PromptTarget.USER}),
    ],
)
def test_a_rendering_that_contradicts_itself_is_refused_by_its_field(field: str, said: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        RenderQuery(**{"project": "p", "form": RenderForm.WATERFALL, **said})
    assert refused.value.field == field
