"""Choice of phrases in observed turns that stand for an entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from bench.eval.metrics import wilson
from hummock.learning.offline import Observed
from hummock.learning.recurring import UserText, recurring
from hummock.ports.models import EntryText
from hummock.text.analyzer import document_terms, query_terms
from hummock.text.normalise import prose
from tests.learning.observed import Called, ObservedWorld, observed_worlds

WORLDS = observed_worlds()
OTHERS = tuple(f"{chr(0x5000 + number)}{chr(0x6000 + number)}" for number in range(60))


def said(text: str) -> UserText:
    return UserText(text, frozenset(query_terms(text)))


def learnt(*texts: str, own: str = "", others: Sequence[str] = OTHERS) -> list[str]:
    said_elsewhere = [said(text) for text in others]
    return recurring(
        [said(text) for text in texts],
        frozenset(document_terms(own)),
        len(others),
        lambda terms: sum(terms <= turn.terms for turn in said_elsewhere),
    )


def entry(called: Called) -> EntryText:
    return EntryText(memory_id=called.title, title=called.title, text=called.text)


def observed(turns: Sequence[tuple[str, tuple[str, ...]]]) -> Observed:
    counts = Observed()
    for number, (text, used) in enumerate(turns):
        counts.add(number, text, used)
    return counts


def judged(worlds: Sequence[ObservedWorld], counts: Observed) -> Iterator[tuple[str, bool]]:
    """Each keyword that is learnt, and whether it stands for its entry."""
    for called in (one for world in worlds for one in world.entries):
        right = {prose(keyword) for keyword in called.keywords}
        yield from ((keyword, prose(keyword) in right) for keyword in counts.of(entry(called)).keywords)


def test_the_turns_are_many_and_of_both_languages() -> None:
    assert sum(len(world.turns()) for world in WORLDS) >= 250
    assert sum(len(world.entries) for world in WORLDS) >= 20


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_nine_of_ten_keywords_of_observed_turns_stand_for_their_entry(world: ObservedWorld) -> None:
    """S3-01, S3-14."""
    found = list(judged([world], observed(world.turns())))
    right = sum(is_right for _, is_right in found)
    assert right / len(found) >= 0.9, [keyword for keyword, is_right in found if not is_right]
    assert right >= 2 * len(world.entries)


def test_in_one_log_of_all_worlds_precision_holds_beyond_chance() -> None:
    """S3-01, S3-14: the lower end of 95 % (Wilson) is above .9."""
    turns = [turn for world in WORLDS for turn in world.turns()]
    found = [is_right for _, is_right in judged(WORLDS, observed(turns))]
    low, _ = wilson(sum(found), len(found))
    assert low > 0.9


@pytest.mark.parametrize("turn", range(3))
def test_of_one_turn_an_entry_no_keyword_is_learnt_however_much_else_is_said(turn: int) -> None:
    """S3-14: one mention may be an accident."""
    entries = [called for world in WORLDS for called in world.entries]
    once = [(called.turns[turn], (called.title,)) for called in entries]
    chatter = [(text, ()) for world in WORLDS for text in world.chatter] + [(text, ()) for text in OTHERS]
    assert list(judged(WORLDS, observed([*chatter, *once]))) == []


WOOD = ("铁桦码头在哪", "去铁桦坐船")


@pytest.mark.parametrize(
    ("texts", "own", "others", "expected"),
    [
        (("那块硬木头泡在水里", "硬木头在哪个摊位买"), "", OTHERS, ["硬木头"]),
        (("把硬木头搬走", "还剩几根硬木头"), "", OTHERS, ["硬木头"]),
        (("where is the hardwood", "more Hardwood, please"), "", OTHERS, ["hardwood"]),
        (("the reunion dinner at eight", "reunion dinner leftovers"), "", OTHERS, ["reunion dinner"]),
        (("retryBudget 配多少", "为什么 retryBudget 用完了"), "", OTHERS, ["retryBudget"]),
        (("今天怎么样", "今天怎么办"), "", OTHERS, []),
        (("what about it", "what else about it"), "", OTHERS, []),
        (("看 137 号", "第 137 次"), "", OTHERS, []),
        ((), "", OTHERS, []),
        (("",), "", OTHERS, []),
        # A part that is always followed by the same character is no word: 丢火 of 丢火球, where the entry says 火球.
        (("丢火球打不中", "丢火球烧到队友"), "火球术", OTHERS, []),
        # A phrase that other turns hold as often belongs to none.
        (WOOD, "", OTHERS, ["铁桦"]),
        (WOOD, "", (*OTHERS, "铁桦是什么", "谁见过铁桦"), []),
        # Where every turn used the entry, its words tell nothing of it.
        (WOOD, "", (), []),
    ],
)
def test_what_comes_again_is_learnt_whole_at_borders_of_words(
    texts: tuple[str, ...], own: str, others: tuple[str, ...], expected: list[str]
) -> None:
    """S3-01, S3-14."""
    assert learnt(*texts, own=own, others=others) == expected


def test_one_log_gives_one_answer_in_any_order_of_at_most_ten_words() -> None:
    """S3-28, S3-09."""
    world = WORLDS[0]
    first, second = observed(world.turns()), observed(world.turns())
    forward = {called.title: first.of(entry(called)) for called in world.entries}
    assert forward == {called.title: second.of(entry(called)) for called in reversed(world.entries)}
    counts = observed(world.turns())
    called = world.entries[0]
    full = EntryText(memory_id=called.title, title="", text="", keywords=tuple("abcdefgh"), hints=("i",))
    new = counts.of(full)
    assert len(new.keywords) <= 2
    assert len(new.keywords) + len(new.hints) <= 2
