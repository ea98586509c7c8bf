"""The context form: the project, its domains, learning records, other memories and code as Markdown sections.

Of a long text it shows the lines that bear on the query, and what hardly does is left out. With `text_characters` it is
the form's document to the letter: each text to that character, code by its path alone (S0-24, 1.1-6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Final

from msgspec import Struct

from hummock.core.memory import CodeFragment, DomainKnowledge, LearningRecord, Memory, MemoryKind, Origin
from hummock.core.project import ProjectInfo
from hummock.core.render import Quotas, RenderedMemory, Tier
from hummock.render import escape
from hummock.render.escape import MODEL, UNVERIFIED, is_unverified, said_by
from hummock.render.passage import GAP, WHOLE, Passage, columns, how_cut, passage_of
from hummock.render.section import Block, Frame, Section, Selected, Wording, count_blocks, kept_block

CONTEXT_BUDGET_TOKENS: Final = 4000

_FORM: Final = "context"
_FILES: Final = 5
_FLOAT32_SLACK: Final = 1e-5

"""The reason of a text that is not cut."""


_PROSE_COLUMNS: Final = 1000
"""Columns of an excerpt of prose at the form's own budget: 500 Chinese characters, or twice as many letters."""
_CODE_COLUMNS: Final = 1800
_OPENING_COLUMNS: Final = 160
"""Longest first line of code that is shown before an excerpt from further down, since it names the symbol."""


def render_context(selected: Sequence[Selected], frame: Frame) -> Section:
    """Write the sections that fit the budget, in the form of an IDE plugin's enhanced context.

    The project is charged first, then domains, records, other memories and code: the last one charged is cut first.
    The first domain that does not fit ends the domains; the first record, memory or fragment that does not fit ends the
    text. The whole text counts, and is never above the budget. It begins with the notice that stored text is data,
    since anyone may have written the project's facts.

    Args:
        selected: Best first within a kind, without duplicates.
        frame: Its `info` is None if the project is unknown.
    """
    of_kinds = [(layout, [item for item in selected if item.memory.kind in layout.kinds]) for layout in _LAYOUTS]
    chapters = [_chapter(layout, items, frame) for layout, items in of_kinds if items]
    blocks = [block for chapter in chapters for block in chapter.blocks]
    count_blocks(blocks, frame.counter)
    has_facts = frame.info is not None and bool(frame.info.tech_stack or frame.info.path)
    text, token_count = _written(chapters, frame, has_facts=has_facts) if blocks or has_facts else ("", 0)
    memories = tuple([memory for chapter in chapters for memory in chapter.memories()])
    return Section(text=text, token_count=token_count, memories=memories)


def _written(chapters: Sequence[_Chapter], frame: Frame, *, has_facts: bool) -> tuple[str, int]:
    """The text within the budget, and its tokens; empty where there is neither a block nor a fact to show."""
    counter, budget_tokens, info = frame.counter, frame.budget_tokens, frame.info
    project = "" if info is None else _project(info, frame.wording)
    notice = f"{frame.wording.data_notice}\n\n"
    notice_cost, project_cost, *heading_costs = counter.counts(
        [notice, project, *[chapter.heading for chapter in chapters]]
    )
    room = budget_tokens - notice_cost
    if project_cost > room:
        project, project_cost = "", 0
    _admit(chapters, room - project_cost, heading_costs)
    text = _assembled(project, notice, chapters)
    # A text can have more tokens than its parts.
    while (token_count := counter.count(text)) > budget_tokens:
        project = project if _has_block(chapters) else ""
        _give_way(chapters)
        text = _assembled(project, notice, chapters)
    return (text, token_count) if has_facts or _has_block(chapters) else ("", 0)


