"""Conversations from outside: who spoke and when, what was just said, what is old, and which times a query tells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, change_settings, chat, contents, failure, learn, stamp
from tests.service.inputs import note
from tests.service.running import Stubs
from tests.text.test_likeness import OTHERS, SPELLINGS, TYPED_OTHERWISE

pytestmark = pytest.mark.storeless

FIRST = datetime(2024, 1, 8, 20, tzinfo=UTC)
ASKED = "What did you suggest for the leaking roof?"
SUGGESTED = "For the leaking roof I suggest bitumen tape"


def at(days: int, minutes: int = 0) -> Timestamp:
    return stamp(FIRST + timedelta(days=days, minutes=minutes))


def turn(text: str, days: int, minutes: int = 0, *, by: str = "", is_model: bool = False) -> pb.Memory:
    origin = pb.ORIGIN_AI_OUTPUT if is_model else pb.ORIGIN_USER_INPUT
    return note(text, session_id=f"day {days}", speaker=by, origin=origin, create_time=at(days, minutes))


def test_what_the_assistant_said_answers_only_who_asks_for_it_if_the_project_allows(
    service: Stubs, project: str
) -> None:
    """S4-51, S4-53, 1.1-10, S4-46."""
    learn(service, project, turn("my leaking roof again", 0), turn(SUGGESTED, 0, 1, is_model=True))
    assert SUGGESTED in chat(service, project, ASKED)
    assert SUGGESTED in chat(service, project, "what was your advice for the leaking roof?")
    assert SUGGESTED not in chat(service, project, "What about the leaking roof?")
    assert SUGGESTED not in chat(service, project, ASKED, paths=[recall.RECALL_PATH_VECTOR])
    assert SUGGESTED not in chat(service, project, ASKED, filter=pb.MemoryFilter(origins=[pb.ORIGIN_USER_INPUT]))
    change_settings(service, project, "chat.origins", chat={"origins": [pb.ORIGIN_USER_INPUT]})
    assert SUGGESTED not in chat(service, project, ASKED)


def test_a_speaker_is_found_by_name(service: Stubs, project: str) -> None:
    said = [turn(f"I painted boat {n} and went home", n, by="Mia" if n % 2 else "Lin") for n in range(8)]
    learn(service, project, *said)
    for question in ("Which boat did Mia paint?", "MIA painted a boat"):
        hits = ask(service, project, question, top_k=4, relevance_weight=1.0, near_twin_bar=2.0).hits
        assert {hit.memory.speaker for hit in hits} == {"Mia"}
        assert ("MIA" if "MIA" in question else "Mia") in hits[0].matched_terms


@pytest.mark.parametrize("is_literal", [True, False])
def test_what_is_months_old_is_recalled_unless_the_document_is_followed_to_the_letter(
    service: Stubs, project: str, is_literal: bool
) -> None:
    """S4-22, S4-29, 1.1-10."""
    old = turn("The lighthouse keeper keeps bees behind the lighthouse", 0)
    learn(service, project, old, *(turn(f"the lighthouse on day {n}", 150 + n) for n in range(10)))
    paths = [recall.RECALL_PATH_VECTOR] if is_literal else []
    text = "Does the lighthouse keeper keep bees?"
    hits = ask(service, project, text, preset=recall.PRESET_CHAT, paths=paths, as_of=at(161)).hits
    found = [hit.memory.content for hit in hits]
    assert (found[:1] == [old.content]) == (not is_literal)
    assert all(hit.decay >= 0.9 for hit in hits) == (not is_literal)


def test_the_floor_of_decay_is_the_requests_or_the_projects(service: Stubs, project: str) -> None:
    """S4-46."""
    learn(service, project, turn("the lighthouse keeper", 0))

    def decay(**options: object) -> float:
        given = {"preset": recall.PRESET_CHAT, "as_of": at(140), **options}
        return ask(service, project, "lighthouse keeper", **given).hits[0].decay

    assert decay() == pytest.approx(0.9, abs=1e-3)
    assert decay(decay_floor=0.0) == pytest.approx(0.0, abs=1e-3)
    assert decay(preset=recall.PRESET_AGENT) == 1
    change_settings(service, project, "chat.decay_floor", chat={"decay_floor": 0.5})
    assert decay() == pytest.approx(0.5, abs=1e-3)
    assert decay(decay_floor=0.25) == pytest.approx(0.25, abs=1e-3)


@pytest.mark.long
def test_a_day_of_long_ago_is_found_by_its_date_alone(service: Stubs, project: str) -> None:
    """S4-24."""
    learn(service, project, *(turn(f"回家路上买了第{n}种水果，很甜", n) for n in range(120)))
    for text in ("1月20日我做了什么？", "What did I do on January 20th?"):
        hits = ask(service, project, text, preset=recall.PRESET_CHAT, as_of=at(125)).hits
        assert (hits[0].memory.content, hits[0].time_match) == ("回家路上买了第12种水果，很甜", 1)


def test_a_recall_may_be_of_a_span_of_time(service: Stubs, project: str) -> None:
    learn(service, project, *(turn(f"the tide of day {n}", n) for n in range(6)), note("the tide of no day"))
    where = pb.MemoryFilter(event_after=at(2), event_before=at(4))
    found = contents(ask(service, project, "tide", filter=where, near_twin_bar=2.0))
    assert set(found) == {"the tide of day 2", "the tide of day 3"}


def test_an_answer_gains_from_a_question_to_which_its_asker_added_something(service: Stubs, project: str) -> None:
    """The answer shares no word with the question, and without its speaker it is as far from it as any other turn."""
    said = (
        ("Mia", "Which soup shall we cook for the harbour festival?"),
        ("Mia", "No hurry at all."),
        ("Tom", "Pumpkin, I would say."),
        ("Mia", "Good night."),
        ("Tom", "Sleep well."),
    )
    learn(service, project, *(turn(text, 0, minute, by=speaker) for minute, (speaker, text) in enumerate(said)))
    asked = "Which soup for the harbour festival?"
    order = contents(ask(service, project, asked, relevance_weight=1.0, near_twin_bar=2.0))
    assert order.index("Pumpkin, I would say.") < order.index("No hurry at all.")


SENTENCE = "我下周要去杭州出差, remember to book the train"


def test_the_sentence_just_asked_is_never_recalled_when_learnt_as_user_input(service: Stubs, project: str) -> None:
    """S4-48 (T2), S4-27, 1.1-2."""
    learn(service, project, note(SENTENCE, origin=pb.ORIGIN_USER_INPUT))
    assert chat(service, project, SENTENCE) == []
    assert contents(ask(service, project, SENTENCE)) == []
    assert ask(service, project, SENTENCE).receipt.groups[0].echo == 1


@pytest.mark.timed
def test_a_sentence_said_longer_ago_than_the_echo_window_is_recalled(service: Stubs, project: str) -> None:
    """S4-27, 1.1-2: three seconds as an option."""
    learn(service, project, note(SENTENCE, origin=pb.ORIGIN_USER_INPUT))
    said = Timestamp()
    said.GetCurrentTime()
    for seconds, expected in ((0, []), (60, [SENTENCE])):
        as_of = Timestamp(seconds=said.seconds + seconds)
        assert chat(service, project, SENTENCE, as_of=as_of, echo_window=Duration(seconds=30)) == expected
        assert chat(service, project, SENTENCE, as_of=as_of) == []


def test_a_manual_note_that_equals_the_query_is_a_hit(service: Stubs, project: str) -> None:
    """1.1-2."""
    learn(service, project, note(SENTENCE))
    assert chat(service, project, SENTENCE) == [SENTENCE]


def test_two_chinese_characters_are_enough_for_a_query(service: Stubs, project: str) -> None:
    """1.1-2."""
    learn(service, project, note("每月的还款日是十五号"), note("天气很好"))
    assert contents(ask(service, project, "还款"))[0] == "每月的还款日是十五号"


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


CREATED = context.LEARN_STATUS_CREATED


@pytest.mark.parametrize("spellings", SPELLINGS[:2], ids=lambda several: several[0])
def test_spellings_of_one_sentence_take_one_place(service: Stubs, project: str, spellings: tuple[str, ...]) -> None:
    results = learn(service, project, *map(note, spellings)).results
    assert {result.status for result in results} == {CREATED}
    found = ask(service, project, f"什么时候 {spellings[0]} when was it", top_k=20, min_similarity=-1.0)
    assert len(contents(found)) == 1
    assert found.receipt.groups[0].duplicate == len(spellings) - 1


@pytest.mark.long
def test_texts_that_may_mean_different_things_are_both_shown(service: Stubs, project: str) -> None:
    pairs = [pair for pair in OTHERS if pair[0] not in TYPED_OTHERWISE]
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    learn(service, project, *map(note, texts))
    found = ask(service, project, "what is it about", top_k=100, min_similarity=-1.0)
    assert sorted(contents(found)) == sorted(texts)


def test_one_text_of_two_owners_two_speakers_and_two_days_is_shown_for_each(service: Stubs, project: str) -> None:
    days = [Timestamp(seconds=1_699_000_000 + 86_400 * day) for day in range(2)]
    told = [
        *(note("I drank two cups", metadata={"user_id": one}) for one in ("alice", "bob")),
        *(note("I drank two cups", speaker=one) for one in ("Alice", "Bob")),
        *(note("I drank two cups", event_time=day) for day in days),
        *(note("I drank two cups", id=one) for one in ("own-1", "own-2")),
    ]
    assert {result.status for result in learn(service, project, *told).results} == {CREATED}
    found = ask(service, project, "who drank how much", top_k=20, min_similarity=-1.0)
    # One is enough where two differ in nothing but their ids.
    assert len(contents(found)) == 7


@pytest.mark.parametrize(
    ("said", "asked", "is_echo"),
    [
        ("Hello　World  还款ＡＢＣ", "hello world 还款abc", True),
        ("明天几点开会？", "明天几点开会", True),
        ("明天几点开会", "明天几点开会？", True),
        ("明天几点开会？三点。", "明天几点开会", False),
        ("我们先还本金。", "我们先还本金!", True),
        ("When is the review?", "when is the review", True),
        ("ok", "OK...", True),
        ("今天好累", "今天好累😭", True),
        ("good morning :)", "good morning", True),
        ("早安😊！", "早安", True),
        ("The build is ✅", "The build is ❌?", False),
        ("🦄", "🦄", True),
        ("🦄 launch", "🦄", False),
        ("☕ machine", "🦄 machine", False),
        ("start with -v", "start with -V", False),
    ],
)
def test_an_echo_is_known_in_another_width_or_case_and_whatever_mark_or_emoji_ends_it(
    service: Stubs, project: str, said: str, asked: str, is_echo: bool
) -> None:
    """1.1-2."""
    learn(service, project, note(said, origin=pb.ORIGIN_USER_INPUT))
    assert contents(ask(service, project, asked, min_similarity=-1.0)) == ([] if is_echo else [said])


SHANGHAI = "Asia/Shanghai"
DIARY = {
    "the day before": "2026-11-25T10:00+08:00",
    "yesterday": "2026-11-26T10:00+08:00",
    "this morning": "2026-11-27T06:50+08:00",
}
MORNING, EVENING = "2026-11-27T07:00+08:00", "2026-11-27T20:00+08:00"


def clock_time(written: str) -> Timestamp:
    return stamp(datetime.fromisoformat(written).astimezone(UTC))


@pytest.fixture
def diary(service: Stubs, project: str) -> str:
    texts = ("整理了阳台上的花盆", "去河边拍了照片", "买了两斤橘子")
    told = zip(DIARY.items(), texts, strict=True)
    learn(service, project, *(note(text, id=id_, event_time=clock_time(time)) for (id_, time), text in told))
    return project


def live_in(service: Stubs, project: str, zone: str) -> None:
    change_settings(service, project, "times.zone", times={"zone": zone})


def first(service: Stubs, project: str, time: str, **options: Any) -> str:
    return ask(service, project, "我昨天做了什么？", as_of=clock_time(time), **options).hits[0].memory.id


@pytest.mark.parametrize("time", [MORNING, EVENING])
@pytest.mark.parametrize("preset", [recall.PRESET_AGENT, recall.PRESET_CHAT])
def test_yesterday_is_the_askers(service: Stubs, diary: str, time: str, preset: recall.Preset.ValueType) -> None:
    """The zone is set by the request, by the project, or by both, where the request's counts."""
    assert first(service, diary, time, preset=preset, time_zone=SHANGHAI) == "yesterday"
    assert first(service, diary, time, preset=preset, time_zone="+08:00") == "yesterday"
    live_in(service, diary, SHANGHAI)
    assert first(service, diary, time, preset=preset) == "yesterday"
    live_in(service, diary, "America/New_York")
    assert first(service, diary, time, preset=preset, time_zone=SHANGHAI) == "yesterday"


