"""`python -m bench.centre MODEL MODELS_DIRECTORY TARGET.npz < PAIRS`: fits a centre on sentences in both languages.

A pair is a line of JSON with `zh` and `en`, which say the same: the two means differ by their language, not by their
content. Pairs that end in question marks stand for queries, those that end in full stops for stored texts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hummock.core.embedding import Embedding
from hummock.models.basis import load_basis
from hummock.models.description import ModelDescription
from hummock.models.registry import find
from hummock.models.single import SingleModel

MOST = 800
"""Pairs of each kind that are read."""
LANGUAGES = ("en", "zh")
"""In the order of a centre's rows."""

_SHORTEST = 12  # Characters of the Chinese side: what is shorter is a heading.


def chosen(lines: Iterable[str]) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Questions and sentences, at most MOST pairs of each; the same ones every time."""
    long = [pair for pair in map(json.loads, lines) if len(pair["zh"]) >= _SHORTEST]
    asking = [pair for pair in long if pair["zh"].endswith(("？", "?")) and pair["en"].endswith("?")]
    telling = [pair for pair in long if pair["zh"].endswith("。") and pair["en"].endswith(".")]
    draw = np.random.default_rng(0)
    asked, told = ([pairs[at] for at in draw.permutation(len(pairs))[:MOST]] for pairs in (asking, telling))
    return asked, told


def means(embed: Callable[[str], Embedding], pairs: Iterable[dict[str, str]]) -> NDArray[np.float32]:
    """Mean vector of the pairs in each language, (2, dim)."""
    found = [[embed(pair[language]).vector for language in LANGUAGES] for pair in pairs]
    return np.asarray(np.mean(found, axis=0, dtype=np.float64), np.float32)


def main(arguments: list[str]) -> None:
    """Fit on the lines of standard input; prints how many pairs ask and how many tell."""
    name, models_directory, target = arguments
    model = find(name, Path(models_directory))
    if not isinstance(model, ModelDescription):
        raise SystemExit(f"{name} is several models; each has its own centre")
    raw = SingleModel(replace(model, centre=""), Path(models_directory) / name, load_basis(model.basis, model.dim))
    asking, telling = chosen(sys.stdin)
    np.savez_compressed(
        target,
        query=means(lambda text: raw.embed_query(text, with_tokens=False), asking).astype(np.float16),
        document=means(lambda text: raw.embed_document(text, with_tokens=False), telling).astype(np.float16),
    )
    print(f"{len(asking)} pairs ask, {len(telling)} tell")


if __name__ == "__main__":
    main(sys.argv[1:])
