"""Values that are stored, or made by the thousand."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from hummock.core.errors import InvalidRequest
from hummock.core.learning import LearningChanges, LearningState
from hummock.core.memory import CodeFragment, Filter, Memory, MemoryKind
from hummock.core.recall import RecallQuery
from hummock.core.session import Session
from tests.strategies import Entry, entries

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