@dataclass(slots=True, kw_only=True, eq=False)
class _Chapter:
    """The memories under one heading, the most important first.

    Attributes:
        ends_text: Whether the first block that does not fit ends the text.
        blocks: One for each of `items`; each ends with an empty line.
        left_out: Memories that are left out at any budget.
        shown_count: Number of the first blocks that are in the text.
    """

    heading: str
    ends_text: bool
    items: Sequence[Selected]
    blocks: Sequence[Block]
    left_out: tuple[RenderedMemory, ...]
    shown_count: int = 0

    def text(self) -> str:
        """The heading and the blocks in the text; empty if there are none."""
        shown = [block.text for block in self.blocks[: self.shown_count]]
        return "".join([self.heading, *shown]) if shown else ""

    def memories(self) -> list[RenderedMemory]:
        """Result for each memory."""
        shown = zip(self.items[: self.shown_count], self.blocks, strict=False)
        return [
            *[item.report(Tier.FULL, block.token_count, block.reason) for item, block in shown],
            *[item.report() for item in self.items[self.shown_count :]],
            *self.left_out,
        ]


def _admit(chapters: Sequence[_Chapter], room: int, heading_costs: Iterable[int]) -> None:
    """Takes the blocks that fit into the text; `heading_costs` are the tokens of each chapter's heading."""
    for chapter, heading_cost in zip(chapters, heading_costs, strict=True):
        for block in chapter.blocks:
            needed = block.token_count if chapter.shown_count else heading_cost + block.token_count
            if needed > room:
                if chapter.ends_text:
                    return
                break
            room -= needed
            chapter.shown_count += 1


def _has_block(chapters: Sequence[_Chapter]) -> bool:
    return any(chapter.shown_count for chapter in chapters)


def _give_way(chapters: Sequence[_Chapter]) -> None:
    """Takes the last block of the least important chapter that has any."""
    for chapter in reversed(chapters):
        if chapter.shown_count:
            chapter.shown_count -= 1
            return


def _assembled(project: str, notice: str, chapters: Sequence[_Chapter]) -> str:
    said = project + "".join([chapter.text() for chapter in chapters])
    return notice + said if said else ""


def _project(info: ProjectInfo, wording: Wording) -> str:
    """Write the facts on the project under their heading; empty if there are none."""
    facts = _listed(wording.tech_stack, info.tech_stack), _listed(wording.project_path, (info.path,))
    return _lines(wording.project, *facts) if any(facts) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    kinds: frozenset[MemoryKind]
    heading: Callable[[Wording], str]
    quota: Callable[[Quotas], int | None]
    ends_text: bool
    write: Callable[[Selected, int, Frame], Block]
    has_numbers: bool = False


def _chapter(layout: _Layout, of_kind: Sequence[Selected], frame: Frame) -> _Chapter:
    items = [item for item in of_kind if not item.drawback]
    quota = layout.quota(frame.quotas)
    standing = len([kind for kind in frame.standing if kind in layout.kinds])
    shown = items if quota is None else items[: max(quota - standing, 0)]
    return _Chapter(
        ends_text=layout.ends_text,
        heading=layout.heading(frame.wording) + "\n",
        items=shown,
        blocks=[_block(layout, item, number, frame) for number, item in enumerate(shown, start=standing + 1)],
        left_out=(
            *[item.report(reason=f"this form shows the first {quota} of its kind") for item in items[len(shown) :]],
            *[item.report(reason=item.drawback) for item in of_kind if item.drawback],
        ),
    )


def _block(layout: _Layout, item: Selected, number: int, frame: Frame) -> Block:
    """The memory's block, kept with it if it is whole: an excerpt depends on the words of a query."""
    memory = item.memory
    place = (number, item.score) if layout.has_numbers or not memory.index.title else None
    age = item.told, item.is_replaced
    key = frame.wording.language, frame.counter, frame.quotas.text_characters, frame.passage_scale, place, age
    return kept_block(memory, _FORM, key, lambda: layout.write(item, number, frame), WHOLE)


def _domain(item: Selected, _number: int, frame: Frame) -> Block:
    wording = frame.wording
    detail = _detail(item)
    if not isinstance(detail, DomainKnowledge):
        detail = DomainKnowledge(domain=item.memory.index.title, summary=item.memory.index.summary)
    said = [detail.summary] if frame.quotas.text_characters else domain_texts(item.memory, detail)
    texts = [_prose_excerpt(text, item.memory, frame) for text in said]
    text = _lines(
        f"### {escape.heading(_name(item, detail, frame))}{_marks(item, frame)}",
        *[each.text for each in texts],
        _listed(wording.key_files, detail.key_files[:_FILES]),
    )
    return Block(text, _reason(texts))


