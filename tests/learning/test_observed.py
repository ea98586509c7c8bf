"""Keywords out of what was said in turns that used an entry (S3-01)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.learning import MAX_KEYWORD_CHARACTERS
from hummock.learning.entry_keywords import MAX_NEW_KEYWORDS
from hummock.learning.offline import MOST_CHARACTERS, Observed
from hummock.ports.models import EntryText
from hummock.text.analyzer import query_terms

CORE = EntryText(memory_id="世界.图鉴.物品.潮汐木芯", title="潮汐木芯", text="A core of tidewood that keeps water out.")
LAMP = EntryText(memory_id="世界.图鉴.物品.雾灯", title="雾灯", text="A lamp that burns in fog.")
OTHER_TURNS = 100
Turn = tuple[str, tuple[str, ...]]


def observed(*turns: Turn, others: int = OTHER_TURNS) -> Observed:
    """The given turns, after other turns of which no two share a word."""
    counts = Observed()
    for number in range(others):
        counts.add(number, f"w{number}q 无关{chr(0x5000 + number)}{chr(0x6000 + number)}", ("other",))
    for number, (text, used) in enumerate(turns, start=others):
        counts.add(number, text, used)
    return counts


def learnt(counts: Observed, entry: EntryText) -> tuple[str, ...]:
    """Keywords, then hints."""
    found = counts.of(entry)
    return found.keywords + found.hints


def used(*texts: str, by: EntryText = CORE) -> list[Turn]:
    return [(text, (by.memory_id,)) for text in texts]


TWICE = used("用硬木头修码头", "硬木头的船")
WHERE = used("硬木头在哪", "硬木头多重")


@pytest.mark.parametrize(
    ("turns", "others", "expected"),
    [
        # Words that go with other entries as well are no keywords.
        (TWICE, OTHER_TURNS, ("硬木头",)),
        ([*TWICE, *used("硬木头和灯", by=LAMP)], OTHER_TURNS, ()),
        # Turns that used no entry count against a keyword.
        ([*WHERE, ("硬木头涨价了", ()), ("还有硬木头吗", ())], OTHER_TURNS, ()),
        # A single turn is no evidence before much else was said: what everybody says is not known yet.
        (used("铁桦"), 20, ()),
        (used("铁桦"), OTHER_TURNS, ("铁桦",)),
        # An everyday word needs to be said again.
        (used("那块铁桦木头"), OTHER_TURNS, ("铁桦木",)),
        (used("那块铁桦木头", "铁桦木头！"), OTHER_TURNS, ("铁桦木头",)),
        # What an entry says itself is no news.
        (used("潮汐木芯 tidewood 与 driftoak", "潮汐木芯 keeps driftoak"), OTHER_TURNS, ("driftoak",)),
        # Repeated words count once.
        (used(*(f"{space}铁桦 " for space in ("", " ", "  ") * 50)), 20, ()),
        # Only the beginning of a long text counts.
        (used(*(f"硬木头{space * MOST_CHARACTERS}鸢尾花" for space in (" ", "，"))), OTHER_TURNS, ("硬木头",)),
    ],
)
def test_keywords_follow_from_own_and_other_turns(turns: list[Turn], others: int, expected: tuple[str, ...]) -> None:
    assert learnt(observed(*turns, others=others), CORE) == expected


def test_words_of_turns_that_used_an_entry_become_its_keywords_and_no_others() -> None:
    """S3-01, S3-14."""
    counts = observed(*used("那块硬木头是怎么来的？", "硬木头能防水吗"))
    assert (learnt(counts, CORE), learnt(counts, LAMP)) == (("硬木头",), ())


def test_a_stray_use_elsewhere_does_not_take_an_established_keyword() -> None:
    turns = used(*(f"硬木头{chr(0x7000 + place)}" for place in range(12)))
    assert "硬木头" in learnt(observed(*turns, *used("硬木头?", by=LAMP)), CORE)


def test_english_words_and_names_of_code_are_learnt_beside_chinese() -> None:
    turns = used("where is driftOak_v2 硬木头", "the driftOak_v2, 硬木头!")
    assert set(learnt(observed(*turns), CORE)) == {"driftOak_v2", "硬木头"}


def test_all_entries_of_a_turn_learn_its_learnt() -> None:
    turns = [(text, (CORE.memory_id, LAMP.memory_id)) for text in ("夜航的那套东西", "夜航要带啥")]
    counts = observed(*turns)
    assert learnt(counts, CORE) == learnt(counts, LAMP) == ("夜航",)


def test_an_entry_gets_no_more_keywords_than_ten_with_those_that_it_has() -> None:
    """S3-14."""
    words = " ".join(f"zq{place}x" for place in range(30))
    counts = observed(*used(words, f"{words} now !?", f"also {words}"))
    assert len(learnt(counts, CORE)) == MAX_NEW_KEYWORDS
    known = EntryText(memory_id=CORE.memory_id, title="t", text="", keywords=tuple(f"k{place}" for place in range(8)))
    assert len(learnt(counts, known)) == 2


def test_a_known_keyword_is_not_found_again_nor_a_part_of_it() -> None:
    """S3-14."""
    turns = used("那块硬木头是谁的", "硬木头!")
    for known in ("硬木头", "一块硬木头"):
        entry = EntryText(memory_id=CORE.memory_id, title="", text="", keywords=(known,))
        assert learnt(observed(*turns), entry) == ()


def test_turns_that_are_forgotten_count_no_more() -> None:
    counts = observed(*WHERE)
    counts.drop_before(OTHER_TURNS + 1)
    assert counts.turn_count == 1
    assert learnt(counts, CORE) == ()
    counts.drop_before(OTHER_TURNS + 2)
    assert counts.turn_count == 0


SAID = st.text(alphabet="硬木头鸢尾花的 abcd_9\ud800", max_size=12)
TURNS = st.lists(st.tuples(SAID, st.sets(st.sampled_from(["a", "b", "c"]), max_size=2)), max_size=30)


@given(TURNS, st.integers(0, 30))
def test_forgetting_leaves_what_counting_the_rest_gives(turns: list[tuple[str, set[str]]], first: int) -> None:
    """S3-28: the same turns, the same keywords. What was said once before and again later is an exception."""
    turns = list({text: (text, used) for text, used in turns}.values())
    some, rest = Observed(), Observed()
    for number, (text, used) in enumerate(turns):
        some.add(number, text, used)
        if number >= first:
            rest.add(number, text, used)
    some.drop_before(first)
    for memory_id in "abc":
        entry = EntryText(memory_id=memory_id, title="", text="")
        assert learnt(some, entry) == learnt(rest, entry)


@given(TURNS)
def test_keywords_are_short_and_said(turns: list[tuple[str, set[str]]]) -> None:
    """S3-14."""
    counts = observed()
    for number, (text, used) in enumerate(turns, start=OTHER_TURNS):
        counts.add(number, text, used)
    said = {term for text, used in turns if "a" in used for term in query_terms(text)}
    for keyword in learnt(counts, EntryText(memory_id="a", title="", text="")):
        assert 0 < len(keyword) <= MAX_KEYWORD_CHARACTERS
        assert set(query_terms(keyword)) <= said
