"""`python -m bench.tokens FILE …`: how far the estimate of tokens is from what exact counters count.

Each FILE is a `tokenizer.json` or a `.tiktoken` file. The texts are those of the data sets of the shared folder
(HUMMOCK_SHARED) and of this repository; the weights were fitted on part of them. The table goes to stdout.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from hummock.text.tokens import EstimatedTokens, TokenCounter, TokenizerTokens

_ROOT = Path(__file__).parent.parent
_PASSAGE_CHARACTERS = 1200
"""A file of this repository is cut into passages of about so many."""
_CORPORA = {
    "Chinese, encyclopaedia": ("cmrc2018-dev-zh/corpus.jsonl", "text"),
    "Chinese, conversation": ("memorybank-zh-en/corpus.zh.jsonl", "response"),
    "English, encyclopaedia": ("xquad-en-zh/corpus.en.jsonl", "text"),
    "English, conversation": ("memorybank-zh-en/corpus.en.jsonl", "response"),
    "Python functions": ("cosqa-code/corpus.jsonl", "text"),
}
_FILES = {
    "Markdown of this repository": ("README.md", "CHANGELOG.md", "docs/**/*.md"),
    "Python of this repository": ("service/hummock/*/*.py",),
    "prompts of this repository": ("tests/golden/render/*",),
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    counters = [TokenizerTokens.from_file(file) for file in parser.parse_args().files]
    print(f"| texts | number | {' | '.join(f'{one.name}: bias, p95' for one in counters)} |")
    print(f"|---|---:|{'---:|' * len(counters)}")
    for name, texts in _texts():
        cells = [_error(texts, counter) for counter in counters]
        print(f"| {name} | {len(texts)} | {' | '.join(cells)} |")


def _error(texts: Sequence[str], counter: TokenCounter) -> str:
    """Error over all texts together, and the 95th percentile of the error of one text, in percent."""
    exact = np.array([counter.count(text) for text in texts], np.float64)
    estimated = np.array([EstimatedTokens().count(text) for text in texts], np.float64)
    bias = 100 * (estimated.sum() / exact.sum() - 1)
    of_one = 100 * np.abs(estimated / exact - 1)
    return f"{bias:+.1f} %, {np.percentile(of_one, 95):.0f} %"


def _texts() -> Iterator[tuple[str, list[str]]]:
    shared = Path(os.environ.get("HUMMOCK_SHARED", _ROOT.parent / "shared"))
    for name, (file, field) in _CORPORA.items():
        lines = (shared / "datasets" / file).read_text("utf-8").splitlines()
        yield name, [text for line in lines if (text := json.loads(line)[field])]
    for name, patterns in _FILES.items():
        found = [path for pattern in patterns for path in sorted(_ROOT.glob(pattern))]
        yield name, [passage for path in found for passage in _passages(path.read_text("utf-8"))]


def _passages(text: str) -> Iterator[str]:
    passage = ""
    for line in text.splitlines(keepends=True):
        passage += line
        if len(passage) >= _PASSAGE_CHARACTERS:
            yield passage
            passage = ""
    if passage.strip():
        yield passage


if __name__ == "__main__":
    main()
