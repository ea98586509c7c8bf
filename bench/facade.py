"""`python -m bench.facade TARGET PROJECT ID CALLS`: one read of a memory through the raw stub and the Python client.

They take turns; the seconds of each are written as JSON. `clients/go/overhead` is the same for Go,
`clients/kotlin/overhead` for Kotlin.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from time import perf_counter

import grpc

from hummock_client import Client
from hummock_client.v1 import memory_service_pb2 as pb
from hummock_client.v1.memory_service_pb2_grpc import MemoryServiceStub

WARM_UP_CALLS = 500
"""Warm-up calls of each kind, which do not count."""

Call = Callable[[], object]


def in_turns(raw: Call, facade: Call, calls: int) -> dict[str, list[float]]:
    """Seconds of each call, by `raw_s` and `facade_s`."""
    found: dict[str, list[float]] = {"raw_s": [], "facade_s": []}
    pair = [("raw_s", raw), ("facade_s", facade)]
    for turn in range(WARM_UP_CALLS + calls):
        for name, call in pair:
            began_s = perf_counter()
            call()
            if turn >= WARM_UP_CALLS:
                found[name].append(perf_counter() - began_s)
        # Whoever comes second finds warm caches, so they take turns in that, too.
        pair.reverse()
    return found


def main(arguments: Sequence[str]) -> None:
    """Writes what was found to stdout."""
    target, project, memory_id, calls = arguments
    with grpc.insecure_channel(target) as channel, Client(target) as client:
        stub = MemoryServiceStub(channel)
        found = in_turns(
            lambda: stub.GetMemory(pb.GetMemoryRequest(project=project, id=memory_id)),
            lambda: client.get(project, memory_id),
            int(calls),
        )
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