def _name(item: Selected, detail: DomainKnowledge, frame: Frame) -> str:
    """Return the domain, or a title that is its path in a document ("Payments > Retries")."""
    title = item.memory.index.title
    return title if not frame.quotas.text_characters and title.endswith(f" > {detail.domain}") else detail.domain


def _record(item: Selected, number: int, frame: Frame) -> Block:
    wording = frame.wording
    detail = _detail(item)
    if not isinstance(detail, LearningRecord):
        detail = LearningRecord(question=item.memory.index.title, answer=item.memory.index.summary)
    relevance = "" if item.score is None else f" ({wording.relevance} {_per_cent(item.score)}%)"
    question, answer = [_prose_excerpt(text, item.memory, frame) for text in (detail.question, detail.answer)]
    text = _lines(
        f"{wording.record} {number}{relevance}{_marks(item, frame)}",
        _labelled(wording.question, question.text),
        _labelled(wording.answer, answer.text),
        _listed(wording.source_files, detail.source_files[:_FILES]),
    )
    return Block(text, _reason([question, answer]))


def _per_cent(score: float) -> int:
    """Return a score in whole hundredths, rounded down as the format requires."""
    # The float32 nearest to 0.95 is slightly less than 0.95.
    return int(score * 100 + _FLOAT32_SLACK)


def _remembered(item: Selected, number: int, frame: Frame) -> Block:
    wording = frame.wording
    title = escape.heading(item.memory.index.title)
    content = escape.clean(item.memory.payload.content if item.memory.payload else item.memory.index.summary)
    shown = _prose_excerpt(content, item.memory, frame)
    # A note's title is often its first line, or all of it.
    repeats = content.strip() == escape.one_line(item.memory.index.title)
    heading = f"### {title}" if title else f"{wording.memory} {number}"
    text = _lines(heading + _marks(item, frame), "" if repeats else shown.text)
    return Block(text, shown.reason)


def _code(item: Selected, _number: int, frame: Frame) -> Block:
    place, code = _code_excerpt(item.memory, frame)
    text = _lines(f"{frame.wording.code_file} {place}{_marks(item, frame)}", code.text)
    return Block(text, code.reason)


def _marks(item: Selected, frame: Frame) -> str:
    unverified = f" {UNVERIFIED}" if is_unverified(item.memory) else ""
    said = "" if frame.quotas.text_characters else said_by(item.memory, MODEL)
    return f"{said}{unverified}{item.age(frame.wording)}"


def _detail(item: Selected) -> object:
    return item.memory.payload.detail if item.memory.payload else None


def _labelled(label: str, text: str) -> str:
    # A fence opens only at the beginning of a line.
    return f"{label}\n{text}" if escape.opens_block(text) else f"{label} {text}"


def _reason(texts: Sequence[_Excerpt]) -> str:
    return [*[text.reason for text in texts if text.reason != WHOLE], WHOLE][0]


def _listed(label: str, names: Iterable[str]) -> str:
    listed = ", ".join([line for name in names if name and (line := escape.inline(name))])
    return f"{label} {listed}" if listed else ""


def _lines(*lines: str) -> str:
    return "".join([f"{line}\n" for line in lines if line]) + "\n"


class _Excerpt(Struct, frozen=True, kw_only=True):
    """An escaped text for a section, and the reason why it is cut."""

    text: str
    reason: str


def _prose_excerpt(stored: str, memory: Memory, frame: Frame) -> _Excerpt:
    """The excerpt of prose; a cut one ends with a mark and, unless cut to the letter, the id to read on by."""
    text = escape.clean(stored).lstrip("\n").rstrip()
    if frame.quotas.text_characters:
        return _to_the_letter(text, frame, mark_below=False, write=escape.prose)
    shown = passage_of(text, frame.query, int(_PROSE_COLUMNS * frame.passage_scale))
    if shown.is_whole:
        return _Excerpt(text=escape.prose(text), reason=WHOLE)
    fence = escape.open_fence(text.split("\n")[: shown.first_line])
    body = "\n".join(part for part in (GAP if shown.is_cut_before else "", fence, shown.text) if part)
    mark = f"{frame.wording.cut} {escape.bracketed_id(memory.id)}"
    return _Excerpt(text=f"{escape.prose(body)}\n{mark}", reason=how_cut(shown))


