"""`python -m bench.bridge.fit MODELS_DIR TARGET.npz < PAIRS`: the map of Chinese query vectors into another space.

A line of PAIRS is a JSON object: `zh` and `en`, a sentence in both languages, `p`, the page that they are of, and `u`:
pairs of use "train" are learnt from, those of "held" are asked for at the end. The map is linear: a ridge regression
first, then contrastive steps (InfoNCE over batches), whose negatives are the other sentences of a batch.

Source: van den Oord, Li & Vinyals, 2018 (InfoNCE).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hummock.models.basis import bases_of
from hummock.models.description import PairDescription
from hummock.models.registry import find
from hummock.models.single import SingleModel

PAIR = "bge-small-zh-v1.5+all-MiniLM-L6-v2"
MOST_PAIRS = 24_000
MOST_TESTED = 1_000
LEAST_CHARACTERS, MOST_CHARACTERS = 6, 120
RIDGE = 1.0
TEMPERATURE = 0.05
BATCH, EPOCHS, STEP = 512, 8, 1e-3
_DECAYS = (0.9, 0.999)
_LONGEST = 127

Matrix = NDArray[np.float32]
Sentences = list[tuple[str, str]]


def chosen(lines: Iterable[str]) -> tuple[Sentences, Sentences]:
    """Sentence pairs to learn from and to test with: drawn from those of middle length, each once."""
    drawn: dict[str, dict[str, str]] = {"train": {}, "held": {}}
    for line in lines:
        pair = json.loads(line)
        if pair["u"] in drawn and LEAST_CHARACTERS <= len(pair["zh"]) <= MOST_CHARACTERS:
            drawn[pair["u"]].setdefault(pair["zh"], pair["en"])
    rng = np.random.default_rng(0)
    found = []
    for use, most in (("train", MOST_PAIRS), ("held", MOST_TESTED)):
        pairs = sorted(drawn[use].items())
        found.append([pairs[place] for place in rng.permutation(len(pairs))[:most]])
    return found[0], found[1]


def embedded(models_dir: Path, pair: PairDescription, sentences: Sentences) -> tuple[Matrix, Matrix]:
    """Chinese ones as queries of the first model with a 1 appended, English ones by the second."""
    first, second = (
        SingleModel(part, models_dir / part.name, basis) for part, basis in zip(pair.parts, bases_of(pair), strict=True)
    )

    def both(sentence: tuple[str, str]) -> tuple[Matrix, Matrix]:
        asked = first.embed_query(sentence[0], with_tokens=False).vector
        return np.append(asked, np.float32(1)), second.embed_document(sentence[1], with_tokens=False).vector

    with ThreadPoolExecutor(2) as threads:
        rows = list(threads.map(both, sentences))
    return np.stack([row[0] for row in rows]), np.stack([row[1] for row in rows])


def ridge(asked: Matrix, wanted: Matrix) -> Matrix:
    """Weights that the contrastive steps start from, (first dim + 1, second dim)."""
    products = asked.T @ asked + RIDGE * np.eye(asked.shape[1], dtype=np.float32)
    found: Matrix = np.linalg.solve(products, asked.T @ wanted).astype(np.float32)
    return found


def contrasted(weights: Matrix, asked: Matrix, wanted: Matrix) -> Matrix:
    """The weights after steps of Adam by which each query comes nearer to its own sentence than to a batch's others."""
    rng = np.random.default_rng(1)
    moments = [np.zeros_like(weights), np.zeros_like(weights)]
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(asked))
        for start in range(0, len(asked) - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            gradient = _gradient(weights, asked[rows], wanted[rows])
            step += 1
            for moment, decay, power in zip(moments, _DECAYS, (1, 2), strict=True):
                moment *= decay
                moment += (1 - decay) * gradient**power
            mean, square = (moment / (1 - decay**step) for moment, decay in zip(moments, _DECAYS, strict=True))
            weights = (weights - STEP * mean / (np.sqrt(square) + 1e-8)).astype(np.float32)
    return weights


def _gradient(weights: Matrix, asked: Matrix, wanted: Matrix) -> Matrix:
    mapped = asked @ weights
    lengths = np.linalg.norm(mapped, axis=1, keepdims=True)
    unit = mapped / lengths
    logits = unit @ wanted.T / TEMPERATURE
    logits -= logits.max(axis=1, keepdims=True)
    share = np.exp(logits)
    share /= share.sum(axis=1, keepdims=True)
    share[np.arange(len(share)), np.arange(len(share))] -= 1
    by_unit = share @ wanted / (TEMPERATURE * len(share))
    by_mapped = (by_unit - unit * np.sum(by_unit * unit, axis=1, keepdims=True)) / lengths
    found: Matrix = asked.T @ by_mapped
    return found


def quantised(weights: Matrix) -> tuple[NDArray[np.int8], Matrix]:
    """Bytes, and a scale for each column."""
    scale = (np.abs(weights).max(axis=0) / _LONGEST).astype(np.float32)
    return np.rint(weights / scale).astype(np.int8), scale


def found_first(weights: Matrix, asked: Matrix, wanted: Matrix) -> float:
    """Share of the queries whose own sentence is nearest of all."""
    mapped = asked @ weights
    mapped /= np.linalg.norm(mapped, axis=1, keepdims=True)
    return float(np.mean(np.argmax(mapped @ wanted.T, axis=1) == np.arange(len(asked))))


def main(arguments: Sequence[str]) -> None:
    """Fit on the lines of standard input."""
    models_dir, target = map(Path, arguments)
    pair = find(PAIR, models_dir)
    if not isinstance(pair, PairDescription):
        raise SystemExit(f"{PAIR} is one model, and needs no map")
    learnt, tested = (embedded(models_dir, pair, each) for each in chosen(sys.stdin))
    begun = ridge(*learnt)
    weights, scale = quantised(contrasted(begun, *learnt))
    np.savez_compressed(target, weights=weights, scale=scale)
    shipped = weights.astype(np.float32) * scale
    print(f"{len(learnt[0])} pairs; of {len(tested[0])} found first: {found_first(begun, *tested):.3f} after the ridge")
    print(f"{found_first(shipped, *tested):.3f} as shipped")


if __name__ == "__main__":
    main(sys.argv[1:])
