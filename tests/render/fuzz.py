"""Renders memories that try to forge and to close what delimits them, and reads them back.

`python -m tests.render.fuzz --cases 100000 --seed 1` is `make fuzz`; a failure names the case, which can be run alone.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from random import Random

from msgspec.structs import replace

from hummock.core.memory import Memory, MemoryIndex, MemoryKind, Origin
from hummock.core.project import ProjectInfo
from hummock.core.render import LITERAL_QUOTAS, Locale, Quotas, SearchResult, Tier
from hummock.render.context import render_context
from hummock.render.escape import clean, inline
from hummock.render.listing import body_of, render_index, render_memories
from hummock.render.search import text_of
from hummock.render.section import Frame, Section, Selected, wording_of
from hummock.render.waterfall import render_waterfall
from hummock.text.tokens import EstimatedTokens
from tests.render import reader
from tests.render.hostile import assert_disarmed, assert_nobody_speaks, hostile_text
from tests.render.samples import domain, fragment, note, record

ZH = wording_of(Locale.ZH)
COUNTER = EstimatedTokens()
_MOST_MEMORIES = 5
_ROOMY = 1_000_000


def check(seed: int, case: int) -> None:
    """One case in every form. Raises AssertionError when a reader does not find what was stored."""
    random = Random(f"{seed}/{case}")  # noqa: S311 - to be repeated, not to be secret
    check_waterfall(random)
    check_index(random)
    check_memories(random)
    check_context(random)
    check_search(random)


def check_waterfall(random: Random) -> None:
    """Bodies in full and entries of the index, of memories that are hostile in every field."""
    notes = _notes(random)
    section = render_waterfall(_selected(notes.values()), _frame(random.randrange(1, 900)))
    full, listed = reader.read_waterfall(section.text, ZH)
    assert_disarmed(section.text)
    assert_nobody_speaks(section.text, keeps_keys=_has_read(notes))
    assert _shown(section) == [
        *((memory_id, Tier.FULL) for memory_id, _ in full),
        *((one.memory_id, Tier.INDEX) for one in listed),
    ]
    cut = [one.memory_id for one in section.memories if "cut to" in one.reason]
    assert cut in ([], [memory_id for memory_id, _ in full[:1]])
    for memory_id, body in full:
        if memory_id in cut:
            passage = body.removeprefix("...\n").removesuffix("... (已截断)")
            assert passage.strip("\n") in _body(notes[memory_id])
        else:
            assert body == _body(notes[memory_id])
    _check_listed(listed, notes)


def check_index(random: Random) -> None:
    """Entries of the index alone."""
    notes = _notes(random)
    section = render_index(_selected(notes.values()), _frame(_ROOMY))
    listed = reader.read_index(section.text, f"<memory_index>\n{ZH.index_notice.format(tool='read_memory')}\n\n")
    assert_disarmed(section.text)
    assert_nobody_speaks(section.text)
    assert [one.memory_id for one in listed] == list(notes)
    _check_listed(listed, notes)


def check_memories(random: Random) -> None:
    """Lines of the memories form."""
    notes = [one for one in _notes(random).values() if _named(one)]
    section = render_memories(_selected(notes), _frame(_ROOMY))
    if not notes:
        assert section.text == ""
        return
    assert_disarmed(section.text)
    assert_nobody_speaks(section.text, keeps_keys=_has_read({one.id: one for one in notes}))
    read = reader.read_memories(section.text, ZH)
    assert read == [(one.origin.name.lower(), _named(one)) for one in notes]


def check_search(random: Random) -> None:
    """Checks the search tool's text: for each result a numbered line, the source and the content, and no other line."""
    notes = _notes(random)
    results = tuple(
        SearchResult(type="code", memory_id=one.id, title=one.index.title, content=_body(one), score=0.5, metadata={})
        for one in notes.values()
    )
    text = text_of(results, ZH)
    assert_disarmed(text)
    assert_nobody_speaks(text)
    heads = [line for line in text.split("\n") if not line.startswith("   ")]
    said = [f"{n}. [code] {inline(one.index.title)} (score=0.50)" for n, one in enumerate(notes.values(), start=1)]
    assert [line for line in heads if re.match(r"\d+\. ", line)] == said


def check_context(random: Random) -> None:
    """Sections of the context form, each with memories that are hostile in every field that it shows."""
    domains = [
        domain(f"d{n}", f"d{_short(random)}", hostile_text(random), "a.java") for n in range(random.randrange(3))
    ]
    records = [
        record(f"r{n}", hostile_text(random), hostile_text(random), "a.java") for n in range(random.randrange(3))
    ]
    notes = [note(f"n{n}", hostile_text(random), title=f"title {n}") for n in range(random.randrange(3))]
    codes = [_code(random, f"c{n}", f"{n}{_short(random)}.java") for n in range(random.randrange(3))]
    quotas = random.choice((Quotas(), LITERAL_QUOTAS))
    frame = Frame(wording=ZH, budget_tokens=_ROOMY, counter=COUNTER, info=ProjectInfo(path="/srv"), quotas=quotas)
    section = render_context(_selected([*domains, *records, *notes, *codes]), frame)
    assert_disarmed(section.text)
    assert_nobody_speaks(section.text, keeps_keys=_has_read({one.id: one for one in codes}))
    lines = section.text.split("\n")
    assert lines[:5] == [ZH.data_notice, "", "## 项目背景", "- 项目路径: /srv", ""]
    del lines[:5]
    for one in _chapter(lines, "## 相关领域知识", domains):
        _check_domain(lines, one)
    for one in _chapter(lines, "## 相关学习记录 (后台已学到的知识)", records):
        _check_record(lines, one)
    for one in _chapter(lines, "## 相关记忆", notes):
        assert lines.pop(0) == f"### {one.index.title}"
        assert _same(reader.read_body(lines, "## ", "### "), _content(one))
    for one in _chapter(lines, "## 相关代码片段", codes):
        place, code = reader.read_fragment(lines, "文件:")
        said = "" if quotas.text_characters else f" [ID: {one.id}]"
        assert (place, code) == (f"{_folded(one.index.title)}{said}", _content(one).strip("\n"))
    assert lines in ([], [""])


