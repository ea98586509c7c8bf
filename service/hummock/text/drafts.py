"""Memories as they are to be stored: what they were made from, and what they are searched by."""

from __future__ import annotations

from hummock.core.facets import facets_of
from hummock.core.memory import DomainKnowledge, Draft, Memory
from hummock.text import template
from hummock.text.normalise import prose
from hummock.text.terms import A_FACET, BODY, TAGS, TITLE, Piece


def as_draft(memory: Memory) -> Draft:
    """The draft that a memory with a payload was made from; what the server had derived is left open again."""
    if memory.payload is None:
        raise ValueError("the memory was read without its payload")
    return template.left_open(
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
        )
    )


def pieces_of(draft: Draft) -> list[Piece]:
    """What a memory is searched by."""
    fields = template.searched(draft)
    facets = facets_of(draft, _domain_names(draft))
    return [(facet, A_FACET) for facet in facets] + [(fields.title, TITLE), (fields.tags, TAGS), (fields.body, BODY)]


def _domain_names(draft: Draft) -> tuple[str, ...]:
    detail = draft.payload.detail
    if not isinstance(detail, DomainKnowledge):
        return ()
    return tuple(name for name in (prose(name) for name in (detail.domain, *detail.aliases)) if name)
