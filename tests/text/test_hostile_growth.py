"""No text takes more time than its length accounts for, wherever stored or asked text, or a file's, is read.

`HOSTILE=1500 pytest tests/text/test_hostile_growth.py` tries so many shapes at every place; `make test` a few.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from hummock.core.learning import Entry
from hummock.core.memory import Draft, MemoryIndex, MemoryKind, Origin, Payload
from hummock.learning.phrases import phrases_of
from hummock.learning.references import references
from hummock.memories.quoted import Sources, passages
from hummock.recall.follow_up import leans_back
from hummock.recall.query_features import echo_hashes, exact_name, is_name
from hummock.render import escape
from hummock.render.passage import passage_of, words_of
from hummock.text import analyzer, attacks, credentials, likeness, markers, normalise, questions, template
from hummock.text.attacks import families_in
from hummock.text.event_reference import parse_event_reference
from hummock.text.glossary import gloss
from hummock.text.inverse_glossary import inverse_gloss
from hummock.text.keywords import keywords, phrases, stretches
from hummock.text.normalise import simplified
from hummock.text.question import Question
from hummock.text.questions import names_nothing, wanted_by
from hummock.text.spelling import may_be_misspelt
from hummock.text.terms import terms_of
from hummock.text.time_words import time_intervals
from hummock.text.tokens import EstimatedTokens
from hummock_kernels.analyzer import BODY
from hummock_tools.importing.formats import FileFormat, read_file
from hummock_tools.indexing.chunker import SourceFile, fragments
from hummock_tools.indexing.decoding import decoded
from hummock_tools.indexing.markdown import domain_entries
from hummock_tools.indexing.project_info import Manifests
from hummock_tools.indexing.skips import Rules, content_reason
from hummock_tools.setup import documents
from tests.growth import Shape, grows_with_its_length_alone, shapes

pytestmark = pytest.mark.long


SHAPES = int(os.environ.get("HOSTILE", "0"))
A_MEMORY = 1 << 14
"""Characters: a sixteenth of what a memory may hold; what is quadratic takes a twentieth of a second or more for it."""
A_QUERY = 8192


def draft(content: str, title: str = "") -> Draft:
    return Draft(
        kind=MemoryKind.NOTE,
        origin=Origin.MANUAL,
        index=MemoryIndex(title=title),
        payload=Payload(content=f"{content}."),
    )


def file(path: str, text: str) -> SourceFile:
    return SourceFile(path=path, data=text.encode(errors="replace"))


def each_json(text: str) -> list[object]:
    return [part for kind in FileFormat for part in read_file([text.encode(errors="replace")], kind)]


def as_json(text: str) -> object:
    try:
        return documents.with_value('{"a": 1, ' + text, ("servers", "hummock"), {"command": "hummock"})
    except (documents.NotReadable, ValueError, LookupError):
        return None


def whether_it_quotes(text: str) -> bool:
    """Repeats what a memory holds, as an answer does."""
    sources = Sources([text])
    return all(map(sources.quote, passages(text)))


def always(_: str) -> bool:
    return True


ENTRIES = [Entry(memory_id="m", title="the tide table", keywords=("还款",))]
Work = Callable[[str], Any]

OF_MEMORIES: dict[str, Work] = {
    "clean": normalise.clean,
    "one line": normalise.one_line,
    "prose": normalise.prose,
    "code": normalise.code,
    "simplified": simplified,
    "known share": lambda text: normalise.words_by_script(text),
    "written": likeness.written,
    "likeness": lambda text: likeness.likeness(text, (), is_code=False),
    "inert": markers.inert,
    "unspoken": markers.unspoken,
    "speaks": markers.speaks,
    "escaped prose": escape.prose,
    "fenced": escape.fenced,
    "quoted": escape.quoted,
    "listed": escape.listed,
    "inline": escape.inline,
    "heading": escape.heading,
    "attribute": escape.attribute,
    "string": escape.string,
    "parenthesised": escape.parenthesised,
    "id of the index": escape.listed_id,
    "open fence": lambda text: escape.open_fence(text.split("\n")),
    "passage": lambda text: passage_of(text, "tide 还款 password", 400),
    "passage by tokens": lambda text: passage_of(text, "tide", 400, EstimatedTokens().count),
    "secrets": credentials.redacted,
    "attacks": lambda text: families_in([text]),
    "orders": lambda text: attacks.reading_as_orders([text], [False]),
    "analysis": lambda text: terms_of([[(text, BODY)]]),
    "terms": analyzer.document_terms,
    "exact names": analyzer.exact_names,
    "tokens": EstimatedTokens().count,
    "traits": questions.traits_of,
    "pieces": lambda text: template.pieces_of(draft(text)),
    "index": lambda text: template.derived_index(draft(text)),
    "embedded": lambda text: template.embedded(MemoryIndex(title=text[:256]), Payload(content=text)),
    "phrases": lambda text: list(phrases(text, always)),
    "passages": lambda text: list(passages(text)),
    "references": lambda text: references(
        text, [Entry(memory_id="m", title="the tide table", keywords=("还款",))], 0.6
    ),
}
"""Functions that read the text of a memory or of a turn."""

OF_QUERIES: dict[str, Work] = {
    "query terms": analyzer.query_terms,
    "keywords": lambda text: keywords(Question(text), 32),
    "times": lambda text: time_intervals(Question(text), 1_700_000_000.0),
    "told by an event": lambda text: parse_event_reference(Question(text)),
    "gloss": lambda text: gloss(Question(text)),
    "inverse gloss": lambda text: inverse_gloss(Question(text)),
    "wanted": lambda text: wanted_by(Question(text)),
    "names nothing": names_nothing,
    "echoes": echo_hashes,
    "exact name": exact_name,
    "is a name": is_name,
    "leans back": leans_back,
    "words to look for": words_of,
    "misspelt": may_be_misspelt,
    "names of a title": phrases_of.__wrapped__,
    "quotation": whether_it_quotes,
}
"""Functions that read a question, or the beginning of a text."""

OF_FOLDED: dict[str, Work] = {
    "shown and echo": likeness.forms,
    "shown and echo, before a letter": lambda text: likeness.forms(f" a{text[:-3]}b"),
    "faces": likeness.without_faces,
}
"""Functions that fold a text for likeness, up to the length to which it is folded."""

OF_BACKGROUND: dict[str, Work] = {
    "stretches": lambda text: list(stretches(text, always)),
    "ignores": lambda text: Rules.read("", text.encode(errors="replace")),
}
"""Functions that are slow for long texts, and block nobody."""

OF_FILES: dict[str, Work] = {
    "encoding": lambda text: decoded(b"\xff" + text.encode(errors="replace")),
    "encoding with escapes": lambda text: decoded(b"\x1b" + text.encode(errors="replace")),
    "kind of file": lambda text: content_reason("notes.txt", text.encode(errors="replace")),
    "kind of SQL": lambda text: content_reason("dump.sql", text.encode(errors="replace")),
    "kind of Markdown": lambda text: content_reason("notes.md", text.encode(errors="replace")),
    "licence": lambda text: content_reason("LICENSE", text.encode(errors="replace")),
    "Markdown": lambda text: domain_entries(file("notes.md", f"# A\n\n{text}\n"), frozenset({"a/b.py"})),
    "lines": lambda text: fragments(file("notes.txt", text)),
    "Gradle": lambda text: Manifests().look_at(file("build.gradle", text)),
    "Go": lambda text: Manifests().look_at(file("go.mod", text)),
    "requirements": lambda text: Manifests().look_at(file("requirements.txt", text)),
    "configuration": as_json,
    "imports": each_json,
}
"""Functions that read a file on the client's side."""