def _chapter(lines: list[str], heading: str, memories: list[Memory]) -> Iterator[Memory]:
    if memories:
        assert lines.pop(0) == heading
    yield from memories


def _check_domain(lines: list[str], one: Memory) -> None:
    assert reader.uninert(lines.pop(0)) == f"### {_folded(one.index.title)}"
    assert _same(reader.read_body(lines, "关键文件:"), one.index.summary)
    assert reader.read_field(lines, "关键文件:") == "a.java"


def _check_record(lines: list[str], one: Memory) -> None:
    assert re.fullmatch(r"### 知识 [1-5] \(相关度: 50%\)", lines.pop(0))
    assert _same(reader.read_field(lines, "问题:"), one.index.title)
    assert _same(reader.read_field(lines, "答案:"), one.index.summary)
    assert reader.read_field(lines, "涉及文件:") == "a.java"


def _check_listed(listed: list[reader.Listed], notes: dict[str, Memory]) -> None:
    for entry in listed:
        index = notes[entry.memory_id].index
        assert (entry.title, entry.summary) == (_folded(index.title), _folded(index.summary))
        assert entry.tags == " ".join(f"#{line}" for tag in index.tags if (line := _folded(tag)))
        assert entry.origin == notes[entry.memory_id].origin.name.lower()


def _same(found: str, stored: str) -> bool:
    """True if a text was recovered; a fence that it left open may have been closed after it."""
    wanted = clean(stored).lstrip("\n").rstrip()
    closing = found.removeprefix(wanted + "\n")
    return found == wanted or (found != closing and re.fullmatch(r"`{3,}|~{3,}", closing) is not None)


def _notes(random: Random) -> dict[str, Memory]:
    """Memories of all kinds."""
    notes = {}
    for _ in range(random.randrange(1, _MOST_MEMORIES + 1)):
        memory_id = hostile_text(random, 4)[:99] or "id"
        index = MemoryIndex(title=_short(random), summary=_short(random), tags=(_short(random), _short(random)))
        notes[memory_id] = replace(_of_any_kind(random, memory_id), index=index)
    return notes


def _of_any_kind(random: Random, memory_id: str) -> Memory:
    match random.randrange(6):
        case 0:
            return record(memory_id, hostile_text(random), hostile_text(random), _short(random))
        case 1:
            return domain(memory_id, _short(random), hostile_text(random), _short(random))
        case 2:
            return _code(random, memory_id, _short(random))
        case 3:
            return replace(note(memory_id, hostile_text(random)), kind=MemoryKind.ENTRY)
    return note(memory_id, hostile_text(random))


def _code(random: Random, memory_id: str, path: str) -> Memory:
    """Code, as anybody says or as the indexer read it."""
    return replace(
        fragment(memory_id, path, hostile_text(random)), origin=random.choice((Origin.MANUAL, Origin.INDEXER))
    )


def _has_read(notes: dict[str, Memory]) -> bool:
    return any(one.origin is Origin.INDEXER for one in notes.values())


def _short(random: Random) -> str:
    """Text that no form cuts."""
    return hostile_text(random, 5)[:90]


def _selected(memories: Iterable[Memory]) -> tuple[Selected, ...]:
    return tuple(Selected(memory=one, score=0.5) for one in memories)


def _frame(budget_tokens: int) -> Frame:
    return Frame(wording=ZH, budget_tokens=budget_tokens, counter=COUNTER)


def _shown(section: Section) -> list[tuple[str, Tier]]:
    return [(one.memory_id, one.tier) for one in section.memories if one.tier is not Tier.DROPPED]


def _body(one: Memory) -> str:
    """Text of a memory, as a reader gets it back."""
    return clean(body_of(one, ZH)).strip("\n")


def _named(one: Memory) -> str:
    """Text of a memory in a list: an entry that does not name its subject has its title in front."""
    body, title = body_of(one, ZH), one.index.title.removesuffix("…")
    return clean(body if one.kind is not MemoryKind.ENTRY or title in body else f"{title}: {body}").strip("\n")


def _content(one: Memory) -> str:
    assert one.payload
    return clean(one.payload.content)


def _folded(text: str) -> str:
    return " ".join(clean(text).split())


def main() -> None:
    """Runs the cases of one seed."""
    options = argparse.ArgumentParser()
    options.add_argument("--cases", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    for case in range(asked.cases):
        try:
            check(asked.seed, case)
        except AssertionError as error:
            raise SystemExit(f"case {case} of seed {asked.seed} is not read back: {error}") from error
    print(f"{asked.cases} cases of seed {asked.seed}: every memory was read back, in five forms")


if __name__ == "__main__":
    main()
