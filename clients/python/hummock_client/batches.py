"""Many memories as the batches of a LearnStream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hummock.v1 import memory_pb2 as pb

MAX_MEMORIES = 64
MAX_BYTES = 1024 * 1024
"""A request may have 4 MiB; smaller ones show progress sooner."""


def batches(memories: Iterable[pb.MemoryInput]) -> Iterator[list[pb.MemoryInput]]:
    """The memories in order, in batches of at most 64 and, unless one alone is larger, 1 MiB."""
    batch: list[pb.MemoryInput] = []
    batch_bytes = 0
    for memory in memories:
        memory_bytes = memory.ByteSize()
        if batch and (len(batch) == MAX_MEMORIES or batch_bytes + memory_bytes > MAX_BYTES):
            yield batch
            batch, batch_bytes = [], 0
        batch.append(memory)
        batch_bytes += memory_bytes
    if batch:
        yield batch
