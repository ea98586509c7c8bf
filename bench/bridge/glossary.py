"""`python -m bench.bridge.glossary MINED.tsv TARGET`: the glossary that is shipped, out of mined terms and our own.

Mined terms come as `mine.py` writes them: zh, word, p (probability of the word given the term), count (of the term).
The words by hand (`terms.txt`) stand first.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hummock.text.glossary import GLOSSARY_VERSION, MAX_WORDS, Word

BY_HAND = Path(__file__).with_name("terms.txt")
COUNT_BY_HAND = 100
"""Taken for how often a term is met that the mined texts do not know: more often than most of theirs."""

LEAST_PROBABILITY = 0.15
RARITY = 0.6
"""Least probability of a mined word, and what a term of so many sentences needs besides, divided by their number: below
that most are wrong, names of code that stand next to a term by chance above all."""

LEAST_SHARE = 0.25
"""Share of the best word's probability that another word of the same term needs."""

DROPPED = "-"
"""Stands for the words of a term that is better left out."""

SECONDARY = 0.7
"""Probability of a term's words by hand but the first."""

_BY_HAND = re.compile(r"([\u4e00-\u9fff]+)=(.+?)(?=\s+[\u4e00-\u9fff]+=|\s*$)")

Terms = dict[str, list[Word]]


def by_hand(lines: Sequence[str]) -> Terms:
    """The terms of `terms.txt`, the last line of each; without words those that no glossary shall have."""
    terms: Terms = {}
    for line in lines:
        if line.startswith("#"):
            continue
        for term, words in _BY_HAND.findall(line):
            said = [] if words == DROPPED else words.split("/")
            terms[term] = [(word, 1.0 if place == 0 else SECONDARY) for place, word in enumerate(said)]
    return terms


def mined(rows: Iterator[Mapping[str, str]]) -> tuple[Terms, dict[str, int]]:
    """Terms with their likely words, the likeliest first; and how often each term was met."""
    terms: Terms = {}
    counts: dict[str, int] = {}
    for row in rows:
        terms.setdefault(row["zh"], []).append((row["word"], float(row["p"])))
        counts[row["zh"]] = int(row["count"])
    for term, words in terms.items():
        words.sort(key=lambda word: (-word[1], word[0]))
        least = max(LEAST_PROBABILITY + RARITY / counts[term], LEAST_SHARE * words[0][1])
        terms[term] = [word for word in words if word[1] >= least]
    return {term: words for term, words in terms.items() if words}, counts


def united(first: Terms, second: Terms) -> Terms:
    """The terms of both, by the words of the first where it has any; none that it drops."""
    terms = {**second, **first}
    return {term: terms[term][:MAX_WORDS] for term in sorted(terms) if terms[term]}


def text_of(terms: Terms, counts: Mapping[str, int]) -> str:
    """The file: its version, then a line a term: the term, its count, its words with their probabilities."""
    lines = [f"# {GLOSSARY_VERSION}"]
    for term, words in terms.items():
        said = (f"{word}:{round(p, 2):g}" for word, p in words)
        lines.append("\t".join([term, str(counts.get(term, COUNT_BY_HAND)), *said]))
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> None:
    """Write the glossary."""
    source, target = map(Path, arguments)
    with source.open(encoding="utf-8", newline="") as lines:
        of_texts, counts = mined(iter(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)))
    hand = by_hand(BY_HAND.read_text(encoding="utf-8").splitlines())
    target.write_text(text_of(united(hand, of_texts), counts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
