"""A small set through `hummock serve`, and the models that are asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench import toy_models
from bench.eval.answers import Answer, Place, answers, as_json, emb_space, installed, request, serving
from bench.eval.indexed import Indexed
from bench.eval.sets import CORPORA, Corpus, Question, Slice
from bench.eval.ways import AGENT, CHAT, CODE, RecallPath
from hummock import models
from hummock_client.v1 import recall_pb2
from hummock_tools.indexing.chunker import SourceFile
from tests.bench_eval import datasets

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return CORPORA["cmrc-zh"](datasets.write(tmp_path_factory.mktemp("datasets")))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("eval")
    return Place(directory=folder, models_dir=folder / "models", model=toy_models.TINY)


@pytest.fixture(scope="module")
def first_run(place: Place, corpus: Corpus) -> tuple[list[str], list[Answer], str]:
    said: list[str] = []
    with serving(place, corpus, said.append) as service:
        words = corpus.slices[1]
        return said, list(answers(service.channel, words, said.append)), emb_space(service)


def test_every_word_is_asked_by_every_path(first_run: tuple[list[str], list[Answer], str], corpus: Corpus) -> None:
    _, found, _ = first_run
    words = corpus.slices[1].questions
    assert [(each.question.id, each.path) for each in found] == [
        (word.id, path) for word in words for path in RecallPath
    ]


def test_words_are_found_by_the_keyword_path_and_answers_kept(first_run: tuple[list[str], list[Answer], str]) -> None:
    _, found, _ = first_run
    assert {each.judged.ranks for each in found if each.path is RecallPath.KEYWORD} == {(1,)}
    kept = json.loads(json.dumps(as_json(found)))
    assert [each["text"] for each in kept] == ["灯塔", "酱油", "阿桂"]
    assert all(set(each["paths"]) == set(RecallPath) for each in kept)


def test_a_kept_store_is_reused(first_run: tuple[list[str], list[Answer], str], place: Place, corpus: Corpus) -> None:
    said: list[str] = []
    with serving(place, corpus, said.append) as service:
        again = list(answers(service.channel, corpus.slices[1], said.append))
    assert "used again" in said[0]
    assert again == first_run[1]


def test_another_spaces_store_is_redone(
    first_run: tuple[list[str], list[Answer], str], place: Place, corpus: Corpus
) -> None:
    record = place.of(corpus) / "learnt.json"
    learnt = json.loads(record.read_text())
    record.write_text(json.dumps({**learnt, "emb_space": "0" * 32}))
    said: list[str] = []
    with serving(place, corpus, said.append) as service:
        assert emb_space(service) == first_run[2]
    assert "learning again" in said[0]
    assert json.loads(record.read_text())["emb_space"] == first_run[2]


def test_paths_are_chosen_in_the_request_and_a_user_is_asked_for_as_the_preset_ships() -> None:
    question = Question(id="q", project="p", text="灯塔", relevant=frozenset({"m"}))
    by_path = {path: request(question, path) for path in RecallPath}
    assert [list(by_path[path].paths) for path in RecallPath] == [
        [recall_pb2.RECALL_PATH_VECTOR], [recall_pb2.RECALL_PATH_KEYWORD], [], [],
    ]  # fmt: skip
    assert [by_path[path].late_interaction for path in RecallPath] == [False, False, False, True]
    assert {(each.tuning.relevance_weight, each.tuning.near_twin_bar) for each in by_path.values()} == {(1.0, 2.0)}
    asked = request(question, RecallPath.RERANKED, CHAT)
    assert asked.preset == recall_pb2.PRESET_CHAT
    assert asked.tuning.top_k == 10
    assert not asked.tuning.HasField("relevance_weight")
    assert not asked.tuning.HasField("near_twin_bar")
    assert not request(question, RecallPath.RERANKED, replace(CHAT, top_k=None)).tuning.HasField("top_k")


def put(models_dir: Path, name: str) -> None:
    model = models.REGISTRY[name]
    (models_dir / name).mkdir(parents=True)
    for file in model.files:
        (models_dir / name / file.name).touch()


def test_the_default_model_comes_first(tmp_path: Path) -> None:
    put(tmp_path, "bge-small-en-v1.5")
    put(tmp_path, "bge-small-zh-v1.5")
    pair = "bge-small-zh-v1.5+bge-small-en-v1.5"
    assert installed(tmp_path) == ["bge-small-zh-v1.5", "bge-small-en-v1.5", pair]


def test_half_a_model_other_folders_and_the_toy_model_are_not_installed(tmp_path: Path) -> None:
    put(tmp_path, "bge-small-zh-v1.5")
    (tmp_path / "bge-small-zh-v1.5" / "model.onnx").unlink()
    (tmp_path / "notes").mkdir()
    toy_models.build_tiny(tmp_path)
    assert installed(tmp_path) == installed(tmp_path / "nowhere") == []


def test_a_slice_of_another_preset_is_named_after_it() -> None:
    assert (AGENT.named("zh"), CHAT.named("zh")) == ("zh", "zh@chat")


def test_indexed_code_is_asked_once_its_vectors_are_there(place: Place) -> None:
    source = SourceFile(path="mill.py", data=b"def mill_flour(grain):\n    return grind(grain)\n")
    question = Question(id="q", project="c", text="mill_flour", relevant=frozenset({"mill.py#mill_flour"}))
    asked = Slice(set="code", name="en", questions=(question,), way=CODE)
    corpus = Corpus(name="code", projects={"c": Indexed.of([source]).memories()}, slices=(asked,))
    with serving(place, corpus, lambda line: None) as service:
        found = list(answers(service.channel, asked, lambda line: None))
    assert [each.path for each in found] == [RecallPath.FUSED, RecallPath.RERANKED]
    assert {each.judged.ranks for each in found} == {(1,)}
