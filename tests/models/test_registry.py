from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hummock.models import AUTO, PAIRS, REGISTRY, TRIOS, ModelDescription, OnnxEmbedder, candidates, that_will_do
from hummock.models.basis import load_basis, random_basis
from hummock.models.description import EmbeddingModel, Hub
from hummock.models.files import RECORD_FILE
from hummock.models.space import digest, embedding_space, ingredients, space_of

ALL = list(REGISTRY.values())


@pytest.mark.parametrize("model", ALL, ids=lambda model: model.name)
def test_every_model_is_pinned_whole_and_calibrated_above_unrelated_texts(model: ModelDescription) -> None:
    assert model.sources
    wanted = {file.name for file in model.downloads}
    assert all(set(source.paths) == wanted for source in model.sources)
    assert all(file.sha256 is not None for file in model.downloads)
    assert all(len(source.revision) == 40 for source in model.sources if isinstance(source, Hub))
    calibration = model.calibration
    assert min(calibration.unrelated_latin, calibration.unrelated_han) >= 0
    assert max(calibration.unrelated_latin, calibration.unrelated_han) < calibration.near_twin_bar < 1


def test_auto_is_three_models_as_one_before_two_and_before_either_alone(tmp_path: Path) -> None:
    trio, pair = (
        TRIOS["bge-small-zh-v1.5+all-MiniLM-L6-v2+use-multilingual-v3"],
        PAIRS["bge-small-zh-v1.5+all-MiniLM-L6-v2"],
    )
    assert candidates(AUTO, tmp_path) == (trio, pair, *pair.parts)
    assert [part.name for part in trio.parts] == ["bge-small-zh-v1.5", "all-MiniLM-L6-v2", "use-multilingual-v3"]


def test_a_start_fetches_nothing_where_a_model_that_knows_chinese_is_here(tmp_path: Path) -> None:
    trio, pair, chinese, english = wanted = candidates(AUTO, tmp_path)
    assert that_will_do(wanted, tmp_path) is None
    place(tmp_path, english)
    assert that_will_do(wanted, tmp_path) is None
    assert that_will_do((english,), tmp_path) == english
    shutil.rmtree(tmp_path / english.name)
    place(tmp_path, chinese)
    assert that_will_do(wanted, tmp_path) == chinese
    place(tmp_path, english)
    assert that_will_do(wanted, tmp_path) == pair
    place(tmp_path, REGISTRY["use-multilingual-v3"])
    assert that_will_do(wanted, tmp_path) == trio


def place(models_directory: Path, model: EmbeddingModel) -> None:
    """Files of a model by name, without what would be in them."""
    (described,) = model.parts
    (models_directory / model.name).mkdir()
    for name in (*(file.name for file in described.files), RECORD_FILE):
        (models_directory / model.name / name).touch()


def test_several_models_are_found_by_their_names(tmp_path: Path) -> None:
    joined = {**PAIRS, **TRIOS}
    for name, model in joined.items():
        assert name == "+".join(part.name for part in model.parts)
        assert candidates(name, tmp_path) == (model,)


def test_a_name_stands_for_its_one_model(tmp_path: Path) -> None:
    """S1-16: bge-m3 is one of them."""
    assert candidates("bge-m3", tmp_path) == (REGISTRY["bge-m3"],)


def test_a_wrong_hash_in_a_description_is_refused() -> None:
    file = REGISTRY["bge-m3"].files[0]
    with pytest.raises(ValueError, match="no SHA-256"):
        type(file)(name=file.name, sha256="abc")
    with pytest.raises(ValueError, match="no plain file name"):
        type(file)(name="../model.onnx", sha256=file.sha256)


@pytest.fixture
def base(tiny: ModelDescription) -> dict[str, str | int | bool]:
    return ingredients(replace(tiny, document_prefix="passage: "), random_basis(tiny.dim))


def test_equal_ingredients_are_one_space_and_any_other_is_another(base: dict[str, str | int | bool]) -> None:
    assert digest(dict(base)) == digest(base)
    for name, value in base.items():
        other = not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else f"{value}x"
        assert digest(base | {name: other}) != digest(base), name
    assert digest({name: value for name, value in base.items() if name != "document_prefix"}) != digest(base)


def test_the_space_id_has_32_hexadecimal_digits(embedder: OnnxEmbedder) -> None:
    assert re.fullmatch(r"[0-9a-f]{32}", embedder.space.id)


def test_a_converted_models_space_follows_its_source_weights() -> None:
    model = REGISTRY["all-MiniLM-L6-v2"]
    assert model.conversion is not None
    basis = load_basis(model.basis, model.dim)
    newer = replace(model, conversion=replace(model.conversion, recipe_version=2))
    assert embedding_space(newer, basis).id != embedding_space(model, basis).id


def test_registry_models_have_spaces_of_their_own() -> None:
    spaces = [embedding_space(model, load_basis(model.basis, model.dim)) for model in REGISTRY.values()]
    assert len({space.id for space in spaces}) == len(REGISTRY)
    assert [space.model for space in spaces] == list(REGISTRY)


KEPT = {
    "bge-small-zh-v1.5": "682f881808c9b2937554e5be8bde3822",
    "all-MiniLM-L6-v2": "5c9b0b45039ef94d674672be690976cf",
    "bge-small-en-v1.5": "cc5fb826450658f0a791e8b4c9d4b802",
    "bge-m3": "a234f6fff300cc70d8ccdbb01c0db189",
    "bge-small-zh-v1.5+all-MiniLM-L6-v2": "40a0184ae043368176240cd8ac9490ff",
    "bge-small-zh-v1.5+bge-small-en-v1.5": "b84bd99ca52fc50abafb66f5f8ed05fe",
    "multilingual-e5-small": "0e43f104156e639f92893fc5f02ca1a9",
    "granite-embedding-97m-multilingual-r2": "f5f6d709aec89eb186a0cf3c19b14f63",
    "gte-multilingual-base": "a7024e54d6f2791006b1a871b86ab467",
    "use-multilingual-v3": "336de11c86b4e77411d7df10e2590c24",
    "bge-small-zh-v1.5+all-MiniLM-L6-v2+use-multilingual-v3": "bf2c1d4e3abbb79b5503b2fbf1cc9d10",
}
"""Spaces of stores that are out there."""


def test_stores_of_earlier_versions_are_of_the_same_spaces() -> None:
    """Moving one makes every store of that model unreadable."""
    known: tuple[EmbeddingModel, ...] = (*REGISTRY.values(), *PAIRS.values(), *TRIOS.values())
    assert {model.name: space_of(model).id for model in known} == KEPT
