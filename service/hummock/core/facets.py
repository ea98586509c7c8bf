"""Facets: the properties that a filter asks for, as terms of the same list as the words of the text.

A facet begins with a control character that no analysed term has, so a word never counts as a tag.
"""

from __future__ import annotations

import unicodedata
from hashlib import blake2b

from hummock.core.memory import CodeFragment, DomainKnowledge, Draft

_LONGEST = 120


def tag(name: str) -> str:
    """The facet of a tag; case, width and the way in which letters are put together do not matter."""
    return _facet("t", unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()))


def session(session_id: str) -> str:
    """The facet of a session."""
    return _facet("s", session_id)


def speaker(name: str) -> str:
    """The facet of a speaker."""
    return _facet("k", name)


def path(name: str) -> str:
    """The facet of a path, or of the end of one. Some file systems take letters apart; here they are put together."""
    return _facet("p", unicodedata.normalize("NFC", name).strip("/"))


def domain(name: str) -> str:
    """The facet of a domain's name or alias, which the caller has normalised as prose."""
    return _facet("d", name)


def name(written: str) -> str:
    """The facet of a name of code, in its own case and with all of its underscores."""
    return _facet("n", written)


def facets_of(draft: Draft, domain_names: tuple[str, ...]) -> tuple[str, ...]:
    """All facets of a memory, without duplicates.

    Args:
        draft: The memory.
        domain_names: Its domain's name and aliases, normalised as prose; empty for other kinds.
    """
    found = [tag(name) for name in draft.index.tags]
    if draft.session_id:
        found.append(session(draft.session_id))
    if draft.speaker:
        found.append(speaker(draft.speaker))
    if isinstance(draft.payload.detail, CodeFragment):
        found.extend(path(end) for end in path_ends(draft.payload.detail.path))
    if isinstance(draft.payload.detail, DomainKnowledge):
        found.extend(domain(name) for name in domain_names)
    return tuple(dict.fromkeys(found))


def path_ends(full_path: str) -> list[str]:
    """The path itself, and it without its first parts, down to the file's name."""
    parts = full_path.strip("/").split("/")
    return ["/".join(parts[start:]) for start in range(len(parts))]


def _facet(prefix: str, value: str) -> str:
    if len(value.encode()) > _LONGEST:
        value = blake2b(value.encode(), digest_size=16).hexdigest()
    return f"\x1f{prefix}{value}"
