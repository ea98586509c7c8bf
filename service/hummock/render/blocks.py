"""The parts of the context form: what each kind of memory looks like in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hummock.core.memory import CodeFragment, DomainKnowledge, LearningRecord, MemoryKind
from hummock.core.project import ProjectInfo
from hummock.core.render import Quotas
from hummock.render import fence
from hummock.render.headings import Wording
from hummock.render.marks import UNVERIFIED, is_unverified
from hummock.render.selection import Frame, Selected

_BODY_CHARACTERS: Final = 500
_FILES: Final = 5
_FLOAT32_SLACK: Final = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One memory as text, which ends with an empty line; `reason` says whether it is whole."""

    item: Selected
    text: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """All that stands under one heading: the blocks, and the memories that the quota leaves out.

    `ends_text` says that nothing less important may stand behind the first block that does not fit.
    """

    heading: str
    ends_text: bool
    blocks: tuple[Block, ...]
    beyond_quota: tuple[Selected, ...]
    quota_reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    kinds: frozenset[MemoryKind]
    heading: Callable[[Wording], str]
    quota: Callable[[Quotas], int | None]
    ends_text: bool
    write: Callable[[Selected, int, Frame], Block]


def project_block(info: ProjectInfo, wording: Wording) -> str:
    """What is said of the project; the heading alone when nothing is known of it."""
    return _lines(
        wording.project,
        _listed(wording.tech_stack, info.tech_stack),
        _listed(wording.project_path, (info.path,)),
    )


def chapters_of(selected: Sequence[Selected], frame: Frame) -> tuple[Chapter, ...]:
    """The chapters in the order of the text, the most important first."""
    return tuple(_chapter(layout, selected, frame) for layout in _LAYOUTS)


def _chapter(layout: _Layout, selected: Sequence[Selected], frame: Frame) -> Chapter:
    items = [item for item in selected if item.memory.kind in layout.kinds]
    quota = layout.quota(frame.quotas)
    standing = sum(kind in layout.kinds for kind in frame.standing)
    shown = items if quota is None else items[: max(quota - standing, 0)]
    return Chapter(
        ends_text=layout.ends_text,
        heading=layout.heading(frame.wording) + "\n",
        blocks=tuple(layout.write(item, number, frame) for number, item in enumerate(shown, start=standing + 1)),
        beyond_quota=tuple(items[len(shown) :]),
        quota_reason=f"this form shows the first {quota} of its kind",
    )


def _domain(item: Selected, _number: int, frame: Frame) -> Block:
    wording = frame.wording
    detail = item.memory.payload.detail if item.memory.payload else None
    if not isinstance(detail, DomainKnowledge):
        detail = DomainKnowledge(domain=item.memory.index.title, summary=item.memory.index.summary)
    summary = _text(detail.summary)
    text = _lines(
        f"### {fence.heading(detail.domain)}{_unverified(item)}",
        _prose(summary, wording),
        _listed(wording.key_files, detail.key_files[:_FILES]),
    )
    return Block(item=item, text=text, reason=_reason(summary))


def _record(item: Selected, number: int, frame: Frame) -> Block:
    wording = frame.wording
    detail = item.memory.payload.detail if item.memory.payload else None
    if not isinstance(detail, LearningRecord):
        detail = LearningRecord(question=item.memory.index.title, answer=item.memory.index.summary)
    relevance = "" if item.score is None else f" ({wording.relevance} {_per_cent(item.score)}%)"
    question, answer = _text(detail.question), _text(detail.answer)
    text = _lines(
        f"{wording.record} {number}{relevance}{_unverified(item)}",
        _labelled(wording.question, _prose(question, wording)),
        _labelled(wording.answer, _prose(answer, wording)),
        _listed(wording.source_files, detail.source_files[:_FILES]),
    )
    return Block(item=item, text=text, reason=_reason(question, answer))


def _per_cent(score: float) -> int:
    """The whole hundredths of a score, as the format's description has it: no rounding up."""
    # Scores are float32, the nearest of which to 0.95 is a little less.
    return int(score * 100 + _FLOAT32_SLACK)


def _remembered(item: Selected, number: int, frame: Frame) -> Block:
    wording = frame.wording
    title = fence.heading(item.memory.index.title)
    content = _text(_content(item))
    # A note's title is often its first line, or all of it.
    repeats = content.strip() == fence.one_line(item.memory.index.title)
    heading = f"### {title}" if title else f"{wording.memory} {number}"
    text = _lines(heading + _unverified(item), "" if repeats else _prose(content, wording))
    return Block(item=item, text=text, reason=_reason(content))


def _code(item: Selected, _number: int, frame: Frame) -> Block:
    wording = frame.wording
    detail = item.memory.payload.detail if item.memory.payload else None
    path = detail.path if isinstance(detail, CodeFragment) else item.memory.index.title
    content = fence.clean(_content(item)).strip("\n")
    text = _lines(
        f"{wording.code_file} {fence.inline(path)}{_unverified(item)}",
        fence.fenced(_cut(content, wording, mark_below=True)),
    )
    return Block(item=item, text=text, reason=_reason(content))


def _unverified(item: Selected) -> str:
    return f" {UNVERIFIED}" if is_unverified(item.memory) else ""


def _content(item: Selected) -> str:
    return item.memory.payload.content if item.memory.payload else item.memory.index.summary


def _text(stored: str) -> str:
    return fence.clean(stored).lstrip("\n").rstrip()


def _labelled(label: str, text: str) -> str:
    # A fence opens only at the beginning of a line.
    return f"{label}\n{text}" if fence.opens_block(text) else f"{label} {text}"


def _prose(content: str, wording: Wording) -> str:
    return fence.prose(_cut(content, wording))


def _cut(text: str, wording: Wording, *, mark_below: bool = False) -> str:
    if len(text) <= _BODY_CHARACTERS:
        return text
    return text[:_BODY_CHARACTERS] + ("\n" if mark_below else "") + wording.cut


def _reason(*texts: str) -> str:
    whole = all(len(text) <= _BODY_CHARACTERS for text in texts)
    return "in full" if whole else f"cut at {_BODY_CHARACTERS} characters"


def _listed(label: str, names: Iterable[str]) -> str:
    listed = ", ".join(line for name in names if (line := fence.inline(name)))
    return f"{label} {listed}" if listed else ""


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines if line) + "\n"


_LAYOUTS: Final = (
    _Layout(
        kinds=frozenset({MemoryKind.DOMAIN_KNOWLEDGE}),
        heading=lambda wording: wording.domains,
        quota=lambda quotas: quotas.domains,
        ends_text=False,
        write=_domain,
    ),
    _Layout(
        kinds=frozenset({MemoryKind.LEARNING_RECORD}),
        heading=lambda wording: wording.records,
        quota=lambda quotas: quotas.learning_records,
        ends_text=True,
        write=_record,
    ),
    _Layout(
        kinds=frozenset({MemoryKind.NOTE, MemoryKind.ENTRY}),
        heading=lambda wording: wording.memories,
        quota=lambda _: None,
        ends_text=True,
        write=_remembered,
    ),
    _Layout(
        kinds=frozenset({MemoryKind.CODE_FRAGMENT}),
        heading=lambda wording: wording.code,
        quota=lambda quotas: quotas.code_fragments,
        ends_text=True,
        write=_code,
    ),
)
