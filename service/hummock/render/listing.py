"""Forms that are lists, which stop at the first memory that does not fit, and the parts of the tagged forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final

from msgspec import structs

from hummock.core.memory import CodeFragment, DomainKnowledge, LearningRecord, Memory, MemoryKind, Origin, Payload
from hummock.core.render import Tier
from hummock.core.time_zone import wall_clock
from hummock.render import escape
from hummock.render.escape import shown_marks
from hummock.render.passage import fitted
from hummock.render.section import Block, Frame, Section, Selected, Wording, count_blocks, kept_block, read_memory
from hummock.text.tokens import TokenCounter

CLOSING: Final = f"</{escape.ENVELOPE}>\n"
"""End of the text."""
INDEX_CLOSING: Final = f"</{escape.INDEX}>\n"
"""End of the index."""

_SUMMARY_CHARACTERS: Final = 100
_TITLE_CHARACTERS: Final = 100
_TAGS: Final = 10
_DAYS_TO_TELL_APART: Final = 2
"""Days from which notes have dates: of notes of one day none is the newer one."""


def opening(wording: Wording) -> str:
    """Return the beginning of the text, with the notice that all of it is data."""
    return f"<{escape.ENVELOPE}>\n{wording.data_notice}\n\n"


def index_opening(frame: Frame) -> str:
    """Beginning of the index: it says how to read on."""
    return f"<{escape.INDEX}>\n{frame.wording.index_notice.format(tool=frame.read_tool)}\n\n"


def index_opening_with_rule(frame: Frame) -> str:
    """Beginning of an index next to memories in full: it also says when to read on."""
    return index_opening(frame).removesuffix("\n") + frame.wording.read_on.format(tool=frame.read_tool) + "\n\n"


def full_entry(item: Selected, frame: Frame) -> Block:
    """The whole memory between its tags. A title that is the body's first line is left out."""
    memory, marks = item.memory, _marks(item, frame)
    key = frame.wording.language, frame.counter, marks
    return kept_block(
        memory, "full entry", key, lambda: Block(_entry(memory, _clean_body(memory, frame), marks, frame))
    )


def cut_entry(item: Selected, frame: Frame, room: int) -> Block:
    """The memory between its tags with a passage of its body, so that it has at most `room` tokens if it can."""
    memory, marks = item.memory, _marks(item, frame)
    return fitted(_clean_body(memory, frame), frame, room, lambda body: _entry(memory, body, marks, frame))


def _marks(item: Selected, frame: Frame) -> str:
    """The marks of a memory's record and its age, each after a space; empty for none."""
    return shown_marks(item.memory, frame.as_of) + item.age(frame.wording)


def _clean_body(memory: Memory, frame: Frame) -> str:
    return escape.clean(body_of(memory, frame.wording)).strip("\n")


def _entry(memory: Memory, body: str, marks: str, frame: Frame) -> str:
    title, wording = memory.index.title, frame.wording
    repeats = escape.one_line(body.partition("\n")[0]) in (title, f"{wording.question} {title}")
    attributes = {
        "id": memory.id,
        "kind": memory.kind.name.lower(),
        "title": "" if repeats else title,
        "tags": _tags(memory.index.tags),
        "origin": memory.origin.name.lower(),
        "speaker": escape.speaker_of(memory),
        "trust": "" if memory.trust >= 1 else f"{memory.trust:.2g}",
    }
    written = "".join(f" {name}={escape.attribute(value)}" for name, value in attributes.items() if value)
    if marks:
        written += f' note="{marks.strip()}"'
    quoted = escape.quoted(body, keeps_keys=escape.keeps_keys(memory))
    return f"<{escape.ENTRY}{written}>\n{quoted}\n</{escape.ENTRY}>\n\n"


def least_tokens(memories: Sequence[Memory], counter: TokenCounter) -> list[int]:
    """Return lower bounds on the tokens of the memories in full, from stored counts; 0 if unknown.

    Memories that are far too large need not be rendered to be counted.
    """
    if not counter.is_stored:
        return [0] * len(memories)
    headings = counter.counts(["\n".join((memory.index.title, *memory.index.tags)) for memory in memories])
    return [memory.token_count - heading for memory, heading in zip(memories, headings, strict=True)]


def numbered(number: int) -> str:
    """Number in front of an index entry."""
    return f"{number}. "


def index_entry(item: Selected, frame: Frame) -> Block:
    """Title, tags and summary; two lines, or one when there is no summary. An origin is named unless it is a person."""
    memory, marks = item.memory, _marks(item, frame)
    return kept_block(memory, "index entry", (frame.counter, marks), lambda: _index_entry(memory, marks))


