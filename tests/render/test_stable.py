"""State of a stable prefix from turn to turn."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from hummock.core.memory import Memory
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
from hummock.render.compose import FORMS
from hummock.render.section import Frame, Section, Selected, wording_of
from hummock.render.stable_prefix import render_stable
from hummock.text.tokens import EstimatedTokens
from tests.render.samples import domain, fragment, note, record, selected

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
    assert after.text == before.text
    assert after.state.base_turn == 1


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
        assert seen["new"] == expected
        assert len(seen) == 128
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
