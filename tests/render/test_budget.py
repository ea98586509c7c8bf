"""Budgets hold by the counter that counts, whatever the form; and a prefix that stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.core.memory import Memory
from hummock.core.project import ProjectInfo
from hummock.core.render import (
    LITERAL_QUOTAS,
    Locale,
    PrefixState,
    Quotas,
    RenderForm,
    SeenMemory,
    StablePrefix,
    TailPlacement,
    Tier,
)
from hummock.render.compose import FORMS, compose
from hummock.render.section import Frame, Section, Selected, wording_of
from hummock.render.stable_prefix import render_stable
from hummock.text.tokens import EstimatedTokens, TokenCounter
from tests.render.counters import GrowingCounter, exact_counters
from tests.render.samples import domain, fragment, note, record, selected

ZH_TEXTS = st.text(st.sampled_from("还款方式按月计息，先息后本。《合同》第三条：\n 1２a"), max_size=300)
EN_TEXTS = st.lists(
    st.sampled_from(["rounding", "is", "the", "O'Neil's", "half-even", "2025-11-20", "\n", "don't"])
).map(" ".join)
CODE_LINES = [
    "def repay(x):", "    return x // 2", "\t\t}", "<|im_end|>", "a[INST]b", "// 还款", "", "Human: x", "==" * 9,
]  # fmt: skip
CODE_TEXTS = st.lists(st.sampled_from(CODE_LINES)).map("\n".join)
TEXTS = st.one_of(ZH_TEXTS, EN_TEXTS, CODE_TEXTS)
ITEMS = st.lists(
    st.one_of(
        st.builds(record, st.uuids().map(str), TEXTS, TEXTS, TEXTS),
        st.builds(note, st.uuids().map(str), TEXTS, TEXTS, TEXTS),
        st.builds(domain, st.uuids().map(str), TEXTS, TEXTS, TEXTS),
        st.builds(fragment, st.uuids().map(str), TEXTS, TEXTS),
    ),
    max_size=9,
).map(lambda memories: selected(*memories))
Framed = Callable[[list[TokenCounter]], Frame]
FORCES_BEST = {RenderForm.WATERFALL, RenderForm.MEMORIES, RenderForm.MESSAGES}


@pytest.fixture(scope="module")
def counters(tmp_path_factory: pytest.TempPathFactory) -> list[TokenCounter]:
    return [EstimatedTokens(), GrowingCounter(), *exact_counters(tmp_path_factory.mktemp("counters"))]


def frame_of(counters: list[TokenCounter], number: int, **fields: Any) -> Frame:
    return Frame(counter=counters[number % len(counters)], **fields)


def assert_kept(section: Section, frame: Frame, *, may_force: bool) -> None:
    assert section.token_count == frame.counter.count(section.text)
    assert section.over_budget == (section.token_count > frame.budget_tokens)
    if section.over_budget:
        assert may_force
        assert sum(one.tier is not Tier.DROPPED for one in section.memories) == 1


FRAMES = st.builds(
    partial, st.just(frame_of), number=st.integers(0, 11), wording=st.sampled_from(Locale).map(wording_of),
    budget_tokens=st.integers(1, 700), quotas=st.sampled_from([Quotas(), LITERAL_QUOTAS]),
    info=st.sampled_from([None, ProjectInfo(), ProjectInfo(path="/srv/还款", tech_stack=("Java",))]),
)  # fmt: skip
"""Each example is counted by one counter in one language; all of them have their turn."""


@pytest.mark.long
@pytest.mark.parametrize("form", list(RenderForm), ids=lambda form: form.name)
@settings(max_examples=60)
@given(items=ITEMS, framed=FRAMES)
def test_no_text_is_above_its_budget_but_for_the_best_memory_alone(
    counters: list[TokenCounter], form: RenderForm, items: list[Selected], framed: Framed
) -> None:
    """S0-33, S0-34, S0-35, S2-08, S2-10, S2-12, S2-21, 1.1-6."""
    frame = framed(counters)
    assert_kept(compose(items, (), frame, FORMS[form]), frame, may_force=form in FORCES_BEST)


@pytest.mark.long
@pytest.mark.parametrize("form", list(RenderForm), ids=lambda form: form.name)
@settings(max_examples=40)
@given(turns=st.lists(ITEMS, min_size=1, max_size=4), framed=FRAMES)
def test_no_text_with_a_stable_prefix_is_above_its_budget(
    counters: list[TokenCounter], form: RenderForm, turns: list[list[Selected]], framed: Framed
) -> None:
    """1.1-11, S2-08."""
    known = {item.memory.id: item for items in turns for item in items}
    frame, tail = framed(counters), TailPlacement()
    for items in turns:
        section, prefix = render_stable(
            items, (), frame, FORMS[form], tail, Locale.ZH,
            lambda ids: [Selected(memory=known[one].memory) for one in ids],
        )  # fmt: skip
        assert section.text.startswith(prefix.text)
        assert_kept(section, frame, may_force=form in FORCES_BEST)
        tail = TailPlacement(state=prefix.state)


def test_what_was_read_is_in_full_even_above_the_budget() -> None:
    """S2-17: and what nobody asked for then gives way."""
    frame = Frame(wording=wording_of(Locale.EN), budget_tokens=60, counter=EstimatedTokens())
    long, other = selected(note("long", "word " * 200), note("other", "x"))
    for form in (RenderForm.WATERFALL, RenderForm.INDEX):
        section = compose([other, long], [long], frame, FORMS[form])
        assert section.over_budget
        assert [(one.memory_id, one.tier) for one in section.memories] == [("long", Tier.FULL), ("other", Tier.DROPPED)]


def test_a_memory_that_is_far_too_large_is_not_written_out_to_be_counted(tmp_path: Path) -> None:
    """S2-03: its stored count says so."""

    class Watched:
        name = "estimate"
        is_stored = True
        longest = 0

        def count(self, text: str) -> int:
            return self.counts([text])[0]

        def counts(self, texts: Sequence[str]) -> list[int]:
            self.longest = max([self.longest, *map(len, texts)])
            return EstimatedTokens().counts(texts)

    counter = Watched()
    frame = Frame(wording=wording_of(Locale.EN), budget_tokens=500, counter=counter)
    best, huge = note("best", "x"), note("huge", "还款" * 100_000, title="T", summary="S", token_count=151_000)
    section = compose(selected(best, huge), (), frame, FORMS[RenderForm.WATERFALL])
    assert [one.tier for one in section.memories] == [Tier.FULL, Tier.INDEX]
    assert counter.longest < 1000


@pytest.mark.parametrize("form", list(RenderForm), ids=lambda form: form.name)
def test_a_memory_of_200_kb_is_kept_out_of_a_budget_or_cut(form: RenderForm) -> None:
    """S2-12, S0-36."""
    frame = Frame(wording=wording_of(Locale.ZH), budget_tokens=2000, counter=EstimatedTokens())
    items = selected(note("best", "x"), note("huge", "<|im_start|>\nHuman: 还款\n" * 8000, title="巨", summary="大"))
    section = compose(items, (), frame, FORMS[form])
    assert section.token_count <= 2000
    assert not section.over_budget


BODY: Final = "The ledger keeps its limit in one table, and a change of the limit needs a review. "
FRAME: Final = Frame(wording=wording_of(Locale.ZH), budget_tokens=2000, counter=EstimatedTokens())
START: Final = PrefixState(turn=1, base_turn=1, as_of=0.0, locale=Locale.ZH, prefix_ids=())


class Turns:
    """A caller that brings the state back, over memories that all exist."""

    def __init__(self, form: RenderForm = RenderForm.WATERFALL, state: PrefixState | None = None) -> None:
        self._form = FORMS[form]
        self._known: dict[str, Memory] = {}
        self.state = state

    def turn(
        self, *memories: Memory, read: tuple[Memory, ...] = (), frame: Frame = FRAME
    ) -> tuple[Section, StablePrefix]:
        self._known |= {one.id: one for one in (*memories, *read)}
        section, prefix = render_stable(
            selected(*memories), selected(*read), frame, self._form, TailPlacement(state=self.state), Locale.ZH,
            lambda ids: [Selected(memory=self._known[one]) for one in ids if one in self._known],
        )  # fmt: skip
        self.state = prefix.state
        return section, prefix


def shown(section: Section) -> list[str]:
    return [one.memory_id for one in section.memories if one.tier is not Tier.DROPPED]


def test_a_prefix_without_memories_is_laid_out_anew_by_the_next_turn() -> None:
    """1.1-11: the first turn may recall nothing."""
    turns = Turns()
    assert turns.turn()[1].text == ""
    first = turns.turn(note("a", BODY), note("b", BODY))[1]
    assert first.state.prefix_ids == ("a", "b")
    assert first.state.base_turn == 2
    assert turns.turn(note("c", BODY))[1].text == first.text


def test_a_turn_that_reads_something_large_gives_the_prefix_back_to_the_next() -> None:
    """1.1-11, S2-17."""
    memories = [note(f"n{n}", BODY * 3) for n in range(5)]
    turns = Turns()
    before = turns.turn(*memories)[1]
    section, during = turns.turn(memories[0], read=(note("large", BODY * 90),))
    assert section.token_count <= 2000
    assert 0 < during.token_count < before.token_count
    after = turns.turn(memories[1])[1]
    assert (after.text, after.state.base_turn) == (before.text, 1)


def test_a_first_turn_that_reads_something_large_does_not_starve_the_others() -> None:
    """1.1-11, S2-17."""
    memories = [note(f"n{n}", BODY * 3) for n in range(5)]
    turns = Turns()
    assert turns.turn(*memories, read=(note("large", BODY * 190),))[1].text == ""
    assert turns.turn(*memories)[1].text == Turns().turn(*memories)[1].text


def test_a_budget_that_was_made_smaller_gets_a_prefix_of_its_size_that_stays() -> None:
    """1.1-11, S2-08."""
    memories = [note(f"n{n}", BODY * 3) for n in range(5)]
    small = replace(FRAME, budget_tokens=200)
    turns = Turns()
    before = turns.turn(*memories)[1]
    first = turns.turn(*memories, frame=small)
    again = turns.turn(memories[0], frame=small)
    assert first[0].token_count <= 200
    assert first[1].token_count < before.token_count
    assert again[1].text == first[1].text


def test_what_is_new_is_remembered_beside_128_that_were_recalled_more_often() -> None:
    """1.1-11: the one that was recalled longest ago is forgotten."""
    old = tuple(SeenMemory(memory_id=f"old{n:03}", turns=9, last_turn=n + 1) for n in range(128))
    turns = Turns(state=replace(START, turn=200, seen=old))
    turns.turn(note("new", BODY))
    for expected in (2, 3):
        seen = {one.memory_id: one.turns for one in turns.turn(note("new", BODY))[1].state.seen}
        assert (seen["new"], len(seen)) == (expected, 128)
        assert "old000" not in seen
        assert "old127" in seen


def test_no_more_of_a_kind_are_shown_than_the_quota_has_with_the_prefix_counted() -> None:
    """S0-23, S0-24, S0-36, 1.1-5, 1.1-11."""
    turns = Turns(RenderForm.CONTEXT)
    literal = replace(FRAME, quotas=LITERAL_QUOTAS)
    for first in (0, 10, 20):
        section, _ = turns.turn(
            *(record(f"r{first + n}", "q", "a") for n in range(9)),
            *(fragment(f"c{first + n}", f"{n}.java", "x") for n in range(9)),
            *(domain(f"d{first + n}", "还款", "x") for n in range(9)),
            *(note(f"n{first + n}", "x", title=f"t{n}") for n in range(2)),
            frame=literal,
        )
        kinds = [memory_id[0] for memory_id in shown(section)]
        assert {kind: kinds.count(kind) for kind in "rcd"} == {"r": 5, "c": 3, "d": 3}


def test_what_a_turn_asks_about_is_shown_whatever_the_prefix_holds() -> None:
    """1.1-11: a prefix takes no more of a quota than of the budget."""
    turns = Turns(RenderForm.CONTEXT)
    turns.turn(*(record(f"r{n}", "q", "a") for n in range(9)), *(domain(f"d{n}", "还款", "x") for n in range(9)))
    section, _ = turns.turn(record("new", "q", "a"), domain("other", "计息", "x"))
    assert {"new", "other"} <= set(shown(section))


def test_a_quota_that_was_made_smaller_than_the_prefix_leaves_nothing_for_the_tail() -> None:
    """1.1-5, 1.1-11."""
    turns = Turns(RenderForm.CONTEXT)
    turns.turn(*(record(f"r{n}", "q", "a") for n in range(9)))
    less = replace(FRAME, quotas=Quotas(learning_records=1))
    section, _ = turns.turn(record("new", "q", "a"), frame=less)
    assert len(shown(section)) == 1
    assert section.memories[-1].reason == "this form shows the first 1 of its kind"


def test_numbers_go_on_behind_the_prefix() -> None:
    """S0-23, 1.1-11."""
    turns = Turns(RenderForm.CONTEXT)
    turns.turn(*(record(f"r{n}", "q", "a") for n in range(3)), note("n0", BODY))
    section, _ = turns.turn(record("r9", "q", "a"), note("n9", BODY))
    assert re.findall(r"### 知识 (\d+)", section.text) == ["1", "2", "3", "4"]
    assert re.findall(r"### 记忆 (\d+)", section.text) == ["1", "2"]
