from __future__ import annotations

from pathlib import Path

import pytest

from bench import model
from bench.command import Options
from bench.stores import Setting, Stores
from hummock import models


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
    monkeypatch.setattr(model, "A", Setting(name="tiny", memories=240, projects=3))
    monkeypatch.setattr(model, "ONE_OF_A", Setting(name="one-of-tiny", memories=400, projects=1, embedded="quarter"))
    monkeypatch.setattr(model, "WARM_UP_CALLS", 1)
    monkeypatch.setattr(model, "_CALLS", 4)
    tiny = models.build_tiny(tmp_path / "models")
    monkeypatch.setattr(model, "default_model", lambda _: tiny)

    found = model.measure(Options(stores=Stores(directory=tmp_path), models_dir=tmp_path / "models", queries=4))

    assert [row.row for row in found.rows] == [13, 13]
    for row, language in zip(found.rows, ("Chinese", "English"), strict=True):
        assert f"16 tokens of {language} text embedded by {tiny.name}" in row.what
