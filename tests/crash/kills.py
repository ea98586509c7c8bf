"""Kills a service that many write to, again and again: `python -m tests.crash.kills --kills 1000 --seed 1`.

Eight clients write and one reads; after so many acknowledgements, drawn from the seed, the process is killed. It is
started again on the same directory, and what it tells must agree with what every client was told. Part of `make crash`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Lock

import grpc

from bench import toy_models
from hummock_client.v1 import learning_service_pb2 as learning
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import project_service_pb2 as projects
from hummock_client.v1 import recall_pb2 as recall
from hummock_client.v1 import session_service_pb2 as sessions
from tests.crash.writers import BATCH, WORD, Call, Writer
from tests.service.running import Process, Stubs, connected, in_process

WRITERS = 8
MOST_ANSWERS = 160
"""Most answers of a round before the kill; a client has at most 200 memories then, as many as one recall gives."""
_REPEATED = 3
"""Acknowledged calls that each client repeats after the restart, besides the one that was in flight."""
_VIOLATIONS_SHOWN = 20


@dataclass(slots=True, kw_only=True)
class Figures:
    """Counts of what was seen so far.

    Attributes:
        in_flight: Calls that were under way at a kill; `in_flight_applied` of them had taken effect.
        reads: Answers that the reader compared with what was acknowledged before it asked.
    """

    kills: int = 0
    acknowledged: int = 0
    memories: int = 0
    in_flight: int = 0
    in_flight_applied: int = 0
    repeated: int = 0
    reads: int = 0
    slowest_start_s: float = 0.0
    violations: list[str] = field(default_factory=list)


class Round:
    """One life of the service: eight write and one reads, until it is killed."""

    def __init__(self, number: int, seed: int) -> None:
        self.project = f"round-{number}"
        self._kill_after = Random(f"{seed}/{number}").randint(1, MOST_ANSWERS)  # noqa: S311 - to be repeated
        self.writers = [
            Writer(project=self.project, name=f"w{one}", seed=f"{seed}/{number}/{one}") for one in range(WRITERS)
        ]
        self._answers = 0
        self._lock = Lock()
        self.reads = 0
        self.torn: list[str] = []

    def live(self, process: Process, stubs: Stubs) -> None:
        """Returns when the service is dead and every client has noticed."""

        def on_answer() -> None:
            with self._lock:
                self._answers += 1
                is_last = self._answers == self._kill_after
            if is_last:
                process.kill()

        with ThreadPoolExecutor(WRITERS + 1) as pool:
            reader = pool.submit(self._read, stubs)
            for writing in [pool.submit(writer.write, stubs, on_answer) for writer in self.writers]:
                writing.result()
            reader.result()

    def _found(self, stubs: Stubs, ids: list[str]) -> int:
        request = memory.BatchGetMemoriesRequest(project=self.project, ids=ids, allow_missing=True)
        self.reads += 1
        return len(stubs.memory.BatchGetMemories(request).memories)

    def _read(self, stubs: Stubs) -> None:
        """Reads batches that may be under way, until the service is dead: it sees all of one or nothing."""
        with suppress(grpc.RpcError):
            while True:
                calls = [(writer, writer.in_flight) for writer in self.writers]
                learnt = [(writer, call) for writer, call in calls if call is not None and call.method == "Learn"]
                if not learnt:
                    # That the service is dead is heard by asking it.
                    self._found(stubs, ["nobody"])
                for writer, call in learnt:
                    found = self._found(stubs, [note.id for note in call.request.memories])
                    # After its answer the writer may have deleted some of them.
                    if found not in (0, BATCH) and writer.in_flight is call:
                        self.torn.append(f"I2: {found} of {BATCH} memories of a batch were seen")


def check(stubs: Stubs, ended: Round, figures: Figures) -> None:
    """Compares a service that was started again with what the round's clients were told."""
    figures.acknowledged += sum(len(writer.answered) for writer in ended.writers)
    figures.reads += ended.reads
    found = list(ended.torn)
    for writer in ended.writers:
        found += _in_flight(stubs, writer, figures)
        found += _repeats(stubs, writer, figures)
        found += _contents(stubs, writer)
        found += _messages(stubs, writer)
        figures.memories += len(writer.contents)
    found += _project(stubs, ended)
    figures.violations += [f"{ended.project}: {one}" for one in found]


