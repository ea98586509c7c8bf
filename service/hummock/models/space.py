"""The identity of an embedding space: two vectors may meet only if all of this is equal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from hummock.core.embedding import EmbeddingSpace
from hummock.models.basis import TOKEN_DIM, TOKEN_MARK, TokenBasis, bases_of, load_centre
from hummock.models.description import GRAPH_FILE, EmbeddingModel, ModelDescription, PairDescription, TrioDescription
from hummock.text.template import TEMPLATE_VERSION

TEXT_TEMPLATE = f"header-newline-body.v1 memory.v{TEMPLATE_VERSION}"
"""How a chunk's text is put together (`embedder.py`) out of a memory (`text/template.py`); moves when that changes."""

PAIR_RECIPE_VERSION = 3
"""How two models become one (`pair.py`); moves when what the same two give must not meet what they gave before.

It did not move when a model that does not know a text's language came to read its beginning alone: half of the memories
of a store embedded either way, no slice lost (docs/decisions/013).
"""

TRIO_RECIPE_VERSION = 1
"""How three models become one (`trio.py`); moves likewise."""


def ingredients(model: ModelDescription, basis: TokenBasis) -> dict[str, str | int | bool]:
    """All that makes a model's vectors comparable, in the order in which it is hashed.

    A converted file counts as its source, and by the recipe, whose version is 0 for a graph used as published.
    """
    conversion = model.conversion
    weights = model.file(GRAPH_FILE) if conversion is None else conversion.weights
    found: dict[str, str | int | bool] = {
        "weights_sha256": str(weights.sha256),
        "recipe_version": conversion.recipe_version if conversion is not None else 0,
        "tokenizer_sha256": str(model.file(model.tokenizer_file).sha256),
        "lowercase": model.lowercase,
        "pooling": model.pooling.value,
        "query_prefix": model.query_prefix,
        "text_template": TEXT_TEMPLATE,
        "max_tokens": model.max_tokens,
        "dim": model.dim,
        "basis": basis.version,
    }
    # Spaces of before models had these keep their ids.
    if model.document_prefix:
        found["document_prefix"] = model.document_prefix
    if centre := load_centre(model.centre, model.dim):
        found["centre"] = centre.version
    if model.across:
        found["token_mark"] = TOKEN_MARK
    return found


def embedding_space(model: ModelDescription, basis: TokenBasis) -> EmbeddingSpace:
    """The space of the model's vectors."""
    return EmbeddingSpace(
        id=digest(ingredients(model, basis)),
        model=model.name,
        dim=model.dim,
        token_dim=TOKEN_DIM,
        max_tokens=model.max_tokens,
        scripts=model.scripts,
        calibration=model.calibration,
        token_mark=TOKEN_MARK / 127 if model.across else 0.0,
        across=model.across,
    )


def joined_space(model: PairDescription | TrioDescription, parts: Sequence[EmbeddingSpace]) -> EmbeddingSpace:
    """The space of several models' joined vectors; `parts` are theirs, in the order of the description.

    What a query asks of each is no part of its identity: it changes no stored vector.
    """
    recipe = ("trio", TRIO_RECIPE_VERSION) if isinstance(model, TrioDescription) else ("pair", PAIR_RECIPE_VERSION)
    return EmbeddingSpace(
        id=digest([*recipe, *[part.id for part in parts]]),
        model=model.name,
        dim=model.dim,
        token_dim=TOKEN_DIM,
        max_tokens=model.max_tokens,
        scripts=model.scripts,
        calibration=model.calibration,
        token_mark=TOKEN_MARK / 127,
        across=model.across if isinstance(model, TrioDescription) else None,
    )


def space_of(model: EmbeddingModel) -> EmbeddingSpace:
    """The space of a model's vectors; no file of the model is read."""
    parts = [embedding_space(part, basis) for part, basis in zip(model.parts, bases_of(model), strict=True)]
    return parts[0] if isinstance(model, ModelDescription) else joined_space(model, parts)


def digest(content: object) -> str:
    """32 hexadecimal digits of the content's JSON: the id of a space; any other content gives another id."""
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]
