"""The identity of an embedding space: two vectors may meet only if all of this is equal."""

from __future__ import annotations

import hashlib
import json

from hummock.core.embedding import EmbeddingSpace
from hummock.models.basis import TOKEN_DIM, TokenBasis
from hummock.models.description import GRAPH_FILE, TOKENIZER_FILE, ModelDescription, PairDescription
from hummock.text.template import TEMPLATE_VERSION

TEXT_TEMPLATE = f"header-newline-body.v1 memory.v{TEMPLATE_VERSION}"
"""How a chunk's text is put together (`embedder.py`) out of a memory (`text/template.py`); moves when that changes."""

PAIR_RECIPE_VERSION = 3
"""How two models become one (`pair.py`); moves when what the same two give must not meet what they gave before.

It did not move when a model that does not know a text's language came to read its beginning alone: half of the memories
of a store embedded either way, no slice lost (docs/decisions/013).
"""

TOKEN_MARK = 92
"""What the token vectors of a pair's first model end in; those of the second end in -92. It is more than half of their
squared length of 127, so that no product of token vectors of different models is above 0."""


def ingredients(model: ModelDescription, basis: TokenBasis) -> dict[str, str | int | bool]:
    """All that makes a model's vectors comparable, in the order in which it is hashed.

    A converted graph counts as its source weights and its recipe, whose version is 0 for a graph used as published.
    """
    conversion = model.conversion
    weights = conversion.weights if conversion is not None else model.file(GRAPH_FILE)
    found: dict[str, str | int | bool] = {
        "weights_sha256": str(weights.sha256),
        "recipe_version": conversion.recipe_version if conversion is not None else 0,
        "tokenizer_sha256": str(model.file(TOKENIZER_FILE).sha256),
        "lowercase": model.lowercase,
        "pooling": model.pooling.value,
        "query_prefix": model.query_prefix,
        "text_template": TEXT_TEMPLATE,
        "max_tokens": model.max_tokens,
        "dim": model.dim,
        "basis": basis.version,
    }
    # Spaces of before models had one keep their ids.
    return found | {"document_prefix": model.document_prefix} if model.document_prefix else found


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
    )


def pair_space(pair: PairDescription, first: EmbeddingSpace, second: EmbeddingSpace) -> EmbeddingSpace:
    """The space of two models' joined vectors.

    What a query asks of each is no part of its identity: it changes no stored vector.
    """
    return EmbeddingSpace(
        id=digest(["pair", PAIR_RECIPE_VERSION, first.id, second.id]),
        model=pair.name,
        dim=pair.dim,
        token_dim=TOKEN_DIM,
        max_tokens=pair.max_tokens,
        scripts=pair.scripts,
        calibration=pair.calibration,
        token_mark=TOKEN_MARK / 127,
    )


def digest(content: object) -> str:
    """32 hexadecimal digits of the content's JSON: the id of a space; any other content gives another id."""
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]