def _in_flight(stubs: Stubs, writer: Writer, figures: Figures) -> list[str]:
    """I2 and I6: what was under way is there whole or not at all, and repeating it makes it happen once."""
    call = writer.in_flight
    if call is None:
        return []
    figures.in_flight += 1
    found = []
    if call.method == "Learn":
        ids = [note.id for note in call.request.memories]
        request = memory.BatchGetMemoriesRequest(project=writer.project, ids=ids, allow_missing=True)
        there = len(stubs.memory.BatchGetMemories(request).memories)
        figures.in_flight_applied += there == BATCH
        if there not in (0, BATCH):
            found.append(f"I2: {there} of {BATCH} memories of a batch are there")
    writer.repeat(stubs)
    return found


def _repeats(stubs: Stubs, writer: Writer, figures: Figures) -> list[str]:
    """I6: a request_id that was answered is answered alike; the rest of the check shows that nothing more happened."""
    found = []
    # An edit is answered with the memory as it is by now: one that is gone is NOT_FOUND.
    repeatable = [one for one in writer.answered if _target(one[0]) not in writer.deleted]
    for call, reply in Random(writer.seed).sample(repeatable, min(_REPEATED, len(repeatable))):  # noqa: S311
        figures.repeated += 1
        again = call.send(stubs)
        if _seq(again) != _seq(reply):
            found.append(f"I6: {call.method} was answered with seq {_seq(reply)}, and repeated with {_seq(again)}")
    return found


def _target(call: Call) -> str:
    """The memory that an edit is of."""
    return str(call.request.memory.id) if call.method == "UpdateMemory" else ""


def _seq(reply: object) -> int:
    rendering = getattr(reply, "rendering", reply)
    return int(rendering.seq)  # type: ignore[attr-defined] # every write says it


def _contents(stubs: Stubs, writer: Writer) -> list[str]:
    """I1, I3 and I5: the client's memories are those it was told of, in the store and in both indexes."""
    where = pb.MemoryFilter(session_ids=[writer.name])
    request = memory.ListMemoriesRequest(
        project=writer.project, filter=where, page_size=1000, view=pb.MEMORY_VIEW_FULL, allow_missing=True
    )
    there = {one.id: one.content for one in stubs.memory.ListMemories(request).memories}
    found = [f"I1: {one} was acknowledged and is lost" for one in writer.contents.keys() - there.keys()]
    found += [f"I5: {one} was deleted and is there" for one in writer.deleted & there.keys()]
    found += [
        f"I6: {one} is there and nobody knows it" for one in there.keys() - writer.contents.keys() - writer.deleted
    ]
    found += [
        f"I1: {one} says something else"
        for one in there.keys() & writer.contents.keys()
        if there[one] != writer.contents[one]
    ]
    for path in (recall.RECALL_PATH_KEYWORD, recall.RECALL_PATH_VECTOR):
        asked = recall.RecallRequest(
            project=writer.project,
            query_text=WORD,
            filter=where,
            paths=[path],
            tuning=recall.RecallTuning(top_k=200, candidates=1000, min_similarity=-1, near_twin_bar=2),
            view=pb.MEMORY_VIEW_INDEX,
            allow_missing=True,
        )
        hits = [hit.memory.id for hit in stubs.context.Recall(asked).hits]
        if sorted(hits) != sorted(writer.contents):
            odd = set(hits) ^ set(writer.contents)
            found.append(f"I3: {recall.RecallPath.Name(path)} and the store differ by {len(odd)}: {sorted(odd)[:3]}")
    return found


