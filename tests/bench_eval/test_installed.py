from __future__ import annotations

from pathlib import Path

from bench.eval.installed import installed
from hummock import models


def place(models_dir: Path, name: str) -> None:
    model = models.REGISTRY[name]
    (models_dir / name).mkdir(parents=True)
    for file in model.files:
        (models_dir / name / file.name).touch()


def test_the_default_model_comes_first(tmp_path: Path) -> None:
    place(tmp_path, "bge-small-en-v1.5")
    place(tmp_path, "bge-small-zh-v1.5")
    pair = "bge-small-zh-v1.5+bge-small-en-v1.5"
    assert installed(tmp_path) == ["bge-small-zh-v1.5", "bge-small-en-v1.5", pair]


def test_half_a_model_and_other_folders_are_not_installed(tmp_path: Path) -> None:
    place(tmp_path, "bge-small-zh-v1.5")
    (tmp_path / "bge-small-zh-v1.5" / "model.onnx").unlink()
    (tmp_path / "notes").mkdir()
    assert installed(tmp_path) == []


def test_the_toy_model_is_not_measured(tmp_path: Path) -> None:
    models.build_tiny(tmp_path)
    assert installed(tmp_path) == []


def test_without_a_directory_no_model_is_installed(tmp_path: Path) -> None:
    assert installed(tmp_path / "nowhere") == []
