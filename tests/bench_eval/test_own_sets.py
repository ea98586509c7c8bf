"""The sets that are made here: facts, noise, diaries, weeks, speakers, siblings and versions."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from bench.eval.corpora import CORPORA, may_hold
from bench.eval.diary import DIARISTS, diary
from bench.eval.diary_times import Span, events, spans
from bench.eval.follow_ups import follow_ups
from bench.eval.made import Draws
from bench.eval.noise import facts, noise_slices
from bench.eval.sets import Corpus, Slice
from bench.eval.siblings import siblings
from bench.eval.speakers import speakers
from bench.eval.talk import DATA, talk
from bench.eval.weeks import weeks
from hummock_client.v1 import memory_pb2 as pb
from tests.bench_eval import datasets

pytestmark = pytest.mark.long

NOWHERE = Path("nowhere")
THURSDAY = date(2026, 1, 8)
MAKERS = {
    "facts": facts,
    "diary": diary,
    "weeks": weeks,
    "speakers": speakers,
    "siblings": siblings,
    "follow-ups": follow_ups,
}


@pytest.fixture(scope="module")
def corpora() -> dict[str, Corpus]:
    return {name: make(NOWHERE) for name, make in MAKERS.items()}


def slice_of(corpus: Corpus, key: str) -> Slice:
    return next(each for each in corpus.slices if each.key == key)


@pytest.mark.parametrize("name", MAKERS)
def test_a_set_is_the_same_whenever_it_is_made(corpora: dict[str, Corpus], name: str) -> None:
    again = MAKERS[name](NOWHERE)
    assert again.fingerprint == corpora[name].fingerprint
    assert again.slices == corpora[name].slices


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_right_is_in_the_project_that_is_asked(corpora: dict[str, Corpus], name: str) -> None:
    ids = {project: [each.id for each in memories] for project, memories in corpora[name].projects.items()}
    assert all(len(set(each)) == len(each) for each in ids.values())
    for asked in corpora[name].slices:
        assert len({each.id for each in asked.questions}) == len(asked.questions)
        assert all(each.relevant <= set(ids[each.project]) for each in asked.questions)
        assert all(each.relevant for each in asked.questions) or asked.set == "noise"


@pytest.mark.parametrize("name", MAKERS)
def test_no_text_is_stored_twice(corpora: dict[str, Corpus], name: str) -> None:
    for memories in corpora[name].projects.values():
        texts = [each.content for each in memories]
        assert len(set(texts)) == len(texts)


def test_nobody_is_asked_before_the_last_memory(corpora: dict[str, Corpus]) -> None:
    for corpus in corpora.values():
        last = {
            project: max(each.create_time.ToNanoseconds() for each in memories)
            for project, memories in corpus.projects.items()
        }
        for question in (each for asked in corpus.slices for each in asked.questions):
            assert question.as_of is not None
            assert question.as_of.ToNanoseconds() > last[question.project]


def test_noise_is_answered_by_nothing_and_gets_as_many_hits_as_the_preset_gives(corpora: dict[str, Corpus]) -> None:
    noise = [each for each in corpora["facts"].slices if each.set == "noise"]
    assert [each.way.preset for each in noise] == ["AGENT", "CHAT", "CODE"]
    assert all(len(each.questions) >= 60 and each.way.top_k is None for each in noise)
    assert not any(question.relevant for each in noise for question in each.questions)


def test_code_is_asked_by_no_chat() -> None:
    assert [each.key for each in noise_slices("code", "p")] == ["noise-code", "noise-code@code"]


def test_a_paraphrase_shares_few_words_with_its_fact(corpora: dict[str, Corpus]) -> None:
    texts = {each.id: each.content.lower() for each in corpora["facts"].projects["facts"]}
    for question in slice_of(corpora["facts"], "facts-paraphrase@chat").questions:
        words = {word for word in re.findall(r"[a-z]{5,}", question.text.lower()) if len(word) > 4}
        assert sum(word in texts[question.id] for word in words) <= 1, question.id


def test_all_siblings_are_wanted_and_of_versions_the_newest_alone(corpora: dict[str, Corpus]) -> None:
    memories = {each.id: each for each in corpora["siblings"].projects["siblings"]}
    wanted = {
        question.id: question.relevant
        for key in ("siblings-notes", "siblings-code", "versions-notes", "versions-code")
        for question in slice_of(corpora["siblings"], key).questions
    }
    assert len(wanted) == 57
    for group, right in wanted.items():
        of_group = [each for each in memories.values() if each.id.rpartition("-")[0] == group]
        newest = max(of_group, key=lambda each: each.create_time.ToNanoseconds())
        assert right == ({newest.id} if group.startswith("v-") else {each.id for each in of_group})
        assert 2 <= len(of_group) <= 5


def test_versions_have_one_name_and_siblings_in_code_a_place_each(corpora: dict[str, Corpus]) -> None:
    memories = corpora["siblings"].projects["siblings"]
    parse_date = [each for each in memories if each.id.startswith("v-code-parse-")]
    assert {each.code_fragment.symbol for each in parse_date} == {"parse_date"}
    rules = [each for each in memories if each.id.startswith("v-en-password-")]
    assert {each.title for each in rules} == {"Password policy"}
    code = [each for each in memories if each.kind == pb.MEMORY_KIND_CODE_FRAGMENT]
    assert all(each.code_fragment.path and each.code_fragment.symbol for each in code)


def test_of_a_subject_one_decision_lies_in_the_week_that_is_asked_for(corpora: dict[str, Corpus]) -> None:
    words = json.loads((DATA / "weeks.json").read_text(encoding="utf-8"))
    for language, said in words.items():
        for question in slice_of(corpora["weeks"], f"weeks-{language}").questions:
            phrase, first, last = next(span for span in said["spans"] if question.id.endswith(f"-{span[0]}"))
            subject = question.id.removesuffix(f"-{phrase}")
            decided = [
                each for each in corpora["weeks"].projects[question.project] if each.id.startswith(f"{subject}-")
            ]
            days = {each.id: each.create_time.ToDatetime(UTC).date().isoformat() for each in decided}
            assert len(decided) == 6
            assert {id_ for id_, day in days.items() if first <= day <= last} == question.relevant


def test_everybody_is_asked_for_once_on_each_subject(corpora: dict[str, Corpus]) -> None:
    for language, full in (("en", "Anna Keller"), ("zh", "王建国")):
        asked = [slice_of(corpora["speakers"], f"speakers-{language}{kind}").questions for kind in ("", "-framed")]
        assert len({each.id for questions in asked for each in questions}) == 40
        turns = [each for each in corpora["speakers"].projects[f"speakers-{language}-full"] if each.speaker == full]
        assert len(turns) == 10


def test_a_diary_is_longer_than_a_year_and_some_entries_are_known_by_session(corpora: dict[str, Corpus]) -> None:
    for memories in corpora["diary"].projects.values():
        times = [each.create_time.ToNanoseconds() for each in memories]
        assert all(one < other for one, other in pairwise(times))
        assert (times[-1] - times[0]) / 86400e9 > 360
        with_time = [each for each in memories if each.HasField("event_time")]
        assert 0.6 < len(with_time) / len(memories) < 0.8
        assert all(bool(each.session_id) != each.HasField("event_time") for each in memories)


def test_the_right_entries_are_those_of_the_days_that_are_asked_about(corpora: dict[str, Corpus]) -> None:
    asked = {each.id: each for each in slice_of(corpora["diary"], "diary-zh-span").questions}
    week = asked["zh-ada-上周"]
    days = {each.removeprefix("zh-ada-")[:10] for each in week.relevant}
    assert days <= {f"2025-12-{day}" for day in (29, 30, 31)} | {f"2026-01-0{day}" for day in (1, 2, 3, 4)}
    memories = corpora["diary"].projects["diary-zh-ada"]
    first, last = datetime(2025, 12, 29, tzinfo=UTC).timestamp(), datetime(2026, 1, 5, tzinfo=UTC).timestamp()
    assert week.relevant == {each.id for each in memories if first <= each.create_time.seconds < last}


def test_a_day_without_a_year_is_the_last_such_day(corpora: dict[str, Corpus]) -> None:
    for diarist in DIARISTS:
        for key in ("diary-zh-day", "diary-en-day"):
            of_diarist = [each for each in slice_of(corpora["diary"], key).questions if f"-{diarist.name}-" in each.id]
            days = {date.fromisoformat(one.split("-", 2)[2][:10]) for each in of_diarist for one in each.relevant}
            assert all(0 < (diarist.asked - day).days < 366 for day in days)


def phrase(language: str, text: str) -> Span:
    return next(each for each in spans(language, THURSDAY) if each.phrase == text)


@pytest.mark.parametrize(
    ("language", "text", "first", "last"),
    [
        ("zh", "前天", date(2026, 1, 6), date(2026, 1, 6)),
        ("zh", "上周五", date(2026, 1, 2), date(2026, 1, 2)),
        ("zh", "上上个星期", date(2025, 12, 22), date(2025, 12, 28)),
        ("zh", "半个月前", date(2025, 12, 22), date(2025, 12, 26)),
        ("zh", "上个月中旬", date(2025, 12, 11), date(2025, 12, 20)),
        ("zh", "9月底", date(2025, 9, 25), date(2025, 9, 30)),
        ("zh", "国庆节", date(2025, 10, 1), date(2025, 10, 7)),
        ("zh", "元旦", date(2026, 1, 1), date(2026, 1, 1)),
        ("zh", "去年夏天", date(2025, 6, 1), date(2025, 8, 31)),
        ("en", "last Friday", date(2026, 1, 2), date(2026, 1, 2)),
        ("en", "last weekend", date(2026, 1, 3), date(2026, 1, 4)),
        ("en", "in early March", date(2025, 3, 1), date(2025, 3, 10)),
        ("en", "over Christmas", date(2025, 12, 24), date(2025, 12, 26)),
    ],
)
def test_phrases_mean_what_the_calendar_says(language: str, text: str, first: date, last: date) -> None:
    assert phrase(language, text) == Span(phrase=text, first=first, last=last)


def test_no_phrase_means_two_things() -> None:
    for language in ("zh", "en"):
        phrases = [each.phrase for each in spans(language, THURSDAY)]
        assert len(set(phrases)) == len(phrases)


def test_times_before_and_after_an_event_do_not_hold_its_day() -> None:
    day = date(2025, 5, 20)
    for language in ("zh", "en"):
        found = list(events(language, "x", day))
        assert not any(each.first <= day <= each.last for each in found)
        assert {(each.last - each.first).days + 1 for each in found} == {1, 7, 14}


def test_trees_are_cut_only_where_their_sets_are_asked_for() -> None:
    assert [name for name in CORPORA if may_hold(name, "xquad-zh")] == [
        name for name in CORPORA if name not in {"code", "history"}
    ]
    assert all(may_hold(name, None) for name in CORPORA)
    assert all(may_hold("code", asked) for asked in ("code", "code-zh@code", "noise", "noise-code"))
    assert may_hold("history", "history-file")


def test_draws_depend_on_their_name_and_number_alone() -> None:
    one, other = (Draws(name="a"), Draws(name="a"))
    assert [one.one("xyz") for _ in range(30)] == [other.one("xyz") for _ in range(30)]
    assert [Draws(name=str(each)).one("xyz") for each in range(30)].count("x") < 20
    assert sum(Draws(name=str(each)).happens(0.7) for each in range(1000)) == pytest.approx(700, abs=60)


# Conversations as turns over months.


@pytest.fixture(scope="module", params=["zh", "en"])
def corpus(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return talk(datasets.write(tmp_path_factory.mktemp("datasets")), request.param)


def test_an_exchange_is_two_turns_of_two_speakers(corpus: Corpus) -> None:
    (project,) = (name for name in corpus.projects if name.endswith("u00"))
    first, second, *_ = corpus.projects[project]
    assert (first.id, first.origin, first.speaker) == ("u00.0u", pb.ORIGIN_USER_INPUT, "u00")
    assert (second.id, second.origin, second.session_id) == ("u00.0a", pb.ORIGIN_AI_OUTPUT, first.session_id)
    assert second.speaker != first.speaker
    assert first.create_time.ToSeconds() < second.create_time.ToSeconds()


def test_what_is_asked_is_there_and_comes_later(corpus: Corpus) -> None:
    for asked in (each for one in corpus.slices for each in one.questions):
        memories = {memory.id: memory for memory in corpus.projects[asked.project]}
        assert asked.relevant <= memories.keys()
        assert asked.as_of is not None
        assert all(memory.create_time.ToSeconds() < asked.as_of.ToSeconds() for memory in memories.values())


def test_questions_of_our_own_name_one_turn_in_both_languages() -> None:
    header, *rows = (Path(DATA) / "when.tsv").read_text(encoding="utf-8").splitlines()
    assert header.split("\t") == ["evidence", "zh", "en"]
    cells = [row.split("\t") for row in rows]
    assert all(len(row) == 3 and all(row) for row in cells)
    assert len({row[0] for row in cells}) == len(cells)
