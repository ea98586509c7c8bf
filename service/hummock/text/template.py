"""Which words of a memory are embedded, searched, compared and shown.

The version of the template is part of the embedding space: change it with every change of what is embedded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hummock.core.memory import CodeFragment, DomainKnowledge, Draft, LearningRecord, MemoryIndex, MemoryKind, Payload

TEMPLATE_VERSION = 1

_TITLE_CHARACTERS = 120
_SUMMARY_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The searched text of a memory by field."""

    title: str
    tags: str
    body: str


def embedded(index: MemoryIndex, payload: Payload) -> tuple[str, str]:
    """The header, which every chunk repeats, and the body, which is cut into chunks."""
    match payload.detail:
        case LearningRecord(question=question, answer=answer):
            return _lines(index.title, question), _lines(answer, payload.content)
        case DomainKnowledge(domain=domain, aliases=aliases, summary=summary):
            return _lines(index.title or domain, *aliases), _lines(summary, payload.content)
        case CodeFragment(path=path, symbol=symbol):
            return _lines(f"{path} {symbol}".strip(), index.title), payload.content
        case _:
            return index.title, payload.content


def searched(draft: Draft) -> Fields:
    """The text of the keyword index, by field."""
    tags = " ".join(draft.index.tags)
    match draft.payload.detail:
        case LearningRecord(question=question, answer=answer, source_files=files):
            title = _lines(draft.index.title, question)
            return Fields(title=title, tags=tags, body=_lines(answer, draft.payload.content, *files))
        case DomainKnowledge(domain=domain, aliases=aliases, summary=summary, key_files=files):
            title = _lines(draft.index.title, domain, *aliases)
            return Fields(title=title, tags=tags, body=_lines(summary, draft.payload.content, *files))
        case CodeFragment(path=path, symbol=symbol):
            return Fields(title=_lines(draft.index.title, symbol, path), tags=tags, body=draft.payload.content)
        case _:
            return Fields(title=draft.index.title, tags=tags, body=_lines(draft.index.summary, draft.payload.content))


def compared(draft: Draft, title: str) -> str:
    """The text that makes two memories the same one; `title` is of the draft's complete index."""
    match draft.payload.detail:
        case LearningRecord(question=question, answer=answer):
            return _lines(question, answer, draft.payload.content)
        case DomainKnowledge(domain=domain, summary=summary):
            return _lines(domain, summary, draft.payload.content)
        case _ if draft.kind is MemoryKind.ENTRY:
            # Many entries of a codex say "nothing is known yet"; each is about what it names.
            return _lines(title, draft.payload.content)
        case _:
            return draft.payload.content


def derived_index(draft: Draft) -> MemoryIndex:
    """The draft's index with what is missing taken from the payload."""
    title, summary = _shown(draft)
    return MemoryIndex(
        title=draft.index.title if draft.index.title.strip() else _cut(title, _TITLE_CHARACTERS),
        summary=draft.index.summary if draft.index.summary.strip() else _cut(summary, _SUMMARY_CHARACTERS),
        tags=draft.index.tags,
    )


def left_open(draft: Draft) -> Draft:
    """The draft without the title and the summary that would be derived from its payload."""
    derived = derived_index(replace(draft, index=MemoryIndex(tags=draft.index.tags)))
    index = replace(
        draft.index,
        title="" if draft.index.title == derived.title else draft.index.title,
        summary="" if draft.index.summary == derived.summary else draft.index.summary,
    )
    return replace(draft, index=index)


def is_code(draft: Draft) -> bool:
    """Whether the text is compared as code: case, width and white space count."""
    return draft.kind is MemoryKind.CODE_FRAGMENT


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


def _lines(*parts: str) -> str:
    return "\n".join(dict.fromkeys(part for part in parts if part))
