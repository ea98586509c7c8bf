"""Embedded parts of a memory, and the part repeated before every chunk of it."""

from __future__ import annotations

import pytest

from hummock.core.memory import CodeFragment, DomainKnowledge, MemoryIndex, Payload
from hummock.text.template import embedded

BODY = "@cached\ndef tide(\n    harbour: str,\n    day: int,\n) -> float:\n    return 1.0"
PATH = "sea/tide.py"


@pytest.mark.parametrize(
    ("title", "header"),
    [
        ("", "tide"),
        ("@cached def tide( harbour: str, day: int, ) -> float", "tide"),
        ("@cached def tide( harbour: str, d", "tide"),
        ("def ebb(harbour: str)", "tide\ndef ebb(harbour: str)"),
        ("When the water is high", "tide\nWhen the water is high"),
    ],
    ids=["none", "signature", "long signature", "of what is above", "words"],
)
def test_a_title_that_the_code_says_is_not_embedded_twice(title: str, header: str) -> None:
    payload = Payload(content=BODY, detail=CodeFragment(path=PATH, symbol="tide"))
    assert embedded(MemoryIndex(title=title), payload) == (header, BODY)


@pytest.mark.parametrize(
    ("title", "header"),
    [
        ("docs/README.md > 概览", "概览"),
        ("README.MD > Overview", "Overview"),
        ("my docs/guide.mdx > a.md > b", "a.md > b"),
        ("v1.5 > Choice", "v1.5 > Choice"),
        ("README.md", "README.md"),
        ("Overview > README.md > ", "Overview > README.md > "),
        ("", "harbour"),
    ],
)
def test_a_document_that_is_moved_is_embedded_as_before(title: str, header: str) -> None:
    payload = Payload(content="The tide comes twice.", detail=DomainKnowledge(domain="harbour", summary="Of tides."))
    assert embedded(MemoryIndex(title=title), payload) == (header, "Of tides.\nThe tide comes twice.")
