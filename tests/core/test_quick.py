"""Values with a quick `__init__` are what they would be with the usual one."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.errors import InvalidRequest
from hummock.core.memory import CodeFragment, Memory
from hummock.core.quick import quick
from tests.strategies import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    name: str
    count: int = 7
    tags: list[str] = field(default_factory=list)


@quick
@dataclass(frozen=True, slots=True, kw_only=True)
class Quick:
    name: str
    count: int = 7
    tags: list[str] = field(default_factory=list)


@given(st.text(), st.integers())
def test_it_holds_compares_and_shows_what_the_usual_one_does(name: str, count: int) -> None:
    plain, made = Plain(name=name, count=count), Quick(name=name, count=count)
    assert (made.name, made.count, made.tags) == (plain.name, plain.count, plain.tags)
    assert repr(made) == repr(plain).replace("Plain", "Quick")
    assert made == Quick(name=name, count=count)
    assert type(made) is Quick
    assert replace(made, count=8).count == 8


def test_a_default_that_is_made_is_made_for_each() -> None:
    assert Quick(name="a").tags is not Quick(name="b").tags


def test_it_stays_frozen() -> None:
    made = Quick(name="a")
    with pytest.raises(FrozenInstanceError):
        made.name = "b"  # type: ignore[misc] # that is what is tried
    with pytest.raises(FrozenInstanceError):
        del made.name


def test_it_asks_for_the_same_arguments() -> None:
    with pytest.raises(TypeError, match=r"Quick\.__init__\(\) missing 1 required keyword-only argument: 'name'"):
        Quick()  # type: ignore[call-arg] # that is what is tried
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        Quick(name="a", size=1)  # type: ignore[call-arg] # that is what is tried


def test_it_is_copied() -> None:
    memory = Entry(id="世界", tags=("java",)).memory()
    assert type(memory) is Memory
    assert copy.copy(memory) == memory
    assert hash(memory) == hash(copy.deepcopy(memory))


def test_its_invariants_are_checked() -> None:
    with pytest.raises(InvalidRequest, match="before start_line"):
        CodeFragment(path="a.py", start_line=9, end_line=3)
