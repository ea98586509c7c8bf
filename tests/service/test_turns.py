"""Guarantees that a conversation relies on, through the socket."""

from __future__ import annotations

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, chat, contents, learn
from tests.service.inputs import note
from tests.service.running import Stubs

SENTENCE = "我下周要去杭州出差, remember to book the train"


def test_a_memory_is_recalled_by_the_very_next_call(service: Stubs, project: str) -> None:
    """S4-50 (T4), 1.1-1."""
    assert chat(service, project, "book the train") == []
    for turn in range(20):
        text = f"note {turn}: the train to platform {turn} leaves at {turn} o'clock"
        learn(service, project, note(text))
        assert text in contents(ask(service, project, text, top_k=50))


def test_the_sentence_just_asked_is_never_recalled_when_learnt_as_user_input(service: Stubs, project: str) -> None:
    """S4-48 (T2), S4-27, 1.1-2."""
    learn(service, project, note(SENTENCE, origin=pb.ORIGIN_USER_INPUT))
    assert chat(service, project, SENTENCE) == []
    assert contents(ask(service, project, SENTENCE)) == []
    assert ask(service, project, SENTENCE).receipt.groups[0].echo == 1


def test_a_sentence_said_longer_ago_than_the_echo_window_is_recalled(service: Stubs, project: str) -> None:
    """S4-27, 1.1-2: three seconds as an option."""
    learn(service, project, note(SENTENCE, origin=pb.ORIGIN_USER_INPUT))
    said = Timestamp()
    said.GetCurrentTime()
    for seconds, expected in ((0, []), (60, [SENTENCE])):
        as_of = Timestamp(seconds=said.seconds + seconds)
        assert chat(service, project, SENTENCE, as_of=as_of, echo_window=Duration(seconds=30)) == expected
        assert chat(service, project, SENTENCE, as_of=as_of) == []


def test_an_echo_in_another_width_or_case_is_an_echo(service: Stubs, project: str) -> None:
    """1.1-2."""
    learn(service, project, note("Hello　World  还款ＡＢＣ", origin=pb.ORIGIN_USER_INPUT))
    assert contents(ask(service, project, "hello world 还款abc")) == []


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("明天几点开会？", "明天几点开会"),
        ("明天几点开会", "明天几点开会？"),
        ("我们先还本金。", "我们先还本金!"),
        ("When is the review?", "when is the review"),
        ("ok", "OK..."),
    ],
)
def test_an_echo_with_another_final_mark_is_an_echo(service: Stubs, project: str, said: str, asked: str) -> None:
    """1.1-2."""
    learn(service, project, note(said, origin=pb.ORIGIN_USER_INPUT))
    assert contents(ask(service, project, asked)) == []


def test_what_goes_on_behind_the_query_is_no_echo(service: Stubs, project: str) -> None:
    """1.1-2."""
    learn(service, project, note("明天几点开会？三点。", origin=pb.ORIGIN_USER_INPUT))
    assert contents(ask(service, project, "明天几点开会")) == ["明天几点开会？三点。"]


def test_a_manual_note_that_equals_the_query_is_a_hit(service: Stubs, project: str) -> None:
    """1.1-2."""
    learn(service, project, note(SENTENCE))
    assert chat(service, project, SENTENCE) == [SENTENCE]


def test_what_the_model_said_is_recalled_only_when_switched_on(service: Stubs, project: str) -> None:
    """S4-51 (T5), S4-23, S4-53."""
    text = "The capital of Zhejiang is Hangzhou."
    learn(service, project, note(text, origin=pb.ORIGIN_AI_OUTPUT))
    query = "what is the capital of Zhejiang"
    assert chat(service, project, query) == []
    switched_on = pb.MemoryFilter(origins=[pb.ORIGIN_AI_OUTPUT])
    assert chat(service, project, query, filter=switched_on) == [text]


def test_two_chinese_characters_are_enough_for_a_query(service: Stubs, project: str) -> None:
    """1.1-2."""
    learn(service, project, note("每月的还款日是十五号"), note("天气很好"))
    assert contents(ask(service, project, "还款"))[0] == "每月的还款日是十五号"


def test_turns_of_a_session_are_never_merged(service: Stubs, project: str) -> None:
    first = learn(service, project, note("好的", origin=pb.ORIGIN_USER_INPUT, session_id="s"))
    second = learn(service, project, note("好的", origin=pb.ORIGIN_USER_INPUT, session_id="s"))
    assert first.results[0].id != second.results[0].id


@pytest.mark.parametrize("age_days", [0.0, 14.0, 3650.0])
def test_age_is_counted_from_as_of(service: Stubs, project: str, age_days: float) -> None:
    """S4-29, 1.1-3."""
    learn(service, project, note("the harbour is deep"))
    now = ask(service, project, "harbour").receipt.as_of
    now.FromNanoseconds(now.ToNanoseconds() + int(age_days * 86_400e9))
    asked = {"preset": recall.PRESET_CHAT, "as_of": now, "decay_floor": 0.0}
    hit = ask(service, project, "how deep is the harbour", **asked).hits[0]
    assert hit.age_days == pytest.approx(age_days, abs=0.01)
    assert hit.decay == pytest.approx(2.718281828 ** (-age_days / 14), rel=0.01)
