"""Round trips to the database by call: a network, or a busy machine, adds its delay to each of them.

What a service does alongside its calls is counted as well, so that the least of several equal calls is taken.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from psycopg import pq

from hummock.store.postgresql.connections import Connections, PatientConnection
from hummock_client.v1 import admin_service_pb2 as admin
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from tests.service.calls import ask, learn
from tests.service.inputs import note
from tests.service.models import install_model
from tests.service.running import Stubs, in_thread, settings

_ENDS = ("Sync", "Query")
"""Messages after which the client waits for an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Recorded traffic of all pool connections that were opened during the recording.

    Attributes:
        path: The record.
    """

    path: Path

    def trips(self) -> int:
        """Round trips so far."""
        with self.path.open(encoding="utf-8", errors="replace") as lines:
            return sum(line.startswith("F\t") and line.split("\t")[2].strip() in _ENDS for line in lines)


@contextmanager
def recorded(directory: Path) -> Iterator[Traffic]:
    """Makes every connection that a pool opens from now on record what it sends."""
    traffic = Traffic(path=directory / "traffic")
    configure = Connections._configure
    with traffic.path.open("w", encoding="utf-8") as record:

        def recording(connections: Connections, connection: PatientConnection) -> None:
            configure(connections, connection)
            connection.pgconn.trace(record.fileno())
            connection.pgconn.set_trace_flags(pq.Trace.SUPPRESS_TIMESTAMPS)

        with patch.object(Connections, "_configure", recording):
            yield traffic


pytestmark = pytest.mark.long

TIMES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A service over PostgreSQL whose traffic is recorded; `vector` is of its space."""

    stubs: Stubs
    traffic: Traffic
    vector: pb.Embedding

    def least(self, call: Callable[[int], object]) -> int:
        """Round trips of one of several calls, each of which is given its number."""
        found = []
        for number in range(TIMES):
            before = self.traffic.trips()
            call(number)
            found.append(self.traffic.trips() - before)
        return min(found)

    def learnt(self, project: str, count: int) -> None:
        """A project that has so many memories."""
        for number in range(count):
            learn(self.stubs, project, self.memory(f"the tide of day {number} is high"))

    def memory(self, text: str) -> pb.Memory:
        return note(text, vector=self.vector, tags=["sea"])


@pytest.fixture
def counted(tmp_path: Path, database: str) -> Iterator[Counted]:
    model = install_model(tmp_path)
    chosen = settings(tmp_path / "data", tmp_path, model, store=database)
    with recorded(tmp_path) as traffic, in_thread(chosen) as stubs:
        known = stubs.admin.GetStatus(admin.GetStatusRequest()).model
        values = struct.pack(f"<{known.dim}f", 1.0, *[0.0] * (known.dim - 1))
        yield Counted(stubs=stubs, traffic=traffic, vector=pb.Embedding(values=values, emb_space=known.emb_space))


def test_a_recall_asks_for_tokens_hits_and_once_for_words_that_no_memory_holds(counted: Counted) -> None:
    counted.learnt("p", 12)
    ask(counted.stubs, "p", "the tide is high")
    # No two are alike, so that none is answered from the cache.
    assert counted.least(lambda number: ask(counted.stubs, "p", "tide high " * (number + 2))) <= 3
    ask(counted.stubs, "p", "the tide is 高")
    assert counted.least(lambda number: ask(counted.stubs, "p", "the tide is 高 " * (number + 2))) <= 3


def test_a_recall_that_is_answered_from_the_cache_asks_how_far_the_project_is(counted: Counted) -> None:
    counted.learnt("p", 2)
    assert counted.least(lambda _: ask(counted.stubs, "p", "tide")) <= 1


def test_many_memories_are_learnt_in_as_many_round_trips_as_one(counted: Counted) -> None:
    counted.learnt("p", 1)
    assert counted.least(lambda number: learn(counted.stubs, "p", counted.memory(f"ebb at hour {number}"))) <= 2

    def learn_many(number: int) -> None:
        several = [counted.memory(f"wave {number} of {place}") for place in range(40)]
        learn(counted.stubs, "p", *several)

    assert counted.least(learn_many) <= 2
    request = counted.memory("the tide of day 0 is high")
    # Whoever has the text is read after it.
    assert counted.least(lambda _: learn(counted.stubs, "p", request)) <= 5


def test_memories_are_read_by_their_ids_together(counted: Counted) -> None:
    learn(counted.stubs, "p", *[note(f"page {number}", id=f"m{number}", vector=counted.vector) for number in range(9)])
    request = memory.BatchGetMemoriesRequest(project="p", ids=[f"m{number}" for number in range(9)])
    # Whether the project is there, documents by their ids, memories by these, and whether any is superseded.
    assert counted.least(lambda _: counted.stubs.memory.BatchGetMemories(request)) <= 4