def _messages(stubs: Stubs, writer: Writer) -> list[str]:
    """I1 and I6: every message once, in its place."""
    if not writer.answered:
        return []
    request = sessions.ListMessagesRequest(project=writer.project, session_id=writer.name, page_size=1000)
    there = [one.content for one in stubs.session.ListMessages(request).messages]
    return (
        []
        if there == writer.messages
        else [f"I1: {writer.name} sent {len(writer.messages)} messages, {len(there)} are there or in another order"]
    )


def _project(stubs: Stubs, ended: Round) -> list[str]:
    """I3, I6 and I7: the project counts what is there; the log of events has each turn once and gives the state."""
    name = ended.project
    wanted = sum(len(writer.contents) for writer in ended.writers)
    details = stubs.project.GetProject(projects.GetProjectRequest(project=name)).project
    found = []
    if (details.memory_count, details.pending_count) != (wanted, 0):
        found.append(f"I3: it counts {details.memory_count} memories of {wanted}, {details.pending_count} waiting")
    page = stubs.learning.ListLearningEvents(learning.ListLearningEventsRequest(project=name, page_size=1000))
    counted = Counter(event.injected.request_id for event in page.events if event.HasField("injected"))
    if counted != Counter(one for writer in ended.writers for one in writer.counted):
        found.append("I6: the turns that were counted are not those that were acknowledged, each once")
    if not stubs.learning.ReplayLearning(learning.ReplayLearningRequest(project=name)).matches:
        found.append("I7: the log of events gives another state")
    return found


def summary(stubs: Stubs, project: str) -> str:
    """SHA-256 of all memories of a project, in hex."""
    request = memory.ListMemoriesRequest(project=project, page_size=1000, view=pb.MEMORY_VIEW_FULL)
    said = sha256()
    while True:
        page = stubs.memory.ListMemories(request)
        for one in page.memories:
            said.update(one.SerializeToString(deterministic=True))
        if not page.next_page_token:
            return said.hexdigest()
        request.page_token = page.next_page_token


def _kept(stubs: Stubs, earlier: Mapping[str, str], random: Random) -> list[str]:
    """Mismatches of what an earlier round left, after all kills since; one of the rounds is checked."""
    project = random.choice(sorted(earlier))
    return [] if summary(stubs, project) == earlier[project] else [f"{project}: I1: it is not as it was"]


def run(directory: Path, models_dir: Path, model: str, kills: int, seed: int) -> Figures:
    """Kills a service so often, with one directory for all of its lives."""
    figures = Figures()
    ended: Round | None = None
    earlier: dict[str, str] = {}
    random = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    with (directory / "service.log").open("w") as log:
        for number in range(kills + 1):
            began = time.monotonic()
            with (
                in_process(directory / "data", models_dir, model, stderr=log) as process,
                connected(process.target) as stubs,
            ):
                figures.slowest_start_s = max(figures.slowest_start_s, time.monotonic() - began)
                if ended is not None:
                    check(stubs, ended, figures)
                    earlier[ended.project] = summary(stubs, ended.project)
                    figures.violations += _kept(stubs, earlier, random)
                if number == kills:
                    break
                ended = Round(number, seed)
                ended.live(process, stubs)
                figures.kills += 1
            print(
                f"\r{figures.kills} of {kills} kills, {figures.acknowledged} acknowledged,"
                f" {len(figures.violations)} violations",
                end="",
                file=sys.stderr,
                flush=True,
            )
    print(file=sys.stderr)
    return figures


def main() -> None:
    """Runs, and says as JSON what was seen; status 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "models").mkdir()
        model = toy_models.build_tiny(place / "models").name
        figures = run(place, place / "models", model, arguments.kills, arguments.seed)
    said = asdict(figures)
    said["violations"] = len(figures.violations)
    print(json.dumps(said))
    for one in figures.violations[:_VIOLATIONS_SHOWN]:
        print(one, file=sys.stderr)
    raise SystemExit(bool(figures.violations))


if __name__ == "__main__":
    main()
