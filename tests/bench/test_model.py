from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench import model, toy_models
from bench.command import Options
from bench.model import ModelAlone, TextSession
from bench.stores import Setting, Stores
from hummock import models
from hummock.core.embedding import Calibration
from hummock.models import ModelDescription, PairDescription
from hummock.models.space import space_of

pytestmark = pytest.mark.long


def place(models_dir: Path, name: str) -> None:
    (models_dir / name).mkdir(parents=True)
    for file in ("model.onnx", "tokenizer.json", "model.json"):
        (models_dir / name / file).touch()


def test_the_default_is_two_models_where_both_are_there_else_one(tmp_path: Path) -> None:
    assert model.default_model(tmp_path) is None
    for name, default in (
        ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("bge-small-zh-v1.5", "bge-small-zh-v1.5+all-MiniLM-L6-v2"),
    ):
        place(tmp_path, name)
        found = model.default_model(tmp_path)
        assert found is not None
        assert found.name == default


def test_each_language_has_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "ONE_OF_A", Setting(name="one-of-tiny", memories=400, projects=1, embedded="quarter"))
    monkeypatch.setattr(model, "WARM_UP_CALLS", 1)
    monkeypatch.setattr(model, "_CALLS", 4)
    tiny = toy_models.build_tiny(tmp_path / "models")
    monkeypatch.setattr(model, "default_model", lambda _: tiny)
    found = model.measure(Options(stores=Stores(directory=tmp_path), models_dir=tmp_path / "models", queries=4))
    assert [each.name for each in found.headlines] == ["Chinese", "English"]
    assert all(each.beside.startswith(f"{tiny.name} alone, onnxruntime ") for each in found.headlines)


@pytest.fixture(scope="module")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def tiny(models_dir: Path) -> ModelDescription:
    return toy_models.build_tiny(models_dir)


@pytest.fixture(scope="module")
def pair(tiny: ModelDescription) -> PairDescription:
    return PairDescription(
        first=replace(tiny, query_prefix="检索："), second=replace(tiny, max_tokens=32), first_weight_latin=0.2,
        first_weight_han=1.0, calibration=Calibration(unrelated_latin=0.1, unrelated_han=0.2, near_twin_bar=0.9),
    )  # fmt: skip


@pytest.fixture
def inferred(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    run = TextSession.run

    def noted(session: TextSession, text: str, most_tokens: int | None = None) -> None:
        texts.append(text if most_tokens is None else f"{text}, at most {most_tokens} tokens")
        run(session, text, most_tokens)

    monkeypatch.setattr(TextSession, "run", noted)
    return texts


def test_of_a_stored_text_each_of_a_pair_infers_what_the_service_has_it_read(
    pair: PairDescription, models_dir: Path, inferred: list[str]
) -> None:
    ModelAlone(pair, models_dir).run_document(["repayment", "by month", "按月 by month"])
    both = "按月 by month"
    assert inferred == ["repayment, at most 192 tokens", "repayment", "by month", both, both]


@pytest.mark.parametrize(
    ("query", "texts"), [("先本后息", ["检索：先本后息"]), ("repayment", ["检索：repayment", "repayment"])]
)
def test_a_query_is_inferred_by_the_models_that_the_service_asks(
    pair: PairDescription, models_dir: Path, inferred: list[str], query: str, texts: list[str]
) -> None:
    ModelAlone(pair, models_dir).run_query(query)
    assert inferred == texts


def test_a_text_is_cut_to_as_many_tokens_as_asked_for(tiny: ModelDescription, models_dir: Path) -> None:
    alone = ModelAlone(tiny, models_dir)
    assert alone.cut("先本后息是什么", 4) == "先本后息"
    assert alone.cut("先本", 4) is None


def test_the_space_is_the_services(tiny: ModelDescription, pair: PairDescription, models_dir: Path) -> None:
    for each in (tiny, pair):
        embedder = models.open_embedder(each, models_dir, slots=1)
        assert space_of(each).id == embedder.space.id
        embedder.close()
