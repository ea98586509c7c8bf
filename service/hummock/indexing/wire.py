"""Fragments and domain entries as memories on the wire."""

from collections.abc import Sequence

from hummock.indexing.fragment import Fragment
from hummock.indexing.markdown import DomainEntry
from hummock.indexing.plan import content_hash
from hummock.v1 import memory_pb2 as pb

REPOSITORY_TAG = "repository:"
# The title is embedded with every chunk of a fragment, and a small model's window has 256 tokens.
_MAX_TITLE_CHARACTERS = 160


def memory_input(memory: Fragment | DomainEntry, name: str) -> pb.MemoryInput:
    """The memory to learn; `name` is that of its repository in the project, empty for the project's only one."""
    tags = [f"{REPOSITORY_TAG}{name}"] if name else []
    if isinstance(memory, Fragment):
        return _code(memory, tags)
    return _domain(memory, tags)


def is_of_repository(tags: Sequence[str], name: str) -> bool:
    """Whether a listed memory with these tags belongs to the repository of that name."""
    wanted = {f"{REPOSITORY_TAG}{name}"} if name else set()
    return {tag for tag in tags if tag.startswith(REPOSITORY_TAG)} == wanted


def _code(fragment: Fragment, tags: list[str]) -> pb.MemoryInput:
    return pb.MemoryInput(
        id=fragment.id,
        kind=pb.MEMORY_KIND_CODE_FRAGMENT,
        origin=pb.ORIGIN_INDEXER,
        index=pb.MemoryIndex(title=fragment.signature[:_MAX_TITLE_CHARACTERS], tags=["code", fragment.language, *tags]),
        payload=pb.MemoryPayload(
            content=fragment.content,
            code_fragment=pb.CodeFragment(
                path=fragment.path,
                start_line=fragment.start_line,
                end_line=fragment.end_line,
                language=fragment.language,
                symbol=fragment.symbol,
            ),
        ),
        source_hash=content_hash(fragment),
    )


def _domain(entry: DomainEntry, tags: list[str]) -> pb.MemoryInput:
    return pb.MemoryInput(
        id=entry.id,
        kind=pb.MEMORY_KIND_DOMAIN_KNOWLEDGE,
        origin=pb.ORIGIN_INDEXER,
        index=pb.MemoryIndex(tags=["docs", *tags]),
        payload=pb.MemoryPayload(
            content=entry.content,
            domain_knowledge=pb.DomainKnowledge(
                domain=entry.domain, aliases=entry.aliases, summary=entry.summary, key_files=entry.key_files
            ),
        ),
        source_hash=content_hash(entry),
    )