def test_searches_and_renderings_follow_the_zone_and_the_receipt_says_which_day(service: Stubs, diary: str) -> None:
    """S4-31."""
    asked = "我昨天做了什么？"
    found = service.context.Search(project=diary, query_text=asked, as_of=clock_time(MORNING), time_zone=SHANGHAI)
    assert found.results[0].memory_id == "yesterday"
    request = context.RenderRequest(
        project=diary,
        recall=recall.RecallRequest(query_text=asked, as_of=clock_time(MORNING), time_zone=SHANGHAI),
        form=context.RENDER_FORM_MEMORIES,
    )
    assert "[2026-11-26 10:00]" in service.context.Render(request).text
    request.utc_offset_minutes = -60
    assert "[2026-11-26 01:00]" in service.context.Render(request).text
    request.ClearField("utc_offset_minutes")
    request.recall.ClearField("time_zone")
    assert "[2026-11-26 02:00]" in service.context.Render(request).text
    live_in(service, diary, SHANGHAI)
    assert "[2026-11-26 10:00]" in service.context.Render(request).text
    answer = ask(service, diary, "我昨天做了什么？", as_of=clock_time(MORNING))
    (told,) = answer.receipt.times
    assert (told.start_time, told.end_time) == (
        clock_time("2026-11-26T00:00+08:00"),
        clock_time("2026-11-27T00:00+08:00"),
    )
    assert "times.zone" in answer.receipt.project_settings


