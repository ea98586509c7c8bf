"""The parts of the tagged forms: what delimits them, a memory in full and a memory as an index entry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hummock.core.memory import CodeFragment, DomainKnowledge, LearningRecord, Memory, Origin, Payload
from hummock.render import escape
from hummock.render.escape import shown_marks
from hummock.render.section import Frame, Wording
from hummock.text.tokens import TokenCounter

CLOSING: Final = f"</{escape.ENVELOPE}>\n"
"""End of the text."""
INDEX_CLOSING: Final = f"</{escape.INDEX}>\n"
"""End of the index."""

_SUMMARY_CHARACTERS: Final = 100
_TITLE_CHARACTERS: Final = 100
_TAGS: Final = 10


def opening(wording: Wording) -> str:
    """Beginning of the text: it says that all of it is data."""
    return f"<{escape.ENVELOPE}>\n{wording.data_notice}\n\n"


def index_opening(frame: Frame) -> str:
    """Beginning of the index: it says how to read on."""
    return f"<{escape.INDEX}>\n{frame.wording.index_notice.format(tool=frame.read_tool)}\n\n"


def index_opening_with_rule(frame: Frame) -> str:
    """Beginning of an index next to memories in full: it also says when to read on."""
    return index_opening(frame).removesuffix("\n") + frame.wording.read_on.format(tool=frame.read_tool) + "\n\n"


def full_entry(memory: Memory, frame: Frame) -> str:
    """The whole memory between its tags. A title that is the body's first line is left out."""
    wording = frame.wording
    body = escape.clean(body_of(memory, wording)).strip("\n")
    title = memory.index.title
    repeats = escape.one_line(body.partition("\n")[0]) in (title, f"{wording.question} {title}")
    attributes = {
        "id": memory.id,
        "kind": memory.kind.name.lower(),
        "title": "" if repeats else title,
        "tags": _tags(memory.index.tags),
        "origin": memory.origin.name.lower(),
        "trust": "" if memory.trust >= 1 else f"{memory.trust:.2g}",
    }
    written = "".join(f" {name}={escape.attribute(value)}" for name, value in attributes.items() if value)
    if marks := shown_marks(memory, frame.as_of):
        written += f' note="{marks.strip()}"'
    quoted = escape.quoted(body, keeps_keys=escape.keeps_keys(memory))
    return f"<{escape.ENTRY}{written}>\n{quoted}\n</{escape.ENTRY}>\n\n"


def least_tokens(memories: Sequence[Memory], counter: TokenCounter) -> list[int]:
    """Lower bounds on the tokens of the memories in full, by the counts they were stored with; 0 where none is known.

    What is far too large need not be written out to be counted.
    """
    if not counter.is_stored:
        return [0] * len(memories)
    headings = counter.counts(["\n".join((memory.index.title, *memory.index.tags)) for memory in memories])
    return [memory.token_count - heading for memory, heading in zip(memories, headings, strict=True)]


def numbered(number: int) -> str:
    """Number in front of an index entry."""
    return f"{number}. "


def index_entry(memory: Memory, as_of: float) -> str:
    """Title, tags and summary; two lines, or one when there is no summary. An origin is named unless it is a person."""
    title = escape.string(escape.clip(memory.index.title, _TITLE_CHARACTERS))
    tags = _tags(memory.index.tags)
    summary = escape.inline(escape.clip(memory.index.summary, _SUMMARY_CHARACTERS))
    notes = [f" {escape.parenthesised(f'Tags: {tags}')}"] if tags else []
    if memory.origin is not Origin.MANUAL:
        notes.append(f" (Origin: {memory.origin.name.lower()})")
    lines = [f"{escape.bracketed_id(memory.id)} {title}{''.join(notes)}{shown_marks(memory, as_of)}"]
    if summary:
        lines.append(f"   > Summary: {summary}")
    return "".join(f"{line}\n" for line in lines)


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
