"""Names that tell which memories are versions of one thing."""

from __future__ import annotations

import pytest

from hummock.core.memory import (
    CodeFragment,
    DomainKnowledge,
    Draft,
    LearningRecord,
    Memory,
    MemoryIndex,
    MemoryKind,
    Origin,
    Payload,
)
from hummock.text.likeness import name_of
from hummock.text.template import derived_index, embedded

LONG = "The service is deployed in three steps.\nFirst the schema, then the readers, then the writers."


def memory(payload: Payload, kind: MemoryKind = MemoryKind.NOTE, title: str = "", id_: str = "m") -> Memory:
    draft = Draft(id=id_, kind=kind, index=MemoryIndex(title=title), payload=payload)
    return Memory(
        id=id_, kind=kind, origin=Origin.MANUAL, index=derived_index(draft), session_id="", speaker="", event_time=None,
        emotion_label="", trust=1.0, supersedes=(), source_hash="", create_time=0.0, update_time=0.0, content_hash=b"",
        fingerprint=b"", token_count=0, chunk_count=0, payload=payload,
    )  # fmt: skip


def code(path: str, symbol: str = "") -> Memory:
    return memory(Payload(content="x = 1", detail=CodeFragment(path=path, symbol=symbol)), MemoryKind.CODE_FRAGMENT)


def test_versions_of_a_symbol_have_its_name_and_that_of_their_file() -> None:
    """S2-07."""
    names = {name_of(code(f"src/parse_date_v{n}.py", "parse_date")) for n in (1, 2, 3)}
    assert names == {"src/parse_date.py parse_date"}
    assert name_of(code("a.py", "parse_date_v2")) == name_of(code("a_old.py", "parse_dateV3")) == "a.py parse_date"
    assert name_of(code("v1/dates.py", "parse_date")) == name_of(code("v2/dates.py", "parse_date"))


def test_other_functions_of_a_family_have_other_names() -> None:
    """S2-07."""
    assert len({name_of(code("cache.py", f"get_{what}")) for what in ("user", "order", "coupon")}) == 3
    assert name_of(code("web/fetch.py", "fetch_page")) != name_of(code("web/fetch_async.py", "fetch_page"))


def test_pieces_of_a_file_without_a_symbol_have_no_name() -> None:
    assert name_of(code("docs/ports.md")) == ""
    assert name_of(code("docs/ports_v2.md")) == "ports.md"


RECORD = Payload(detail=LearningRecord(question="How do we  deploy?", answer="By hand."))


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (memory(Payload(content=LONG), title="部署手册 第二版"), "部署手册"),
        (memory(Payload(content=LONG)), ""),
        # A title may be that of a table.
        (memory(Payload(content="staging: 10.0.0.1"), title="Environments"), ""),
        (memory(RECORD, MemoryKind.LEARNING_RECORD), "how do we deploy?"),
    ],
    ids=["a title that was given", "a derived one", "rows under one title", "a record's question"],
)
def test_what_has_a_name_of_its_own_is_told_by_it(named: Memory, expected: str) -> None:
    """S2-07."""
    assert name_of(named) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("deploy (2).md", "deploy.md"), ("notes version 3", "notes"), ("v2", ""), ("IPv4", ""), ("section 3", "")],
)
def test_a_mark_of_version_in_an_id_makes_a_name(name: str, expected: str) -> None:
    assert name_of(memory(Payload(content="A sentence."), id_=name)) == expected


# Embedded parts of a memory, and the part repeated before every chunk of it.


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
        ("docs/README.md > 概览", "概览"), ("README.MD > Overview", "Overview"),
        ("my docs/guide.mdx > a.md > b", "a.md > b"), ("v1.5 > Choice", "v1.5 > Choice"), ("README.md", "README.md"),
        ("Overview > README.md > ", "Overview > README.md > "), ("", "harbour"),
    ],
)  # fmt: skip
def test_a_document_that_is_moved_is_embedded_as_before(title: str, header: str) -> None:
    payload = Payload(content="The tide comes twice.", detail=DomainKnowledge(domain="harbour", summary="Of tides."))
    assert embedded(MemoryIndex(title=title), payload) == (header, "Of tides.\nThe tide comes twice.")