@pytest.mark.parametrize("name", ["Asia/Nowhere", "../../etc/passwd", "UTC+8", "+25:00"])
def test_an_unknown_zone_is_refused_by_its_field(service: Stubs, diary: str, name: str) -> None:
    assert "time_zone" in failure(ask, service, diary, "昨天", time_zone=name).violations
    assert "settings.times.zone" in failure(live_in, service, diary, name).violations


MOVE = datetime(2025, 4, 18, 10, tzinfo=UTC)
DAYS = {
    -20: "bought seeds for the balcony",
    -9: "gave the old sofa away",
    -1: "packed the last boxes of books",
    0: "搬家公司一早就来了 the moving van came early",
    1: "slept until noon among the boxes",
    5: "met the neighbour from upstairs",
    30: "planted tomatoes in the yard",
}


def on(days: int) -> Timestamp:
    return stamp(MOVE + timedelta(days=days))


def keep_diary(service: Stubs, project: str) -> None:
    learn(service, project, *[note(text, id=f"d{day}", event_time=on(day)) for day, text in DAYS.items()])


def first_days(service: Stubs, project: str, question: str, count: int, **options: bool) -> set[str]:
    found = ask(service, project, question, preset=recall.PRESET_AGENT, **options)
    return {hit.memory.id for hit in found.hits[:count]}


