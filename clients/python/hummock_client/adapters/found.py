"""Hits of a recall in the form that frameworks expect: a text and a dictionary of metadata."""

from __future__ import annotations

from collections.abc import Iterator

from hummock_client.v1 import memory_pb2, recall_pb2

Metadata = dict[str, str | int | float | list[str]]

KINDS = {value: name.removeprefix("MEMORY_KIND_").lower() for name, value in memory_pb2.MemoryKind.items()}


def all_hits(reply: recall_pb2.RecallResponse) -> Iterator[recall_pb2.Hit]:
    """Memories, then code fragments, then domains, each group best first."""
    yield from reply.hits
    yield from reply.code_fragments
    yield from reply.domains


def metadata_of(hit: recall_pb2.Hit) -> Metadata:
    """Metadata of a hit; fields that do not apply are left out. A larger score is better."""
    memory, code = hit.memory, hit.memory.code_fragment
    known: Metadata = {
        "id": memory.id,
        "kind": KINDS.get(memory.kind, str(memory.kind)),
        "title": memory.title,
        "tags": list(memory.tags),
        "score": hit.score,
        "speaker": memory.speaker,
        "session_id": memory.session_id,
        "path": code.path,
        "start_line": code.start_line,
        "end_line": code.end_line,
        "symbol": code.symbol,
    }
    return {name: value for name, value in known.items() if value}
