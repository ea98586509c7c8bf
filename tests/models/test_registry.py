from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hummock.models import AUTO, PAIRS, REGISTRY, ModelDescription, candidates, that_will_do
from hummock.models.description import EmbeddingModel, Hub
from hummock.models.files import RECORD_FILE

ALL = list(REGISTRY.values())


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.name)
def test_every_source_gives_every_file_that_is_downloaded(model: ModelDescription) -> None:
    assert model.sources
    wanted = {file.name for file in model.downloads}
    assert all(set(source.paths) == wanted for source in model.sources)
    assert all(file.sha256 is not None for file in model.downloads)


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.name)
def test_hub_revisions_are_pinned_commits(model: ModelDescription) -> None:
    assert all(len(source.revision) == 40 for source in model.sources if isinstance(source, Hub))


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.name)
def test_calibrations_leave_room_above_unrelated_texts(model: ModelDescription) -> None:
    calibration = model.calibration
    assert min(calibration.unrelated_latin, calibration.unrelated_han) >= 0
    assert max(calibration.unrelated_latin, calibration.unrelated_han) < calibration.near_twin_bar < 1


def test_auto_is_both_models_as_one_before_either_alone(tmp_path: Path) -> None:
    pair = PAIRS["bge-small-zh-v1.5+all-MiniLM-L6-v2"]
    assert candidates(AUTO, tmp_path) == (pair, *pair.parts)
    assert [part.name for part in pair.parts] == ["bge-small-zh-v1.5", "all-MiniLM-L6-v2"]


def test_a_start_fetches_nothing_where_a_model_that_knows_chinese_is_here(tmp_path: Path) -> None:
    pair, chinese, english = wanted = candidates(AUTO, tmp_path)
    assert that_will_do(wanted, tmp_path) is None
    place(tmp_path, english)
    assert that_will_do(wanted, tmp_path) is None
    assert that_will_do((english,), tmp_path) == english
    shutil.rmtree(tmp_path / english.name)
    place(tmp_path, chinese)
    assert that_will_do(wanted, tmp_path) == chinese
    place(tmp_path, english)
    assert that_will_do(wanted, tmp_path) == pair


def place(models_directory: Path, model: EmbeddingModel) -> None:
    """Files of a model by name, without what would be in them."""
    (described,) = model.parts
    (models_directory / model.name).mkdir()
    for name in (*(file.name for file in described.files), RECORD_FILE):
        (models_directory / model.name / name).touch()


def test_a_pair_is_found_by_the_names_of_both(tmp_path: Path) -> None:
    for name, pair in PAIRS.items():
        assert name == f"{pair.first.name}+{pair.second.name}"
        assert candidates(name, tmp_path) == (pair,)


def test_a_name_stands_for_its_one_model(tmp_path: Path) -> None:
    """S1-16: bge-m3 is one of them."""
    assert candidates("bge-m3", tmp_path) == (REGISTRY["bge-m3"],)


def test_a_wrong_hash_in_a_description_is_refused() -> None:
    file = REGISTRY["bge-m3"].files[0]
    with pytest.raises(ValueError, match="no SHA-256"):
        type(file)(name=file.name, sha256="abc")
    with pytest.raises(ValueError, match="no plain file name"):
        type(file)(name="../model.onnx", sha256=file.sha256)
