"""Questions in one language about memories in another: Japanese, Korean, French, German and Spanish (set `languages`).

The facts are ours (`data/languages.tsv`), each told and asked for in every language. A project holds the facts in one
language; each is asked for in one of the other four.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from bench.eval.noise import rows
from bench.eval.sets import Corpus, Question, Slice
from bench.eval.ways import AGENT, CHAT
from hummock_client.v1 import memory_pb2 as pb

LANGUAGES = ("ja", "ko", "fr", "de", "es")


def languages(_: Path) -> Corpus:
    """Every fact in five projects, one a language; the languages that ask take turns."""
    facts = [
        (name, {language: (text, question) for _, language, text, question in told})
        for name, told in groupby(rows("languages.tsv"), key=lambda row: row[0])
    ]
    projects = {
        f"languages-{stored}": tuple(
            pb.Memory(id=name, kind=pb.MEMORY_KIND_NOTE, content=told[stored][0]) for name, told in facts
        )
        for stored in LANGUAGES
    }
    questions = tuple(
        Question(
            id=f"{name}-{asking}-{stored}",
            project=f"languages-{stored}",
            text=told[asking][1],
            relevant=frozenset([name]),
        )
        for number, (name, told) in enumerate(facts)
        for place, stored in enumerate(LANGUAGES)
        for asking in [LANGUAGES[(place + 1 + number % (len(LANGUAGES) - 1)) % len(LANGUAGES)]]
    )
    slices = tuple(
        Slice(set="languages", name=way.named("across"), questions=questions, way=way) for way in (AGENT, CHAT)
    )
    return Corpus(name="languages", projects=projects, slices=slices)
