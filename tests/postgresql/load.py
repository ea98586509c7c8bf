"""Clients that write and recall at two services whatever happens to them, and what the clients were told."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from threading import Event, Lock
from typing import Final, TypeVar

import grpc

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import project_service_pb2 as projects
from hummock_client.v1 import recall_pb2 as recall
from tests.postgresql.services import Service
from tests.service.inputs import note
from tests.service.running import Stubs

_WRITERS: Final = 4
_READERS: Final = 2
_STEADY_READERS: Final = 2
"""Readers that allow answers from memory."""
_PROJECTS: Final = 3
_DEADLINE_S: Final = 10
_HANG_S: Final = 12
"""A call that takes longer was not ended by its deadline."""
_PAUSE_S: Final = 0.02
"""Between a client's calls: three PostgreSQL, three etcd and two services share the machine."""
_LAST_S: Final = 60
"""Seconds for which a writer repeats its last request before it gives up."""
_FLOW_S: Final = 60
_REPEATED: Final = 20
"""Requests of each project that are sent once more when all is over."""

Answer = TypeVar("Answer")


class NothingFlows(Exception):
    """A service has acknowledged too little for too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """A request that was answered, at a moment of the monotonic clock."""

    request: context.LearnRequest
    reply: context.LearnResponse
    at_s: float

    @property
    def is_first(self) -> bool:
        """True if the memory was created, as a first request reports for a memory that nobody else learns."""
        return self.reply.results[0].status == context.LEARN_STATUS_CREATED


@dataclass(slots=True, kw_only=True)
class Ledger:
    """Requests of clients and their replies. Counts from several threads are kept under the lock.

    Attributes:
        sent: By the memory's id; each request has one memory.
        by_service: How many each service has acknowledged.
        recalls_s: When recalls were answered in full, on the monotonic clock.
        stale: Recalls in full that lacked a memory which had been acknowledged before they were sent.
        degraded: Recalls that said they were not answered in full.
        steady_s: When recalls that may be answered from memory were, by the reader, on the monotonic clock.
        from_memory: How many of these said that they were.
        hangs: Calls that their deadline did not end.
        errors: By status code.
        sayings: What was said with each code the first time.
        slowest_s: The longest that any call took.
    """

    projects: Sequence[str]
    sent: dict[str, context.LearnRequest] = field(default_factory=dict)
    acknowledged: dict[str, Acknowledged] = field(default_factory=dict)
    by_service: Counter[str] = field(default_factory=Counter)
    recalls_s: list[float] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    degraded: int = 0
    steady_s: dict[str, list[float]] = field(default_factory=dict)
    from_memory: int = 0
    hangs: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    sayings: dict[str, str] = field(default_factory=dict)
    slowest_s: float = 0.0
    lock: Lock = field(default_factory=Lock)

    def write_gap_s(self) -> float:
        """The longest time between two acknowledgements."""
        return _longest_gap(one.at_s for one in self.acknowledged.values())

    def recall_gap_s(self) -> float:
        """The longest time between two recalls that were answered in full."""
        return _longest_gap(self.recalls_s)

    def steady_gap_s(self) -> float:
        """The longest time that any reader which allows answers from memory was without one."""
        return max(map(_longest_gap, self.steady_s.values()), default=0.0)

    def await_flow(self, services: Sequence[Service], count: int) -> None:
        """Returns when each service has acknowledged so many more. Raises: NothingFlows."""
        wanted = {one.name: self.by_service[one.name] + count for one in services}
        until = time.monotonic() + _FLOW_S
        while lacking := [name for name, least in wanted.items() if self.by_service[name] < least]:
            if time.monotonic() > until:
                raise NothingFlows(f"no {count} writes in {_FLOW_S} s at {lacking}; clients saw {dict(self.sayings)}")
            time.sleep(_PAUSE_S)


@contextmanager
def under_load(services: Sequence[Service], name: str) -> Iterator[Ledger]:
    """Replies to clients while it is entered. At exit the last requests are answered, or given up.

    Args:
        services: At which all of them are clients.
        name: Begins the names of their projects, which nobody else has.
    """
    ledger = Ledger(projects=[f"{name}-{number}" for number in range(_PROJECTS)])
    stop = Event()
    with ThreadPoolExecutor(_WRITERS + _READERS + _STEADY_READERS) as pool:
        running = [pool.submit(Client(services, ledger, stop, f"w{number}").write) for number in range(_WRITERS)]
        running += [pool.submit(Client(services, ledger, stop, f"r{number}").recall) for number in range(_READERS)]
        steady = [Client(services, ledger, stop, f"s{number}") for number in range(_STEADY_READERS)]
        running += [pool.submit(client.recall_steadily) for client in steady]
        try:
            yield ledger
        finally:
            stop.set()
        for client in running:
            client.result()


class Client:
    """One caller, which goes to the other service where one fails."""

    def __init__(self, services: Sequence[Service], ledger: Ledger, stop: Event, name: str) -> None:
        self._services = services
        self._ledger = ledger
        self._stop = stop
        self._name = name
        self._random = Random(name)  # noqa: S311 - to be repeated, not to be secret
        self._calls = 0

    def write(self) -> None:
        """Learns one memory after another, each until it is acknowledged, until it is told to stop."""
        number = 0
        while not self._stop.is_set():
            self._learn(number)
            number += 1
            time.sleep(_PAUSE_S)

    def recall(self) -> None:
        """Recalls what was acknowledged to whomever, until it is told to stop."""
        while not self._stop.is_set():
            ids = list(self._ledger.acknowledged)
            if ids:
                self._recall(self._random.choice(ids))
            time.sleep(_PAUSE_S)

    def recall_steadily(self) -> None:
        """Recalls acknowledged memories until told to stop, also from a possibly stale view."""
        while not self._stop.is_set():
            ids = list(self._ledger.acknowledged)
            if ids:
                self._recall(self._random.choice(ids), allow_stale=True)
            time.sleep(_PAUSE_S)

    def _learn(self, number: int) -> None:
        memory_id = f"{self._name}-{number}"
        project = self._random.choice(self._ledger.projects)
        learnt = note(f"{_word(memory_id)} was said as number {number}", id=memory_id)
        request = context.LearnRequest(project=project, memories=[learnt], request_id=str(uuid.uuid4()))
        self._ledger.sent[memory_id] = request
        stopped_s = None
        while True:
            answer = self._answer(lambda stubs: stubs.context.Learn(request, timeout=_DEADLINE_S))
            if answer is not None:
                self._acknowledge(memory_id, request, *answer)
                return
            if self._stop.is_set():
                stopped_s = stopped_s or time.monotonic()
                if time.monotonic() > stopped_s + _LAST_S:
                    return
            time.sleep(_PAUSE_S)

    def _acknowledge(
        self, memory_id: str, request: context.LearnRequest, service: Service, reply: context.LearnResponse
    ) -> None:
        one = Acknowledged(request=request, reply=reply, at_s=time.monotonic())
        with self._ledger.lock:
            self._ledger.acknowledged[memory_id] = one
            self._ledger.by_service[service.name] += 1

    def _recall(self, memory_id: str, *, allow_stale: bool = False) -> None:
        project = self._ledger.sent[memory_id].project
        request = recall.RecallRequest(project=project, query_text=_word(memory_id), allow_stale=allow_stale)
        answer = self._answer(lambda stubs: stubs.context.Recall(request, timeout=_DEADLINE_S))
        if answer is None:
            return
        service, reply = answer
        with self._ledger.lock:
            if allow_stale:
                self._ledger.steady_s.setdefault(self._name, []).append(time.monotonic())
            if reply.degraded:
                if any(one.reason == recall.DEGRADATION_REASON_STALE for one in reply.degraded):
                    self._ledger.from_memory += 1
                else:
                    self._ledger.degraded += 1
                return
            self._ledger.recalls_s.append(time.monotonic())
            if memory_id not in {hit.memory.id for hit in reply.hits}:
                self._ledger.stale.append(f"{memory_id} of {project} at service {service.name}")

    def _answer(self, call: Callable[[Stubs], Answer]) -> tuple[Service, Answer] | None:
        """The service that answered, and its answer; None if the call failed. The next call goes to the other one."""
        service = self._services[self._calls % len(self._services)]
        self._calls += 1
        began = time.monotonic()
        try:
            return service, call(service.stubs)
        except grpc.RpcError as error:
            with self._ledger.lock:
                self._ledger.errors[error.code().name] += 1
                self._ledger.sayings.setdefault(error.code().name, error.details() or "")
            return None
        finally:
            took_s = time.monotonic() - began
            with self._ledger.lock:
                self._ledger.hangs += took_s > _HANG_S
                self._ledger.slowest_s = max(self._ledger.slowest_s, took_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Missing and surplus memories of services against a ledger, a line each."""

    lost: Sequence[str]
    doubled: Sequence[str]


