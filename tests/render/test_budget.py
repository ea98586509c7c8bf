"""Budgets hold by the counter that counts, for Chinese, English and code, whatever the form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.core.project import ProjectInfo
from hummock.core.render import LITERAL_QUOTAS, Locale, Quotas, RenderForm, TailPlacement, Tier
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


@pytest.mark.parametrize("form", list(RenderForm), ids=lambda form: form.name)
@settings(max_examples=60)
@given(items=ITEMS, framed=FRAMES)
def test_no_text_is_above_its_budget_but_for_the_best_memory_alone(
    counters: list[TokenCounter], form: RenderForm, items: list[Selected], framed: Framed
) -> None:
    """S0-33, S0-34, S0-35, S2-08, S2-10, S2-12, S2-21, 1.1-6."""
    frame = framed(counters)
    assert_kept(compose(items, (), frame, FORMS[form]), frame, may_force=form in FORCES_BEST)


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
