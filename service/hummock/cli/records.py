"""Memories out of JSON lines: protobuf's JSON mapping of a MemoryInput a line."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from google.protobuf.json_format import Parse, ParseError

from hummock.v1 import context_service_pb2 as context_pb
from hummock.v1 import memory_pb2 as pb

__all__ = ["BadLine", "learn_request", "parse_lines"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line that is no memory: its number, counted from 1, and why."""

    number: int
    reason: str


def parse_lines(lines: Iterable[bytes]) -> Iterator[pb.MemoryInput | BadLine]:
    """A memory or a complaint for each line; empty lines are passed over."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield Parse(line.decode("utf-8-sig" if number == 1 else "utf-8"), pb.MemoryInput())
        except UnicodeDecodeError as error:
            yield BadLine(number=number, reason=f"is not UTF-8 (byte {error.start})")
        except ParseError as error:
            yield BadLine(number=number, reason=" ".join(str(error).split()))


def learn_request(project: str, memories: Sequence[pb.MemoryInput]) -> context_pb.LearnRequest:
    """A Learn with an id of its own, so that a repeated delivery is one write."""
    return context_pb.LearnRequest(project=project, request_id=str(uuid.uuid4()), memories=memories)