def check(services: Sequence[Service], ledger: Ledger) -> Faults:
    """Compares what each service tells with what clients were told, while nobody writes."""
    lost: set[str] = set()
    doubled = _told_twice(ledger)
    for service in services:
        for project in ledger.projects:
            listed = Counter(_listed(service.stubs, project))
            acknowledged = {one for one, told in ledger.acknowledged.items() if told.request.project == project}
            lost |= {f"{one} of {project} is not at service {service.name}" for one in acknowledged - listed.keys()}
            doubled |= {f"{one} of {project} is there {many} times" for one, many in listed.items() if many > 1}
            doubled |= {f"{one} of {project} was sent by nobody" for one in listed.keys() - ledger.sent.keys()}
            doubled |= _counted(service.stubs, project, len(listed))
            doubled |= _repeated(service, [ledger.acknowledged[one] for one in sorted(acknowledged)])
    return Faults(lost=sorted(lost), doubled=sorted(doubled))


def _told_twice(ledger: Ledger) -> set[str]:
    """A write of which somebody was told that the memory was there, or that has the seq of another one."""
    told = ledger.acknowledged.items()
    odd = {f"{one} of {it.request.project} was there before it was learnt" for one, it in told if not it.is_first}
    seqs = Counter((it.request.project, it.reply.seq) for _, it in told)
    return odd | {f"seq {seq} of {project} was given {many} times" for (project, seq), many in seqs.items() if many > 1}


