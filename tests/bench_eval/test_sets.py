from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.eval.made import Half, half_of
from bench.eval.sets import CORPORA, Corpus
from hummock_client.v1 import memory_pb2 as pb
from tests.bench_eval import datasets

pytestmark = pytest.mark.long

SLICES = {
    "xquad-en", "xquad-zh", "xquad-zh-en", "xquad-en-zh", "xquad-words", "xquad-mixed", "cmrc-zh", "cmrc-words",
    "xquad-both-zh-zh", "xquad-both-zh-en", "xquad-both-en-zh", "xquad-both-en-en",
    "cosqa-code", "cosqa-identifiers", "memorybank-zh", "memorybank-en", "memorybank-zh@chat", "memorybank-en@chat",
}  # fmt: skip


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Corpus]:
    folder = datasets.write(tmp_path_factory.mktemp("datasets"))
    return {name: make(folder) for name, make in CORPORA.items()}


def test_every_slice_is_there_once(corpora: dict[str, Corpus]) -> None:
    keys = [each.key for corpus in corpora.values() for each in corpus.slices]
    assert sorted(keys) == sorted(SLICES)


def test_the_relevant_memories_of_a_question_are_in_its_project(corpora: dict[str, Corpus]) -> None:
    for corpus in corpora.values():
        ids = {project: {memory.id for memory in memories} for project, memories in corpus.projects.items()}
        for question in (each for asked in corpus.slices for each in asked.questions):
            assert question.relevant
            assert question.relevant <= ids[question.project]


def test_chinese_questions_about_english_texts_ask_the_english_project(corpora: dict[str, Corpus]) -> None:
    english, across = corpora["xquad-en"].slices
    assert {each.project for each in across.questions} == {each.project for each in english.questions} == {"xquad-en"}
    assert [each.id for each in across.questions] == [each.id for each in english.questions]


def test_a_mixed_store_holds_each_paragraph_in_one_language(corpora: dict[str, Corpus]) -> None:
    memories = corpora["xquad-mixed"].projects["xquad-mixed"]
    assert [memory.id for memory in memories] == ["p0", "p1", "p2"]
    chinese = {memory.id for memory in memories if not memory.content.isascii()}
    for asked in corpora["xquad-mixed"].slices[1:]:
        answers = {answer for question in asked.questions for answer in question.relevant}
        assert answers == (chinese if asked.name.endswith("-zh") else {"p0", "p1", "p2"} - chinese)


def test_an_exchange_is_one_memory_with_its_day_as_session(corpora: dict[str, Corpus]) -> None:
    first, second = corpora["memorybank-en"].projects["memorybank-en-u00"]
    assert first.content == "I baked bread.\nOh."
    assert (first.session_id, first.speaker, first.origin) == ("2023-05-02", "u00", pb.ORIGIN_USER_INPUT)
    assert second.event_time.seconds - first.event_time.seconds == 60
    assert first.create_time == first.event_time


def test_conversations_are_asked_about_on_the_day_after_their_last(corpora: dict[str, Corpus]) -> None:
    question = corpora["memorybank-en"].slices[0].questions[0]
    assert question.as_of is not None
    assert question.as_of.ToJsonString() == "2023-05-03T12:00:00Z"
    assert all(each.as_of is None for each in corpora["xquad-zh"].slices[0].questions)


def test_titles_are_not_used(corpora: dict[str, Corpus]) -> None:
    for corpus in corpora.values():
        assert not any(
            (memory.title or memory.summary or memory.tags)
            for memories in corpus.projects.values()
            for memory in memories
        )


def test_a_limited_slice_keeps_the_order_of_its_questions(corpora: dict[str, Corpus]) -> None:
    asked = corpora["xquad-zh"].slices[0]
    kept = [each.id for each in asked.limited(5).questions]
    assert len(kept) == 5
    assert kept == [each.id for each in asked.questions if each.id in kept]
    assert asked.limited(None) == asked


def test_another_text_makes_another_fingerprint(tmp_path: Path, corpora: dict[str, Corpus]) -> None:
    folder = datasets.write(tmp_path)
    assert CORPORA["cmrc-zh"](folder).fingerprint == corpora["cmrc-zh"].fingerprint
    path = folder / "cmrc2018-dev-zh/corpus.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("灯塔", "灯台"), encoding="utf-8")
    assert CORPORA["cmrc-zh"](folder).fingerprint != corpora["cmrc-zh"].fingerprint


def test_the_real_conversations_are_all_there(shared: Callable[[str], Path]) -> None:
    corpus = CORPORA["memorybank-zh"](shared("datasets/memorybank-zh-en").parent)
    assert (len(corpus.projects), corpus.memory_count) == (15, 566)
    questions = corpus.slices[0].questions
    assert len(questions) == 100
    assert {half_of(each.id) for each in questions} == {Half.TUNE, Half.REPORT}
