"""Facets, the properties that a filter asks for, and points of the star map.

A facet is a term of the same list as the words of the text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b

from hummock.core.memory import CodeFragment, DomainKnowledge, Draft, Filter, Memory

_LONGEST = 120
_MARK = "\x1f"


@lru_cache(maxsize=4096)
def tag(name: str) -> str:
    """Return the facet of a tag; case, width and Unicode composition do not matter."""
    return _facet("t", unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()))


def session(session_id: str) -> str:
    """The facet of a session."""
    return _facet("s", session_id)


def speaker(name: str) -> str:
    """The facet of a speaker."""
    return _facet("k", name)


def writer(name: str) -> str:
    """Return the facet of a writer."""
    return _facet("w", name)


def path(name: str) -> str:
    """The facet of a path, or of the end of one. Some file systems take letters apart; here they are put together."""
    return _facet("p", unicodedata.normalize("NFC", name).strip("/"))


def is_folder(name: str) -> bool:
    """Whether a path of a filter is a folder, which stands for all below it."""
    return name.endswith("/")


def below(folder: str) -> str:
    """What the facets of all paths below a folder, or below the end of one, begin with.

    Not of those that from the folder on are longer than 120 bytes, whose facets are hashes.
    """
    return path(folder) + "/"


def domain(name: str) -> str:
    """The facet of a domain's name or alias, which the caller has normalised as prose."""
    return _facet("d", name)


def name(written: str) -> str:
    """The facet of a name of code, in its own case and with all of its underscores."""
    return _facet("n", written)


def metadata(name: str, value: str) -> str:
    """The facet of one of the caller's own facts, letter by letter."""
    return _facet("m", f"{name}\0{value}")


def facets_of(draft: Draft, domain_names: tuple[str, ...]) -> tuple[str, ...]:
    """All facets of a memory, without duplicates; `domain_names` are its domain's names, normalised as prose."""
    found = [tag(name) for name in draft.index.tags]
    if draft.session_id:
        found.append(session(draft.session_id))
    if draft.speaker:
        found.append(speaker(draft.speaker))
    if draft.writer:
        found.append(writer(draft.writer))
    found.extend(metadata(name, value) for name, value in draft.metadata)
    if draft.files or isinstance(draft.payload.detail, CodeFragment):
        found.extend(path(end) for one in paths_of(draft) for end in path_ends(one))
    if isinstance(draft.payload.detail, DomainKnowledge):
        found.extend(domain(name) for name in domain_names)
    return tuple(dict.fromkeys(found))


def paths_of(said: Draft | Memory) -> tuple[str, ...]:
    """The path of a piece of code, and the files that a memory names."""
    detail = None if said.payload is None else said.payload.detail
    return (detail.path, *said.files) if isinstance(detail, CodeFragment) else said.files


def path_ends(full_path: str) -> list[str]:
    """The path itself, and it without its first parts, down to the file's name."""
    parts = full_path.strip("/").split("/")
    return ["/".join(parts[start:]) for start in range(len(parts))]


def is_facet(term: str) -> bool:
    """Whether a term is a facet and no word of a text."""
    return term.startswith(_MARK)


def _facet(prefix: str, value: str) -> str:
    # At most four bytes a character.
    if 4 * len(value) > _LONGEST and len(value.encode()) > _LONGEST:
        value = blake2b(value.encode(), digest_size=16).hexdigest()
    return f"{_MARK}{prefix}{value}"


def needs_payload(where: Filter) -> bool:
    """Whether the condition can only be judged with a memory's payload: paths and days are read from it."""
    return bool(where.paths) or where.event_after is not None or where.event_before is not None


def passes(memory: Memory, where: Filter, told_time: Callable[[Memory], float | None]) -> bool:
    """Whether the memory meets all conditions; those on paths and on `told_time` need its payload."""
    return (
        (not where.kinds or memory.kind in where.kinds)
        and (memory.pinned or not where.pinned)
        and (not where.origins or memory.origin in where.origins)
        and (not where.session_ids or memory.session_id in where.session_ids)
        and (not where.speakers or memory.speaker in where.speakers)
        and (not where.writers or memory.writer in where.writers)
        and (where.created_after is None or memory.create_time >= where.created_after)
        and (where.created_before is None or memory.create_time < where.created_before)
        and _is_told_within(memory, where, told_time)
        and memory.id not in where.excluded_ids
        and _has_tags(memory, where.tags)
        and set(where.metadata) <= set(memory.metadata)
        and _is_at(memory, where.paths)
    )


def _is_told_within(memory: Memory, where: Filter, told_time: Callable[[Memory], float | None]) -> bool:
    if where.event_after is None and where.event_before is None:
        return True
    told = told_time(memory)
    return (
        told is not None
        and (where.event_after is None or told >= where.event_after)
        and (where.event_before is None or told < where.event_before)
    )


def _has_tags(memory: Memory, tags: tuple[str, ...]) -> bool:
    return not tags or set(map(tag, tags)) <= set(map(tag, memory.index.tags))


def _is_at(memory: Memory, paths: tuple[str, ...]) -> bool:
    if not paths:
        return True
    ends = {path(end) for one in paths_of(memory) for end in path_ends(one)}
    return any(
        any(end.startswith(below(name)) for end in ends) if is_folder(name) else path(name) in ends for name in paths
    )
