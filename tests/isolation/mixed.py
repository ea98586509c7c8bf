"""Many projects that have the same ids and ask the same: `python -m tests.isolation.mixed --calls 100000 --seed 1`.

Each has a canary, a word that nobody else has. It is in all that the project says, and must be in nothing that another
one is answered, nor in the log. The service has a reader process alongside it, and its caches are on.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import grpc
from google.protobuf.message import Message

from bench import toy_models
from hummock_client.v1 import recall_pb2 as recall
from tests.isolation.calls import CALLS, IDS, SOLITARY, Caller, Crossed, Replies, Shared, begin, canaries, canary
from tests.service.running import Stubs, in_process

_CALLERS = 6
_CONNECTIONS = 8
_PROGRESS_CALLS = 5000
_SHARED = "the lamp that everybody asks for"

_ENOUGH_CROSSINGS = 10
"""Number of crossings after which a run ends: it is known what to mend, and a watch may hang each time."""
_EXPECTED = {grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION}
_EXPECTED_OF = {"CreateSession": {grpc.StatusCode.ALREADY_EXISTS}}


@dataclass(slots=True, kw_only=True)
class Figures:
    """Counts of calls and findings.

    Attributes:
        calls: By method.
        own: Calls by method whose replies held the caller's own canary: without them nothing would be shown.
        cached: Recalls that the cache answered.
        refused: Calls by the code that they were refused with.
        crossings: What held the canary of another project, or was refused as nothing may be.
        logged: Canaries in the log of the service.
    """

    calls: Counter[str] = field(default_factory=Counter)
    own: Counter[str] = field(default_factory=Counter)
    cached: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    crossings: list[str] = field(default_factory=list)
    logged: int = 0

    def heard(self, method: str, project: str, said: bytes) -> bool:
        """Notes what was said to a project; True where its own canary is in it."""
        found = canaries(said)
        for stranger in found - {canary(project)}:
            self.crossings.append(f"{method} told {project} of {stranger}")
        return canary(project) in found


class Mixed:
    """Callers of many projects at once, over several connections."""

    def __init__(self, clients: Sequence[Stubs], projects: int, seed: int) -> None:
        self._clients = clients
        self._projects = [f"project-{number}" for number in range(projects)]
        # One caller works for a project at a time: deleted and made again, it is never half there.
        self._busy = {project: Lock() for project in self._projects}
        self._seed = seed
        self._shared = Shared()
        self._lock = Lock()
        self.figures = Figures()

    def run(self, calls: int) -> Figures:
        """Makes every project, asks all of them the same, and then makes so many calls."""
        for number, project in enumerate(self._projects):
            self._call("begin", begin, self._caller(project, number))
        for project in self._projects:
            for client in (*self._clients[:2], *self._clients[:2]):
                self._ask(client, project, recall.RecallRequest(query_text=_SHARED))
            for word in (canary(project), "lamp"):
                by_words = recall.RecallRequest(query_text=word, paths=[recall.RECALL_PATH_KEYWORD])
                self._ask(self._clients[0], project, by_words)
            by_words = recall.RecallRequest(
                project=project, query_text=SOLITARY, paths=[recall.RECALL_PATH_KEYWORD], preset=recall.PRESET_AGENT
            )
            found = [hit.memory.id for hit in self._clients[0].context.Recall(by_words).hits]
            if found != IDS[-1:]:
                self.figures.crossings.append(f"Recall found {found} in {project} by a word of another memory")
        with ThreadPoolExecutor(_CALLERS) as pool:
            list(pool.map(self._work, [range(first, calls, _CALLERS) for first in range(_CALLERS)]))
        return self.figures

    def _caller(self, project: str, number: int) -> Caller:
        random = Random(f"{self._seed}/{number}")  # noqa: S311 - to be repeated, not to be secret
        return Caller(stubs=random.choice(self._clients), project=project, random=random, shared=self._shared)

    def _ask(self, client: Stubs, project: str, request: recall.RecallRequest) -> None:
        """While every project has had as many writes: nothing but its name tells them apart."""
        request.project = project
        reply = client.context.Recall(request)
        self.figures.cached += reply.receipt.cached
        said = b"\n".join(hit.memory.SerializeToString() for hit in reply.hits)
        if not self.figures.heard("Recall", project, said):
            self.figures.crossings.append(f"Recall told {project} nothing of its own")

    def _work(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            if len(self.figures.crossings) >= _ENOUGH_CROSSINGS:
                return
            random = Random(f"{self._seed}/which/{number}")  # noqa: S311 - as above
            project, method = random.choice(self._projects), random.choice(list(CALLS))
            with self._busy[project]:
                self._call(method, CALLS[method], self._caller(project, number))
            if number % _PROGRESS_CALLS == 0:
                crossings = len(self.figures.crossings)
                print(f"\r{number} calls, {crossings} crossings", end="", file=sys.stderr, flush=True)

    def _call(self, method: str, make: Callable[[Caller], Replies], caller: Caller) -> None:
        replies: list[Message] = []
        error: Any = None
        try:
            replies.extend(make(caller))
        except Crossed as crossed:
            with self._lock:
                self.figures.crossings.append(f"{method} of {caller.project}: {crossed}")
        except grpc.RpcError as refused:
            error = refused
        said = b"\n".join(reply.SerializeToString() for reply in replies)
        if error is not None:
            trailers = [value if isinstance(value, bytes) else value.encode() for _, value in error.trailing_metadata()]
            said = b"\n".join([said, (error.details() or "").encode(), *trailers])
        with self._lock:
            figures = self.figures
            figures.calls[method] += 1
            figures.own[method] += figures.heard(method, caller.project, said)
            figures.cached += sum(getattr(getattr(reply, "receipt", None), "cached", False) for reply in replies)
            if error is not None:
                figures.refused[error.code().name] += 1
                if error.code() not in _EXPECTED.union(_EXPECTED_OF.get(method, ())):
                    figures.crossings.append(f"{method} was refused: {error.code().name} {error.details()}")


@contextmanager
def _connections(target: str) -> Iterator[list[Stubs]]:
    """Some, each of its own, so that they reach every process that shares the port."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    with ExitStack() as stack:
        channels = [stack.enter_context(grpc.insecure_channel(target, options=options)) for _ in range(_CONNECTIONS)]
        yield [Stubs.over(target, channel) for channel in channels]