def _code_excerpt(memory: Memory, frame: Frame) -> tuple[str, _Excerpt]:
    """The location of a code fragment, and its excerpt between fences."""
    content = escape.clean(memory.payload.content if memory.payload else memory.index.summary).rstrip("\n")
    code = memory.payload.detail if memory.payload else None
    path = escape.inline(code.path if isinstance(code, CodeFragment) else memory.index.title)
    write = partial(escape.fenced, keeps_keys=escape.keeps_keys(memory))
    if frame.quotas.text_characters:
        return path, _to_the_letter(content.strip("\n"), frame, mark_below=True, write=write)
    shown = passage_of(content, frame.query, int(_CODE_COLUMNS * frame.passage_scale))
    opening = content.strip("\n").partition("\n")[0]
    has_opening = shown.is_cut_before and columns(opening) <= _OPENING_COLUMNS
    parts = (
        opening if has_opening else "",
        GAP if shown.is_cut_before else "",
        shown.text.strip("\n"),
        frame.wording.cut if shown.is_cut_behind else "",
    )
    text = write("\n".join(part for part in parts if part))
    place = f"{path}{_place(code, content, shown)}" if isinstance(code, CodeFragment) else path
    return f"{place} {escape.bracketed_id(memory.id)}", _Excerpt(text=text, reason=how_cut(shown))


def domain_texts(memory: Memory, detail: DomainKnowledge) -> list[str]:
    """Return the summary, and the content if it adds to it; indexed content begins with its summary."""
    content = memory.payload.content.strip() if memory.payload else ""
    if not content:
        return [detail.summary]
    is_part = memory.origin is Origin.INDEXER or escape.one_line(detail.summary) in escape.one_line(content)
    return [content] if is_part else [detail.summary, content]


def _place(code: CodeFragment, content: str, shown: Passage) -> str:
    """Lines and symbol: the lines that are shown, or the fragment's where its content leaves some of them out."""
    symbol = f" · {escape.inline(code.symbol)}" if code.symbol else ""
    if not code.start_line:
        return symbol
    first, last = code.start_line, code.end_line or code.start_line
    if last - first == content.count("\n"):
        first, last = first + shown.first_line, first + shown.last_line
    return f":{first}-{last}{symbol}"


def _to_the_letter(text: str, frame: Frame, *, mark_below: bool, write: Callable[[str], str]) -> _Excerpt:
    limit = frame.quotas.text_characters
    if len(text) <= limit:
        return _Excerpt(text=write(text), reason=WHOLE)
    mark = ("\n" if mark_below else "") + frame.wording.cut
    return _Excerpt(text=write(text[:limit] + mark), reason=f"cut at {limit} characters")


_LAYOUTS: Final = (
    _Layout(
        kinds=frozenset({MemoryKind.DOMAIN_KNOWLEDGE}),
        heading=attrgetter("domains"),
        quota=attrgetter("domains"),
        ends_text=False,
        write=_domain,
    ),
    _Layout(
        kinds=frozenset({MemoryKind.LEARNING_RECORD}),
        heading=attrgetter("records"),
        quota=attrgetter("learning_records"),
        ends_text=True,
        write=_record,
        has_numbers=True,
    ),
    _Layout(
        kinds=frozenset({MemoryKind.NOTE, MemoryKind.ENTRY}),
        heading=attrgetter("memories"),
        quota=lambda _: None,
        ends_text=True,
        write=_remembered,
    ),
    _Layout(
        kinds=frozenset({MemoryKind.CODE_FRAGMENT}),
        heading=attrgetter("code"),
        quota=attrgetter("code_fragments"),
        ends_text=True,
        write=_code,
    ),
)
