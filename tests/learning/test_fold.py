"""State that follows from events."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hummock.core.learning import (
    MAX_KEYWORDS,
    NEVER,
    FeedbackCounts,
    FeedbackGiven,
    Forgotten,
    Injected,
    Judgement,
    KeywordsLearned,
    KeywordsSet,
    KeywordUpdate,
    Learner,
    LearningEvent,
    LearningSettings,
    LearningState,
    Profile,
    SettingsChanged,
    Switched,
    TurnObserved,
    Usage,
    Verdict,
)
from hummock.learning.log import Rebuilt, digest
from tests.sure import sure

ON = Switched(enabled=True)
OFF = Switched(enabled=False)


def after(*events: LearningEvent) -> Rebuilt:
    rebuilt = Rebuilt()
    for event in events:
        rebuilt.apply(event)
    return rebuilt


def observed(turn: int, scope: str = "", text: str = "", used: tuple[str, ...] = ()) -> TurnObserved:
    return TurnObserved(scope=scope, turn=turn, user_text=text, used_ids=used)


def learned(turn: int, *analyzed: str, **found: tuple[str, ...]) -> KeywordsLearned:
    updates = tuple(KeywordUpdate(memory_id=one, keywords=keywords) for one, keywords in found.items())
    return KeywordsLearned(learner=Learner.LLM, turn=turn, updates=updates, analyzed_ids=(*analyzed, *found))


def test_new_keywords_are_appended_and_end_the_misses() -> None:
    """S3-14, S3-44: merged as a set."""
    profile = after(
        learned(3, "a"), learned(4, "a"), learned(7, a=("硬木头", "防潮")), learned(9, a=("防潮", "木"))
    ).profile("a")
    assert profile == Profile(keywords=("硬木头", "防潮", "木"), last_analyzed_turn=9, miss_count=0)


@pytest.mark.parametrize("found", [(), ("硬木头",)])
def test_an_analysis_without_a_new_keyword_is_a_miss(found: tuple[str, ...]) -> None:
    """S3-15."""
    rebuilt = after(learned(1, a=("硬木头",)), learned(5, a=found), learned(6, "b"))
    assert rebuilt.profile("a") == Profile(keywords=("硬木头",), last_analyzed_turn=5, miss_count=1)
    assert rebuilt.profile("b") == Profile(last_analyzed_turn=6, miss_count=1)


def test_a_profile_holds_no_more_keywords_than_there_is_room_for() -> None:
    many = tuple(f"k{number}" for number in range(MAX_KEYWORDS + 5))
    profile = sure(after(learned(1, a=many)).profile("a"))
    assert profile.keywords == many[:MAX_KEYWORDS]
    full = after(learned(1, a=many), learned(2, a=("one more",))).profile("a")
    assert full == replace(profile, last_analyzed_turn=2, miss_count=1)


def test_keywords_by_hand_replace_those_that_were_learnt() -> None:
    """S3-39."""
    rebuilt = after(learned(1, a=("x",)), KeywordsSet(memory_id="a", keywords=("y", "z", "y")))
    assert rebuilt.profile("a") == Profile(keywords=("y", "z"), last_analyzed_turn=1)
    assert after(KeywordsSet(memory_id="new", keywords=("y",))).profile("new") == Profile(keywords=("y",))


def test_references_count_and_what_was_sent_has_its_turn() -> None:
    """S3-19, S3-22, S3-33."""
    turn = Injected(scope="s", turn=4, referenced_ids=("a", "b"), injected_ids=("a", "b", "c"), dropped_ids=("b",))
    rebuilt = after(ON, Injected(scope="s", turn=1, referenced_ids=("c",), injected_ids=("c",)), turn)
    assert rebuilt.usage("s") == {
        "a": Usage(frequency=1, last_sent_turn=4, counted_turn=4),
        "b": Usage(frequency=1, last_sent_turn=NEVER, counted_turn=4),
        "c": Usage(frequency=1, last_sent_turn=4, counted_turn=1),
    }
    assert rebuilt.usage("another") == {}


def test_what_a_turn_was_about_changes_nothing_but_the_turn() -> None:
    """The words of a user may be blanked in the log, and it still gives the same state."""
    said = after(ON, observed(3, text="硬木头在哪?", used=("a",)))
    blanked = after(ON, observed(3))
    assert digest(said) == digest(blanked)


def test_feedback_is_counted_by_what_it_says_and_changes_nothing_else() -> None:
    """S1-17."""
    said = (Judgement.HELPFUL, Judgement.HELPFUL, Judgement.WRONG)
    verdicts = tuple(Verdict(memory_id=str(place), judgement=one) for place, one in enumerate(said))
    given = FeedbackGiven(query_text="q", verdicts=verdicts)
    assert after(given, given).state() == LearningState(events=2, feedback=FeedbackCounts(helpful=4, wrong=2))


@pytest.mark.parametrize(
    ("events", "turns", "turn"),
    [
        # lastAnalyzedTurn and lastSentTurn are on one scale where there is one scope.
        ((observed(102), Injected(scope="", turn=103), observed(103), observed(104)), 104, 104),
        # The turns of several scopes are all counted.
        ((observed(1, "a"), observed(2, "a"), observed(1, "b"), observed(3, "b")), 5, None),
        # Going back does not turn the clock back.
        ((observed(50), observed(4), observed(5)), 51, 5),
    ],
)
def test_the_clock_counts_the_turns_of_all_scopes(
    events: tuple[LearningEvent, ...], turns: int, turn: int | None
) -> None:
    """S3-15."""
    rebuilt = after(ON, *events)
    assert (rebuilt.state().turns, rebuilt.turn("")) == (turns, turn)


def test_turns_are_missed_while_learning_is_off_but_for_those_before_a_scopes_first() -> None:
    """S3-44."""
    rebuilt = after(ON, observed(10), OFF, observed(11), Injected(scope="", turn=12), observed(12), observed(15))
    assert rebuilt.state().missed_turns == 5
    rebuilt.apply(ON)
    assert rebuilt.state().missed_turns == 0
    assert after(OFF, observed(102)).state().missed_turns == 1


def test_switching_and_tuning_lose_nothing() -> None:
    """S3-38."""
    before = after(ON, Injected(scope="", turn=1, referenced_ids=("a",), injected_ids=("a",)), learned(1, a=("x",)))
    kept = (before.usage(""), dict(before.profiles()))
    for event in (OFF, ON, SettingsChanged(settings=LearningSettings(high_above=5, mid_above=2)), OFF):
        before.apply(event)
        assert (before.usage(""), dict(before.profiles())) == kept
    assert before.state().settings.high_above == 5


def test_what_is_removed_is_forgotten_in_every_scope() -> None:
    turns = [Injected(scope=scope, turn=1, referenced_ids=("a", "b"), injected_ids=("a",)) for scope in ("", "s")]
    rebuilt = after(ON, *turns, learned(1, a=("x",)), Forgotten(memory_ids=("a",)))
    assert rebuilt.usage("") == rebuilt.usage("s") == {"b": Usage(frequency=1, counted_turn=1)}
    assert rebuilt.profile("a") is None


def test_only_changed_keywords_are_new_to_whoever_looks_for_them() -> None:
    rebuilt = after(ON, learned(1, a=("x",)))
    assert rebuilt.state().keywords_event == 2
    rebuilt.apply(learned(2, a=("x",)))
    rebuilt.apply(observed(3))
    assert rebuilt.state().keywords_event == 2
    rebuilt.apply(KeywordsSet(memory_id="a", keywords=()))
    assert rebuilt.state().keywords_event == 5


def test_states_that_differ_in_anything_have_other_digests() -> None:
    """S3-28."""
    base = (ON, Injected(scope="s", turn=1, referenced_ids=("a",), injected_ids=("a",)), learned(1, a=("x",)))
    others = [
        (*base, observed(1, "s")),
        (*base[:1], replace(base[1], scope="t"), base[2]),
        (*base[:2], learned(1, a=("y",))),
        (*base[:2], learned(2, a=("x",))),
        (*base[:2], learned(1, b=("x",))),
        (OFF, *base[1:]),
        base[:2],
    ]
    digests = {digest(after(*events)) for events in (base, *others)}
    assert len(digests) == 1 + len(others)