@pytest.mark.parametrize(
    ("question", "begins", "days"),
    [
        ("搬家前一天我做了什么", -1, [-1]),
        ("搬家前两周我都做了些什么", -14, [-1, -9]),
        ("我搬家第二天在忙些什么", 1, [1]),
        ("搬家后的一周里发生了什么", 1, [1, 5]),
        ("What did I do on the day before the moving van came?", -1, [-1]),
        ("What happened in the week after the moving van came?", 1, [1, 5]),
    ],
)
def test_what_lies_beside_an_event_answers(
    service: Stubs, project: str, question: str, begins: int, days: list[int]
) -> None:
    keep_diary(service, project)
    assert first_days(service, project, question, len(days)) == {f"d{day}" for day in days}
    (told,) = ask(service, project, question).receipt.times
    assert told.phrase in question
    assert (told.start_time.ToDatetime(UTC).date() - MOVE.date()).days == begins


@pytest.mark.usefixtures("real_models")
def test_an_event_that_nothing_is_known_of_tells_no_time(service: Stubs, project: str) -> None:
    keep_diary(service, project)
    assert not ask(service, project, "what did I do on the day before the volcano erupted").receipt.times


def test_times_are_left_out_or_kept_until_the_event_has_another_day(service: Stubs, project: str) -> None:
    """S2-03. The cache goes by the content."""
    keep_diary(service, project)
    assert not ask(service, project, "搬家前一天我做了什么", time_words=False).receipt.times
    question = "搬家第二天我做了什么"
    assert contents(ask(service, project, question))[0] == DAYS[1]
    assert ask(service, project, question).receipt.cached
    learn(service, project, note(DAYS[0], id="d0", event_time=on(4)))
    after = ask(service, project, question)
    assert not after.receipt.cached
    assert contents(after)[0] == DAYS[5]
