"""Words of a memory that are embedded, searched, compared and shown."""

from __future__ import annotations

import re

from msgspec.structs import replace

from hummock.core.facets import facets_of
from hummock.core.memory import (
    CodeFragment,
    DomainKnowledge,
    Draft,
    LearningRecord,
    Memory,
    MemoryIndex,
    MemoryKind,
    Payload,
)
from hummock.text.normalise import prose
from hummock.text.terms import A_FACET, Piece
from hummock_kernels.analyzer import BODY, NAMELESS, TAGS, TITLE

TEMPLATE_VERSION = 1
"""Increased when vectors of texts composed before and after are not comparable. Adding or leaving out a part of a
memory is no reason: its vectors stay in the same space."""

_DOCUMENT = re.compile(r"\A[^\n>]+\.(?:md|markdown|mdx) > (?=\S)", re.IGNORECASE)
"""The path of a document at the beginning of a title, as the indexer puts it there (`indexing/markdown.py`)."""

_TITLE_CHARACTERS = 120
_SUMMARY_CHARACTERS = 200


def embedded(index: MemoryIndex, payload: Payload) -> tuple[str, str]:
    """The header, which every chunk repeats, and the body, which is cut into chunks."""
    match payload.detail:
        case LearningRecord(question=question, answer=answer):
            return _lines(index.title, question), _lines(answer, payload.content)
        case DomainKnowledge(domain=domain, aliases=aliases, summary=summary):
            # Titles of documents that begin alike start with the path; it is left out here, as for code below.
            return _lines(_DOCUMENT.sub("", index.title or domain), *aliases), _lines(summary, payload.content)
        case CodeFragment(symbol=symbol):
            # Its path is found by words, so that a file that is moved says the same; a title that the code has itself,
            # such as a signature, would only be read again with each piece, and so would its name.
            is_known = index.title.partition("(")[0] == symbol or _says(payload.content, index.title)
            return _lines(symbol, "" if is_known else index.title), payload.content
        case _:
            return index.title, payload.content


def _says(content: str, title: str) -> bool:
    """Whether the text holds the title, however either is broken into lines: a signature in a title stands on one."""
    return "".join(title.split()) in "".join(content.split())


def pieces_of(draft: Draft) -> list[Piece]:
    """Return the texts by which a memory is searched: its facets, and its words by field."""
    title, body = _searched(draft)
    facets = [(facet, A_FACET) for facet in facets_of(draft, _domain_names(draft))]
    # A speaker is found by name, but is not the subject of the memory, as a name of code would be.
    speaker = [(draft.speaker, TAGS | NAMELESS)] if draft.speaker else []
    return [*facets, (title, TITLE), (" ".join(draft.index.tags), TAGS), *speaker, (body, BODY)]


def _searched(draft: Draft) -> tuple[str, str]:
    """Return the title and the body by which a memory is found; its tags are a separate field."""
    title, content = draft.index.title, draft.payload.content
    match draft.payload.detail:
        case LearningRecord(question=question, answer=answer, source_files=files):
            return _lines(title, question), _lines(answer, content, *files)
        case DomainKnowledge(domain=domain, aliases=aliases, summary=summary, key_files=files):
            return _lines(title, domain, *aliases), _lines(summary, content, *files)
        case CodeFragment(path=path, symbol=symbol):
            return _lines(title, symbol, path), content
        case _:
            return title, _lines(draft.index.summary, content)


def _domain_names(draft: Draft) -> tuple[str, ...]:
    detail = draft.payload.detail
    if not isinstance(detail, DomainKnowledge):
        return ()
    return tuple(name for name in (prose(name) for name in (detail.domain, *detail.aliases)) if name)


def compared(kind: MemoryKind, title: str, payload: Payload) -> str:
    """Return the text by which a memory is compared with others; `title` is from its complete index."""
    if kind is MemoryKind.ENTRY:
        # Many entries of a codex say "nothing is known yet", so only their titles distinguish them.
        return _lines(title, payload.content)
    return told(payload)


def told(payload: Payload) -> str:
    """The content of a memory as one text, whatever its kind."""
    match payload.detail:
        case LearningRecord(question=question, answer=answer):
            return _lines(question, answer, payload.content)
        case DomainKnowledge(domain=domain, summary=summary):
            return _lines(domain, summary, payload.content)
        case _:
            return payload.content


def is_code(kind: MemoryKind) -> bool:
    """Whether the text is compared as code: case, width and white space count."""
    return kind is MemoryKind.CODE_FRAGMENT


def derived_index(draft: Draft) -> MemoryIndex:
    """Complete the draft's index from the payload."""
    title, summary = _shown(draft)
    return MemoryIndex(
        title=draft.index.title if draft.index.title.strip() else _cut(title, _TITLE_CHARACTERS),
        summary=draft.index.summary if draft.index.summary.strip() else _cut(summary, _SUMMARY_CHARACTERS),
        tags=draft.index.tags,
    )


def _shown(draft: Draft) -> tuple[str, str]:
    content = draft.payload.content
    match draft.payload.detail:
        case LearningRecord(question=question, answer=answer):
            return question, answer
        case DomainKnowledge(domain=domain, summary=summary):
            return domain, summary
        case CodeFragment(path=path, symbol=symbol):
            return f"{path} · {symbol}" if symbol else path, content
        case _:
            return next((line for line in content.splitlines() if line.strip()), ""), content


def _cut(text: str, limit: int) -> str:
    # So many words are never shorter than the limit; the rest of a long text need not be looked at.
    folded = " ".join(text.split(maxsplit=limit)[: limit + 1])
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"


def left_open(draft: Draft) -> Draft:
    """The draft without the title and the summary that would be derived from its payload."""
    derived = derived_index(replace(draft, index=MemoryIndex(tags=draft.index.tags)))
    index = replace(
        draft.index,
        title="" if draft.index.title == derived.title else draft.index.title,
        summary="" if draft.index.summary == derived.summary else draft.index.summary,
    )
    return replace(draft, index=index)


def as_draft(memory: Memory) -> Draft:
    """Rebuild the draft of a memory with its payload, without fields that the server derived."""
    if memory.payload is None:
        raise ValueError("the memory was read without its payload")
    return left_open(
        Draft(
            id=memory.id,
            kind=memory.kind,
            origin=memory.origin,
            index=memory.index,
            payload=memory.payload,
            session_id=memory.session_id,
            speaker=memory.speaker,
            event_time=memory.event_time,
            emotion_label=memory.emotion_label,
            trust=memory.trust,
            supersedes=memory.supersedes,
            create_time=memory.create_time,
            source_hash=memory.source_hash,
            metadata=memory.metadata,
            expire_time=memory.expire_time,
            writer=memory.writer,
            pinned=memory.pinned,
            distinct_from=memory.distinct_from,
            files=memory.files,
        )
    )


def _lines(*parts: str) -> str:
    return "\n".join(dict.fromkeys(part for part in parts if part))