def _index_entry(memory: Memory, marks: str) -> Block:
    title = escape.string(escape.clip(memory.index.title, _TITLE_CHARACTERS))
    tags = _tags(memory.index.tags)
    summary = escape.inline(escape.clip(memory.index.summary, _SUMMARY_CHARACTERS))
    notes = [f" {escape.parenthesised(f'Tags: {tags}')}"] if tags else []
    if memory.origin is not Origin.MANUAL:
        notes.append(f" (Origin: {memory.origin.name.lower()})")
    lines = [f"{escape.bracketed_id(memory.id)} {title}{''.join(notes)}{escape.said_by(memory)}{marks}"]
    if summary:
        lines.append(f"   > Summary: {summary}")
    return Block("".join(f"{line}\n" for line in lines))


def body_of(memory: Memory, wording: Wording) -> str:
    """All that a memory says, by the labels of its kind."""
    payload = memory.payload or Payload(content=memory.index.summary)
    match payload.detail:
        case LearningRecord(question=question, answer=answer, source_files=files):
            parts = [
                f"{wording.question} {question}",
                f"{wording.answer} {answer}",
                _files(wording.source_files, files),
            ]
        case DomainKnowledge(summary=summary, key_files=files):
            parts = [summary, _files(wording.key_files, files)]
        case CodeFragment() as code:
            parts = [f"{wording.code_file} {escape.one_line(code.path)}{_span(code)}"]
        case _:
            parts = []
    return "\n".join(dict.fromkeys(part for part in [*parts, payload.content] if part))


def _files(label: str, files: Iterable[str]) -> str:
    listed = ", ".join(line for name in files if (line := escape.one_line(name)))
    return f"{label} {listed}" if listed else ""


def _span(code: CodeFragment) -> str:
    if not code.start_line:
        return ""
    return f":{code.start_line}-{code.end_line}" if code.end_line else f":{code.start_line}"


def _tags(tags: Iterable[str]) -> str:
    return " ".join(f"#{line}" for tag in list(tags)[:_TAGS] if (line := escape.one_line(tag)))


LIST_BUDGET_TOKENS: Final = 2000

_MEMORIES: Final = "Relevant Memories (for reference):\n"
_FIRST_SECOND: Final = -62_135_510_400  # 0001-01-02
_LAST_SECOND: Final = 253_402_214_399  # 9999-12-30
BEST_SHARE: Final = 2 / 3
"""Share of the room that a passage of the best memory takes, where there is none for all of it."""

_COUNTED_ENTRIES: Final = 16
_COUNTED_CHARACTERS: Final = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class _List:
    """Layout of a list.

    Attributes:
        write: Renders a memory as an entry.
        number: The prefix of an entry.
        cut: Renders a passage of the first memory within so many tokens, where there is no room for it; a form without
            it is empty then.
    """

    opening: str
    closing: str
    write: Callable[[Selected], Block]
    tier: Tier
    reason: str
    number: Callable[[int], str] = lambda _: ""
    cut: Callable[[Selected, int], Block] | None = None


def render_index(selected: Sequence[Selected], frame: Frame) -> Section:
    """Write titles, tags and summaries, and the tool that reads on; the first that does not fit ends the list."""
    look = _List(
        opening=index_opening(frame),
        closing=INDEX_CLOSING,
        write=lambda item: index_entry(item, frame),
        number=numbered,
        tier=Tier.INDEX,
        reason="index only: this form lists",
    )
    return _listed(selected, look, frame)


def render_memories(selected: Sequence[Selected], frame: Frame) -> Section:
    """Write memories in full, each after its time, origin and speaker, as the memory context of a chat.

    The time is the event's, else the create time, in the reader's time zone.
    """
    look = _List(
        opening=_MEMORIES,
        closing=f"\n{frame.wording.data_notice}\n",
        write=lambda item: _line(item, frame),
        tier=Tier.FULL,
        reason="in full: it fits",
        cut=(lambda item, room: _cut_line(item, frame, room)) if frame.force_best else None,
    )
    return _listed(selected, look, frame)


def _listed(selected: Sequence[Selected], look: _List, frame: Frame) -> Section:
    counter = frame.counter
    room = frame.budget_tokens - counter.count(look.opening) - counter.count(look.closing)
    entries: list[str] = []
    costs: list[int] = []
    reason = look.reason
    for entry, cost in _counted(selected, look, counter):
        if cost > room and (entries or not look.cut):
            break
        if cost > room and look.cut:
            passage = look.cut(selected[0], int(room * BEST_SHARE))
            entry, cost, reason = passage.text, passage.token_count, passage.reason
        entries.append(entry)
        costs.append(cost)
        room -= cost
    text = _assembled(entries, look)
    # A text can have more tokens than its parts.
    while (token_count := counter.count(text)) > frame.budget_tokens and len(entries) > bool(look.cut):
        entries.pop()
        text = _assembled(entries, look)
    reasons = [reason, *[look.reason] * len(entries[1:])]
    shown = [
        item.report(look.tier, cost, why) for item, cost, why, _ in zip(selected, costs, reasons, entries, strict=False)
    ]
    return Section(
        text=text,
        token_count=token_count,
        over_budget=token_count > frame.budget_tokens,
        memories=(*shown, *(item.report() for item in selected[len(shown) :])),
        tools=(read_memory(frame),) if entries and look.tier is Tier.INDEX else (),
    )


