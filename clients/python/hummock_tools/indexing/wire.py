"""Fragments and domain entries as memories on the wire, and which of them must be sent or deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from hashlib import blake2b

from hummock_client.v1 import memory_pb2 as pb
from hummock_tools.indexing.fragment import Fragment
from hummock_tools.indexing.markdown import DomainEntry

REPOSITORY_TAG = "repository:"
ROOT = "root"
"""Metadata key of the root of indexed memories."""

# Part of every hash: raise it when the same values come to be put on the wire differently.
_RECIPE = 1
_HASH_BYTES = 16
# No part of the hash where they are empty, so that what earlier versions have sent is not sent again.
_ADDED = frozenset({"tags", "date"})
# The title is embedded with every chunk of a fragment, and a small model's window has 256 tokens.
_MAX_TITLE_CHARACTERS = 160
_MAX_DOCUMENT_TITLE_CHARACTERS = 1024


def memory_input(memory: Fragment | DomainEntry, name: str, root: str) -> pb.Memory:
    """The memory to learn, of the index of this name; the project's first one has none."""
    tags = [f"{REPOSITORY_TAG}{name}"] if name else []
    message = _code(memory, tags) if isinstance(memory, Fragment) else _domain(memory, tags)
    message.metadata[ROOT] = root
    return message


def index_name(tags: Sequence[str]) -> str:
    """The name of the index that a listed memory with these tags belongs to."""
    return next((tag.removeprefix(REPOSITORY_TAG) for tag in tags if tag.startswith(REPOSITORY_TAG)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Ids to send, in the repository's order; ids to delete, sorted; and how many may stay as they are.

    `taken` are ids of the repository that another index has: neither sent nor deleted.
    """

    send: tuple[str, ...]
    delete: tuple[str, ...]
    unchanged: int
    taken: frozenset[str] = frozenset()


def changes(local: Mapping[str, str], remote: Mapping[str, str]) -> Changes:
    """Compare the content hashes of the repository and of the service, by id."""
    send = tuple(key for key, digest in local.items() if remote.get(key) != digest)
    delete = tuple(sorted(remote.keys() - local.keys()))
    return Changes(send=send, delete=delete, unchanged=len(local) - len(send))


def content_hash(memory: Fragment | DomainEntry) -> str:
    """Hash all fields sent for a memory: 32 hexadecimal digits, equal in every process and version."""
    # Not `asdict`, which copies every value.
    given = ((each.name, getattr(memory, each.name)) for each in fields(memory))
    values = {name: value for name, value in given if value or name not in _ADDED}
    named = {"recipe": _RECIPE, "type": type(memory).__name__, **values}
    canonical = json.dumps(named, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return blake2b(canonical.encode(), digest_size=_HASH_BYTES).hexdigest()


def _code(fragment: Fragment, tags: list[str]) -> pb.Memory:
    return pb.Memory(
        id=fragment.id,
        kind=pb.MEMORY_KIND_CODE_FRAGMENT,
        origin=pb.ORIGIN_INDEXER,
        title=fragment.title[:_MAX_TITLE_CHARACTERS],
        tags=["code", fragment.language, *tags],
        content=fragment.content,
        code_fragment=pb.CodeFragment(
            path=fragment.path,
            start_line=fragment.start_line,
            end_line=fragment.end_line,
            language=fragment.language,
            symbol=fragment.symbol,
        ),
        source_hash=content_hash(fragment),
    )


def _domain(entry: DomainEntry, tags: list[str]) -> pb.Memory:
    message = pb.Memory(
        id=entry.id,
        kind=pb.MEMORY_KIND_DOMAIN_KNOWLEDGE,
        origin=pb.ORIGIN_INDEXER,
        title=entry.title[:_MAX_DOCUMENT_TITLE_CHARACTERS],
        tags=[*dict.fromkeys(("docs", *tags, *_own_tags(entry)))],
        content=entry.content,
        domain_knowledge=pb.DomainKnowledge(
            domain=entry.domain, aliases=entry.aliases, summary=entry.summary, key_files=entry.key_files
        ),
        source_hash=content_hash(entry),
    )
    if entry.date:
        message.event_time.FromDatetime(datetime.fromisoformat(entry.date))
    return message


def _own_tags(entry: DomainEntry) -> Iterator[str]:
    """A note's tags, but for those that would name an index."""
    return (tag for tag in entry.tags if not tag.startswith(REPOSITORY_TAG))
