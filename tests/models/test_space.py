from __future__ import annotations

import re
from dataclasses import asdict, fields, replace

import pytest

from hummock.models import PAIRS, REGISTRY, ModelDescription, OnnxEmbedder
from hummock.models.basis import load_basis, random_basis
from hummock.models.pair import marked_bases
from hummock.models.space import SpaceIngredients, embedding_space, ingredients, pair_space, space_id


@pytest.fixture
def base(tiny: ModelDescription) -> SpaceIngredients:
    return ingredients(tiny, random_basis(tiny.dim))


@pytest.mark.parametrize("name", [field.name for field in fields(SpaceIngredients)])
def test_any_other_ingredient_is_another_space(base: SpaceIngredients, name: str) -> None:
    value = getattr(base, name)
    other = not value if isinstance(value, bool) else value + (1 if isinstance(value, int) else "x")
    changed = SpaceIngredients(**{**asdict(base), name: other})
    assert space_id(changed) != space_id(base)


def test_equal_ingredients_are_the_same_space(base: SpaceIngredients) -> None:
    assert space_id(replace(base)) == space_id(base)


def test_the_space_id_has_32_hexadecimal_digits(embedder: OnnxEmbedder) -> None:
    assert re.fullmatch(r"[0-9a-f]{32}", embedder.space.id)


def test_a_converted_models_space_follows_its_source_weights() -> None:
    model = REGISTRY["all-MiniLM-L6-v2"]
    assert model.conversion is not None
    basis = load_basis(model.basis, model.dim)
    newer = replace(model, conversion=replace(model.conversion, recipe_version=2))
    elsewhere = replace(model, conversion=replace(model.conversion, known_graphs_sha256=frozenset()))
    assert embedding_space(newer, basis).id != embedding_space(model, basis).id
    assert embedding_space(elsewhere, basis).id == embedding_space(model, basis).id


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
    "multilingual-e5-small": "d0a5824cd8a95fed6b435f91f1b69914",
    "gte-multilingual-base": "a7024e54d6f2791006b1a871b86ab467",
}
"""Spaces of stores that are out there."""


def test_stores_of_earlier_versions_are_of_the_same_spaces() -> None:
    """Moving one makes every store of that model unreadable."""
    spaces = {model.name: embedding_space(model, load_basis(model.basis, model.dim)) for model in REGISTRY.values()}
    for pair in PAIRS.values():
        of_each = (embedding_space(part, basis) for part, basis in zip(pair.parts, marked_bases(pair), strict=True))
        spaces[pair.name] = pair_space(pair, *of_each)
    assert {name: space.id for name, space in spaces.items()} == KEPT
