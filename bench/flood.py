"""`python -m bench.flood TARGET METHOD REQUESTS [TOKEN]`: 400 calls in flight over 8 connections until its input ends.

REQUESTS is a file of serialised requests, each behind its length in four bytes. Prints a line when it begins, and at
the end how many calls ended with which status: " bare" behind one stands for no RetryInfo. It imports little, as it
starts anew for each flood.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from struct import pack, unpack_from
from tempfile import TemporaryDirectory
from typing import cast

import grpc

from hummock_client.errors import FailedCall, call_error

_CONNECTIONS, _OF_CONNECTION = 8, 50
_OPTIONS = [("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]


@contextmanager
def flooding(target: str, method: str, requests: Sequence[bytes], token: str = "") -> Iterator[Counter[str]]:
    """A flood from a process of its own while the block runs; its counts are filled in when it ends."""
    counts: Counter[str] = Counter()
    with TemporaryDirectory(prefix="flood-") as directory:
        path = Path(directory, "requests")
        path.write_bytes(b"".join(pack("=I", len(each)) + each for each in requests))
        command = [sys.executable, "-m", "bench.flood", target, method, str(path), token]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
            try:
                if process.stdout is not None:
                    process.stdout.readline()
                yield counts
                counts.update(json.loads(process.communicate("")[0]))
            finally:
                process.kill()


def _flood(target: str, method: str, data: bytes, token: str) -> Counter[str]:
    ended: Counter[str] = Counter()
    requests = cycle(list(_requests(data)))
    metadata = (("authorization", f"Bearer {token}"),) if token else ()

    def begin(call: grpc.UnaryUnaryMultiCallable[bytes, bytes]) -> None:
        call.future(next(requests), metadata=metadata).add_done_callback(lambda done: end(call, done))

    def end(call: grpc.UnaryUnaryMultiCallable[bytes, bytes], done: grpc.Future[bytes]) -> None:
        failed = done.exception()
        error = None if failed is None else call_error(cast(FailedCall, failed), "the service")
        ended["OK" if error is None else error.code.name + " bare" * (error.retry_after_s is None)] += 1
        begin(call)

    for _ in range(_CONNECTIONS):
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = grpc.insecure_channel(target, _OPTIONS).unary_unary(method)
        for _ in range(_OF_CONNECTION):
            begin(call)
    print("begun", flush=True)
    sys.stdin.read()
    return ended.copy()


def _requests(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        (length,) = unpack_from("=I", data, at)
        at += 4 + length
        yield data[at - length : at]


if __name__ == "__main__":
    of_target, of_method, of_requests, of_token = sys.argv[1:]
    print(json.dumps(_flood(of_target, of_method, Path(of_requests).read_bytes(), of_token)), flush=True)
    # Nobody waits for the calls that are still in flight.
    os._exit(0)