def _counted(selected: Sequence[Selected], look: _List, counter: TokenCounter) -> Iterator[tuple[str, int]]:
    """Yield the entries with their tokens, in batches: counting many at once is cheaper, and few are written in vain.

    Numbers are counted separately: a memory's number changes between turns, and its block is kept with its tokens.
    """
    few: list[Block] = []
    characters = first = 0
    for number, item in enumerate(selected, start=1):
        few.append(look.write(item))
        characters += len(few[-1].text)
        if len(few) == _COUNTED_ENTRIES or characters > _COUNTED_CHARACTERS:
            yield from _with_numbers(few, first, look, counter)
            few, characters, first = [], 0, number
    yield from _with_numbers(few, first, look, counter)


def _with_numbers(few: Sequence[Block], first: int, look: _List, counter: TokenCounter) -> Iterator[tuple[str, int]]:
    count_blocks(few, counter)
    numbers = [look.number(first + place) for place in range(1, len(few) + 1)]
    counts = counter.counts(numbers) if any(numbers) else [0] * len(few)
    for block, number, count in zip(few, numbers, counts, strict=True):
        yield number + block.text, count + block.token_count


def _assembled(entries: Sequence[str], look: _List) -> str:
    return "".join([look.opening, *entries, look.closing]) if entries else ""


def _line(item: Selected, frame: Frame) -> Block:
    memory = item.memory
    key = frame.wording.language, frame.counter, frame.zone, item.is_replaced
    return kept_block(memory, "line", key, lambda: Block(_written_line(item, _named(memory, frame), frame)))


def _cut_line(item: Selected, frame: Frame, room: int) -> Block:
    body = escape.clean(_named(item.memory, frame))
    return fitted(body, frame, room, lambda passage: _written_line(item, passage, frame))


def _written_line(item: Selected, body: str, frame: Frame) -> str:
    memory, note = item.memory, f"({frame.wording.replaced}) " if item.is_replaced else ""
    text = escape.listed(body, keeps_keys=escape.keeps_keys(memory))
    origin = f"[{memory.origin.name.lower()}]{escape.said_by(memory)}"
    return f"- [{told_at(memory, frame.zone):%Y-%m-%d %H:%M}]{origin} {note}{text}\n"


def with_ages(selected: Sequence[Selected], zone: tzinfo, *, of_pairs: bool = False) -> tuple[Selected, ...]:
    """The memories, with a date on notes of different days and on those of which one most likely replaces another.

    What replaces what is not always known, and of two notes that contradict each other the reader follows the newer.
    With `of_pairs` only the latter have one.
    """
    shown = {item.memory.id: item for item in selected if not item.drawback}
    pairs = {one: item.replaced_by for one, item in shown.items() if item.replaced_by in shown}
    notes = [item.memory for item in shown.values() if item.memory.kind is MemoryKind.NOTE]
    if len(notes) < _DAYS_TO_TELL_APART:
        return tuple(selected)
    dates = {note.id: f"{told_at(note, zone):%Y-%m-%d}" for note in notes}
    if len(set(dates.values())) < _DAYS_TO_TELL_APART or of_pairs:
        dates = {one: dates[one] for one in dates if one in pairs or one in pairs.values()}
    if not dates:
        return tuple(selected)
    return tuple(
        structs.replace(item, told=dates[item.memory.id], is_replaced=item.memory.id in pairs)
        if item.memory.id in dates
        else item
        for item in selected
    )


def told_at(memory: Memory, zone: tzinfo) -> datetime:
    """The time of its event, else the time it was created, in the reader's time zone.

    Years that are far off are cut, a day before the calendar's ends, so that every zone has room.
    """
    moment = memory.create_time if memory.event_time is None else memory.event_time
    return wall_clock(min(max(moment, _FIRST_SECOND), _LAST_SECOND), zone)


def _named(memory: Memory, frame: Frame) -> str:
    """The body; for an entry after its name, unless the body contains it: codex entries seldom repeat their subject."""
    body, title = body_of(memory, frame.wording), memory.index.title.removesuffix("…")
    return body if memory.kind is not MemoryKind.ENTRY or title in body else f"{title}: {body}"