A_PROJECT_READS = 1 << 11
"""Characters of what takes a millisecond a character or a line, alongside the calls or on the client's side."""

PLACES = {
    **{name: (work, A_MEMORY) for name, work in OF_MEMORIES.items()},
    **{name: (work, A_QUERY) for name, work in OF_QUERIES.items()},
    **{name: (work, likeness.MOST_FOLDED) for name, work in OF_FOLDED.items()},
    **{name: (work, A_MEMORY) for name, work in OF_FILES.items()},
    **{name: (work, A_PROJECT_READS) for name, work in OF_BACKGROUND.items()},
}
"""Each with the size to which its texts grow."""

SLOW_ONCE = ("`", "~", "=", "-", "*", "[", ".", "\t", " ", '\\"', "ex:")
"""Units of runs that a pattern has begun at again and again."""


def chosen(name: str) -> list[Shape]:
    """All shapes where it is asked for, else those that were slow once and a few that differ from place to place."""
    every = shapes(Random(name), SHAPES or 50)  # noqa: S311 # repeatable
    if SHAPES:
        return every
    return [Shape(unit=unit) for unit in SLOW_ONCE] + Random(name).sample(every, 8)  # noqa: S311


@pytest.mark.parametrize("name", PLACES)
def test_reading_takes_time_in_proportion_to_the_text(name: str) -> None:
    work, size = PLACES[name]
    work("warm 还款 up: ")
    slow = [(shape, told) for shape in chosen(name) if (told := grows_with_its_length_alone(work, shape, size))]
    assert slow == []