def _listed(stubs: Stubs, project: str) -> Iterator[str]:
    request = memory.ListMemoriesRequest(project=project, page_size=1000, allow_missing=True)
    while True:
        page = stubs.memory.ListMemories(request, timeout=_DEADLINE_S)
        yield from (one.id for one in page.memories)
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def _counted(stubs: Stubs, project: str, wanted: int) -> set[str]:
    """A project counts its memories, and as many writes: each of them was a memory."""
    details = stubs.project.GetProject(projects.GetProjectRequest(project=project), timeout=_DEADLINE_S).project
    if (details.memory_count, details.seq) == (wanted, wanted):
        return set()
    return {f"{project} counts {details.memory_count} memories and {details.seq} writes, and has {wanted} memories"}


def _repeated(service: Service, acknowledged: Sequence[Acknowledged]) -> set[str]:
    """Requests that are sent once more are answered as the first time."""
    some = Random(service.name).sample(acknowledged, min(_REPEATED, len(acknowledged)))  # noqa: S311
    return {
        f"request {one.request.request_id} of {one.request.project} was answered otherwise by service {service.name}"
        for one in some
        if service.stubs.context.Learn(one.request, timeout=_DEADLINE_S) != one.reply
    }


def _longest_gap(moments_s: Iterator[float] | Sequence[float]) -> float:
    return max((later - one for one, later in pairwise(sorted(moments_s))), default=0.0)


def _word(memory_id: str) -> str:
    """One word that no other memory of a project has."""
    return "word" + memory_id.replace("-", "n")