def run(directory: Path, models_dir: Path, model: str, *, projects: int, calls: int, seed: int) -> Figures:
    """Runs a service with a reader alongside it, where the system can, and makes so many calls of so many projects."""
    readers = "1" if sys.platform == "linux" else "0"
    environ = {"HUMMOCK_READERS": readers, "HUMMOCK_LOG_LEVEL": "debug"}
    log = directory / "service.log"
    with log.open("w") as stderr, in_process(directory / "data", models_dir, model, environ, stderr) as process:
        with _connections(process.target) as clients:
            figures = Mixed(clients, projects, seed).run(calls)
        process.popen.terminate()
        process.popen.wait()
    figures.logged = len(canaries(log.read_bytes()))
    return figures


def main() -> None:
    """Runs, and says as JSON what was seen; status 1 where anything has crossed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--projects", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "models").mkdir()
        model = toy_models.build_tiny(place / "models").name
        figures = run(
            place, place / "models", model, projects=arguments.projects, calls=arguments.calls, seed=arguments.seed
        )
    print(file=sys.stderr)
    for one in figures.crossings[:20]:
        print(one, file=sys.stderr)
    said = {
        "calls": figures.calls.total(),
        "methods": len(figures.calls),
        "showed_their_own": figures.own.total(),
        "silent": sorted(method for method in CALLS if not figures.own[method]),
        "cached": figures.cached,
        "refused": figures.refused,
        "crossings": len(figures.crossings),
        "logged": figures.logged,
    }
    print(json.dumps(said))
    raise SystemExit(bool(figures.crossings or figures.logged))


if __name__ == "__main__":
    main()
