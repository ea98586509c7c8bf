"""Conversations as turns over months."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.eval.sets import Corpus
from bench.eval.talk import DATA, talk
from hummock_client.v1 import memory_pb2 as pb
from tests.bench_eval import datasets

pytestmark = pytest.mark.long


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
