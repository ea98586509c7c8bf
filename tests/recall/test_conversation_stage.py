"""Preferences of a question about a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hummock.core.candidates import FoundBy
from hummock.core.memory import Memory, Origin
from hummock.core.recall import Decay, DecayMode, Plan, Wanted
from hummock.ports.store import Snapshot
from hummock.recall.fuse import Fused
from hummock.recall.prefer import boost_speakers, named_speaker
from hummock.store.tables.row_codec import speaker_hash
from hummock.text.questions import Trait
from hummock.text.speakers import calls_by_name, short_names, words_for_who_said
from tests.recall.candidates import Row, candidates, features, plan, ranked
from tests.render.samples import note

NAMES = (
    "小林",
    "Lin",
    "Mia",
    "Anna Keller",
    "Anna Berg",
    "Will Okafor",
    "王建国",
    "李娜（产品）",
    "王芳",
    "user",
    "assistant",
)
PEOPLE = np.array([speaker_hash(name) for name in ("Mia", "José  Ángel", "小明", "")], np.uint32)


def turn(memory_id: str, place: int, **what: object) -> Row:
    """A turn far from the others of its session."""
    return Row(id=memory_id, session=1, session_position=10 * place, **what)  # type: ignore[arg-type] # its own fields


def order(*rows: Row, text: str = "q", wanted: Wanted = Wanted.NOTHING) -> tuple[str, ...]:
    how = plan(wanted=wanted)
    return boosted(ranked(candidates(rows), how, features()), how, text).memory_ids


def boosted(before: Fused, how: Plan, text: str) -> Fused:
    return boost_speakers(before, how, text, cast(Snapshot, _Speakers(before)))


class _Speakers:
    """The memories of candidates as a project has them: their speakers alone count."""

    def __init__(self, of: Fused) -> None:
        self._names = {speaker_hash(name): name for name in NAMES}
        self._of = dict(zip(of.candidates.rows["doc"].tolist(), of.candidates.rows["speaker"].tolist(), strict=True))

    def load(self, docs: Sequence[int], *, full: bool) -> list[Memory | None]:
        return [replace(note(str(doc), "-"), speaker=self._names[self._of[doc]]) for doc in docs]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("What did Mia say about the boat?", "Mia"),
        ("MIA'S birthday", "mia"),
        ("when did josé ángel leave", "José Ángel"),
        ("小明什么时候去的", "小明"),
        ("上次小明推荐的书", "小明"),
        ("the miasma of the swamp", ""),
        ("did Mia meet 小明", ""),
        ("nobody in particular", ""),
        ("", ""),
    ],
)
def test_the_one_speaker_that_a_question_names_is_found(text: str, name: str) -> None:
    assert named_speaker(text, PEOPLE) == speaker_hash(name)


@given(text=st.text(max_size=300))
def test_no_text_is_an_error(text: str) -> None:
    assert named_speaker(text, PEOPLE) in PEOPLE.tolist()


def test_turns_of_the_named_speaker_come_before_equal_ones() -> None:
    rows = [turn("lin", 0, cosine=0.52, speaker="Lin"), turn("mia", 1, cosine=0.5, speaker="Mia")]
    assert order(*rows, text="what did Mia say") == ("mia", "lin")
    assert order(*rows, text="what was said") == ("lin", "mia")


@pytest.mark.parametrize(
    ("text", "speakers", "first"),
    [
        ("what did Okafor say about the pier?", ("Lin", "Will Okafor"), "Will Okafor"),
        ("what will Lin say about it?", ("Will Okafor", "Lin"), "Lin"),
        ("what does anna think of the pier", ("Lin", "Anna Keller"), "Anna Keller"),
        ("what does Anna think of the pier", ("Lin", "Anna Keller", "Anna Berg"), "Lin"),
        ("Anna Berg's view on the pier?", ("Lin", "Anna Keller", "Anna Berg"), "Anna Berg"),
        ("what does Mia think of Lin's idea?", ("Lin", "Mia"), "Mia"),
        ("when does Anna leave?", ("Lin", "Anna Keller"), "Lin"),
        ("what did I tell Mia about it?", ("Lin", "Mia"), "Lin"),
        ("can you tell me what Mia thinks?", ("Lin", "Mia"), "Mia"),
        ("老王对码头怎么说？", ("Lin", "王建国"), "王建国"),
        ("建國怎麼看？", ("Lin", "王建国"), "王建国"),
        ("老王对码头怎么说？", ("Lin", "王建国", "王芳"), "Lin"),
        ("快递小哥怎么说码头？", ("Lin", "小林"), "Lin"),
        ("老林怎么看码头？", ("Mia", "小林"), "小林"),
        ("李娜提过码头吗", ("Lin", "李娜（产品）"), "李娜（产品）"),
        ("我跟老王说过什么？", ("Lin", "王建国"), "Lin"),
        ("Anna 对 deploy 有什么意见？", ("Lin", "Anna Keller"), "Anna Keller"),
    ],
)
def test_turns_of_who_is_asked_for_come_first(text: str, speakers: tuple[str, ...], first: str) -> None:
    rows = [turn(name, place, cosine=0.6 - 0.1 * (place > 0), speaker=name) for place, name in enumerate(speakers)]
    assert order(*rows, text=text)[0] == first


@given(text=st.text(max_size=80), name=st.text(max_size=20))
def test_no_name_is_an_error(text: str, name: str) -> None:
    assert calls_by_name(name, name) is bool(short_names(name))
    assert calls_by_name(f"{text} {name}", name) is bool(short_names(name))
    assert text.startswith(words_for_who_said(text, len(text)))


def test_a_question_when_prefers_turns_that_speak_of_a_time() -> None:
    rows = [turn("plain", 0, cosine=0.6), turn("dated", 1, cosine=0.5, traits=int(Trait.TELLS_TIME))]
    assert order(*rows, wanted=Wanted.WHEN) == ("dated", "plain")
    assert order(*rows) == ("plain", "dated")


def test_a_question_when_leaves_a_question_its_score() -> None:
    asking = Row(id="asks", cosine=0.5, session=1, session_position=0, traits=int(Trait.ASKS))
    answer = Row(id="answers", cosine=0.45, session=1, session_position=1)
    assert order(asking, answer, wanted=Wanted.WHEN) == ("asks", "answers")
    assert order(asking, answer) == ("answers", "asks")


def test_what_a_model_said_is_preferred_where_it_is_asked_for() -> None:
    rows = [turn("user", 0, cosine=0.51), turn("model", 1, cosine=0.5, origin=Origin.AI_OUTPUT)]
    assert order(*rows, wanted=Wanted.FROM_ASSISTANT) == ("model", "user")
    assert order(*rows) == ("user", "model")


def test_what_is_named_and_what_stands_in_no_session_stays() -> None:
    held = Row(id="held", cosine=0.5, found_by=FoundBy.KEYWORD | FoundBy.HOLDER)
    dated = turn("dated", 1, cosine=0.9, traits=int(Trait.TELLS_TIME))
    assert order(held, dated, wanted=Wanted.WHEN) == ("held", "dated")
    note, other = Row(id="a", cosine=0.6), Row(id="b", cosine=0.5, traits=int(Trait.TELLS_TIME))
    assert order(note, other, wanted=Wanted.WHEN) == ("a", "b")


@given(
    cosines=st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=12),
    traits=st.lists(st.sampled_from([0, 4]), min_size=12, max_size=12),
)
def test_the_best_keeps_its_relevance_and_nothing_is_lost(cosines: list[float], traits: list[int]) -> None:
    rows = [turn(str(place), place, cosine=cosine, traits=traits[place]) for place, cosine in enumerate(cosines)]
    how = plan(wanted=Wanted.WHEN)
    before: Fused = ranked(candidates(rows), how, features())
    after = boosted(before, how, "q")
    assert sorted(after.row.tolist()) == sorted(before.row.tolist())
    assert after.relevance.max() == pytest.approx(before.relevance.max(), abs=1e-6)
    assert (np.diff(after.relevance) <= 1e-6).all()
    assert ((after.score >= 0) & (after.score <= 1)).all()


def test_a_floor_keeps_what_is_old_and_better_before_what_is_new() -> None:
    """S4-29, S4-46."""
    rows = [Row(id="old", cosine=0.6, age_days=98.0), Row(id="new", cosine=0.5)]
    ends = Decay(mode=DecayMode.EXPONENTIAL)
    floor = Decay(mode=DecayMode.EXPONENTIAL, floor=0.9)
    assert ranked(candidates(rows), plan(decay=ends), features()).memory_ids == ("new", "old")
    kept = ranked(candidates(rows), plan(decay=floor), features())
    assert kept.memory_ids == ("old", "new")
    assert np.exp(kept.log_decay) == pytest.approx([0.9 + 0.1 * np.exp(-7.0), 1.0])
