from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bench.toy_models import build_tiny
from hummock.models import ModelDescription, is_present, load, verify
from hummock.models.description import DESCRIPTION_FILE, GRAPH_FILE, TOKENIZER_FILE, Conversion, ModelFile
from hummock.models.errors import (
    DescriptionInvalid,
    ModelFileAltered,
    ModelFileMissing,
    ModelsDirectoryUnusable,
    ModelUnknown,
)
from hummock.models.files import RECORD_FILE, sha256_of, turn, write_record
from hummock.models.registry import find


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture
def copied(tiny_files: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_files, tmp_path / "tiny"))


def converted(tiny: ModelDescription) -> ModelDescription:
    """The toy model as if its graph were converted here."""
    checkpoint = ModelFile(name="model.safetensors", sha256="1" * 64)
    config = ModelFile(name="config.json", sha256="2" * 64)
    return replace(
        tiny,
        files=(ModelFile(name=GRAPH_FILE, sha256=None), tiny.file(TOKENIZER_FILE)),
        conversion=Conversion(recipe_version=1, config=config, weights=checkpoint),
    )


def test_untouched_files_and_a_converted_graph_are_accepted(tiny: ModelDescription, copied: Path) -> None:
    verify(tiny, copied)
    assert is_present(tiny, copied)
    model = converted(tiny)
    write_record(model, copied)
    verify(model, copied)
    flip_a_byte(copied / GRAPH_FILE)
    with pytest.raises(ModelFileAltered):
        verify(model, copied)


@pytest.mark.parametrize("name", [GRAPH_FILE, TOKENIZER_FILE])
def test_one_altered_byte_is_refused_before_the_load(tiny: ModelDescription, copied: Path, name: str) -> None:
    expected = sha256_of(copied / name)
    flip_a_byte(copied / name)
    with pytest.raises(ModelFileAltered, match="hummock models pull tiny") as caught:
        load(tiny, copied)
    assert (caught.value.path, caught.value.expected_sha256) == (copied / name, expected)
    assert caught.value.actual_sha256 == sha256_of(copied / name)


@pytest.mark.parametrize("name", [GRAPH_FILE, TOKENIZER_FILE])
def test_a_missing_file_is_named_with_its_fix(tiny: ModelDescription, copied: Path, name: str) -> None:
    (copied / name).unlink()
    with pytest.raises(ModelFileMissing, match=f"{name} is missing; fetch it with `hummock models pull tiny`"):
        load(tiny, copied)
    assert not is_present(tiny, copied)


def test_a_converted_graph_without_record_is_not_present(tiny: ModelDescription, copied: Path) -> None:
    model = converted(tiny)
    (copied / RECORD_FILE).unlink()
    assert not is_present(model, copied)
    with pytest.raises(ModelFileMissing, match=RECORD_FILE):
        verify(model, copied)


@pytest.mark.parametrize("record", ["", "[]", '{"files": {}}', '{"weights_sha256": "3", "recipe_version": 1}'])
def test_a_record_of_something_else_is_refused(tiny: ModelDescription, copied: Path, record: str) -> None:
    model = converted(tiny)
    (copied / RECORD_FILE).write_text(record)
    with pytest.raises(ModelFileAltered, match="record of this model's conversion"):
        verify(model, copied)


def test_the_record_of_an_older_recipe_is_refused(tiny: ModelDescription, copied: Path) -> None:
    model = converted(tiny)
    write_record(model, copied)
    record = json.loads((copied / RECORD_FILE).read_text())
    (copied / RECORD_FILE).write_text(json.dumps({**record, "recipe_version": 0}))
    with pytest.raises(ModelFileAltered):
        verify(model, copied)


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ModelsDirectoryUnusable, match="file/models"), turn(tmp_path / "file" / "models"):
        pass


def test_a_directory_that_describes_itself_is_a_model(tiny: ModelDescription, models_directory: Path) -> None:
    assert find("tiny", models_directory) == tiny


@pytest.mark.parametrize("name", ["nonesuch", "", "..", "../tiny", "a/b"])
def test_an_unknown_model_is_an_error_that_lists_the_known(models_directory: Path, name: str) -> None:
    with pytest.raises(ModelUnknown, match="known models: auto, bge-small-zh"):
        find(name, models_directory)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"name": "tiny", "files": []}'])
def test_a_broken_description_is_named(copied: Path, content: str) -> None:
    (copied / DESCRIPTION_FILE).write_text(content)
    with pytest.raises(DescriptionInvalid, match=DESCRIPTION_FILE):
        find("tiny", copied.parent)


@pytest.mark.long
def test_the_toy_model_is_the_same_on_every_build(tiny: ModelDescription, tmp_path: Path) -> None:
    assert build_tiny(tmp_path) == tiny
    assert build_tiny(tmp_path) == tiny
