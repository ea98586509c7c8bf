"""The budget of pinned memories, and the text that they make."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hummock.core.memory import Memory, MemoryKind
from hummock.core.render import Locale, Tier
from hummock.render.pinned import render_pinned
from hummock.render.section import Frame, Selected, wording_of
from hummock.text.tokens import EstimatedTokens
from tests.render.samples import memory

COUNTER = EstimatedTokens()
TEXTS = st.lists(
    st.sampled_from(["我对花生过敏，", "I live in Lima. ", "def f(): pass\n", "## Memories\n", "x" * 40]),
    min_size=1,
    max_size=12,
).map("".join)


def frame(budget_tokens: int, locale: Locale = Locale.EN) -> Frame:
    return Frame(wording=wording_of(locale), budget_tokens=budget_tokens, counter=COUNTER)


def pins(texts: list[str]) -> list[Memory]:
    """Pinned notes of these texts, the newest first."""
    return [
        replace(
            memory(f"m{place}", MemoryKind.NOTE, text, create_time=1e9 - place),
            pinned=True,
            token_count=COUNTER.count(text),
        )
        for place, text in enumerate(texts)
    ]


@given(
    texts=st.lists(TEXTS, max_size=12),
    limit_tokens=st.integers(0, 300),
    budget_tokens=st.integers(1, 1000),
    locale=st.sampled_from(Locale),
)
def test_pinned_memories_keep_both_budgets_and_are_all_accounted_for(
    texts: list[str], limit_tokens: int, budget_tokens: int, locale: Locale
) -> None:
    given_ = pins(texts)
    section = render_pinned(given_, (), frame(budget_tokens, locale), limit_tokens)
    assert section.token_count == COUNTER.count(section.text) <= budget_tokens / 2
    shown = [one.memory_id for one in section.memories if one.tier is Tier.FULL]
    known = {one.id: one for one in given_}
    assert sum(known[one].token_count for one in shown) <= limit_tokens
    assert sorted(one.memory_id for one in section.memories) == sorted(known)
    # In the order of their writes, and each on lines of its own.
    assert shown == sorted(shown, key=lambda one: -int(one[1:]))
    assert len([line for line in section.text.split("\n") if line.startswith("- [")]) == len(shown)
    assert bool(shown) == bool(section.text)


@given(texts=st.lists(TEXTS, min_size=1, max_size=6), query=st.floats(0, 1))
def test_the_text_does_not_depend_on_what_the_query_found(texts: list[str], query: float) -> None:
    given_ = pins(texts)
    found = [Selected(memory=given_[0], score=query, told="2026-01-01", is_replaced=True)]
    assert render_pinned(given_, found, frame(4000), 500).text == render_pinned(given_, (), frame(4000), 500).text


def test_a_long_one_does_not_keep_older_ones_out() -> None:
    given_ = pins(["new", "x " * 400, "I am allergic to peanuts."])
    section = render_pinned(given_, (), frame(4000), 100)
    assert [one.memory_id for one in section.memories if one.tier is Tier.FULL] == ["m2", "m0"]
    (left_out,) = [one for one in section.memories if one.tier is Tier.DROPPED]
    assert "100 tokens" in left_out.reason


def test_the_reason_of_a_pin_that_the_query_found_as_well_is_left_to_its_form() -> None:
    given_ = pins(["x " * 400])
    assert render_pinned(given_, [Selected(memory=given_[0], score=0.5)], frame(4000), 100).memories == ()
