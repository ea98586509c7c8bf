from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from bench import load, postgresql, recall
from bench.asking import RECALL, caller, recall_requests
from bench.command import Options
from bench.generator import Generator, NoCompiler
from bench.postgresql import Sizes, measure_at
from bench.service import BenchFailed
from bench.stores import Filled, Setting, Stores
from hummock_client.v1 import recall_pb2
from tests.postgresql.programs import ProgramsMissing

pytestmark = pytest.mark.long

TINY = Setting(name="tiny", memories=240, projects=3)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return Stores(directory=tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="module")
def filled(stores: Stores) -> Filled:
    return stores.filled(TINY)


def test_a_setting_is_learnt_once(stores: Stores, filled: Filled) -> None:
    again = stores.filled(TINY)
    assert (filled.reused, again.reused) == (False, True)
    assert again.bench.data_dir == filled.bench.data_dir


def test_vectors_tags_and_requests_are_those_of_the_corpus(filled: Filled) -> None:
    vectors, tagged = filled.vectors(), filled.tagged()
    for place in (0, 7, 239):
        memory = filled.corpus.memory(place)
        assert (vectors[place] == np.frombuffer(memory.vector.values, "<f4")).all()
        assert {tag for tag, has in tagged.items() if has[place]} == set(memory.tags)
    tagged = filled.tagged()
    assert 0.15 < tagged["quarter"].mean() < 0.35
    assert 0.65 < tagged["most"].mean() < 0.85
    assert tagged["narrow"].mean() < 0.06
    messages = [request.SerializeToString() for request in recall_requests(filled.corpus, range(300), "quarter")]
    assert len(set(messages)) == 300


def test_one_client_gives_the_tables_rows(stores: Stores, filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "A", TINY)
    monkeypatch.setattr(recall, "run_peer", lambda *_: "not installed")
    found = recall.measure(Options(stores=stores, models_dir=Path("/nowhere"), queries=20))
    assert [each.name for each in found.headlines] == ["wire", "cached"]
    assert found.skipped == ("not installed",)


def test_recalls_answer_with_hits_that_pass_the_filter(filled: Filled) -> None:
    tagged = filled.tagged()["quarter"]
    (request,) = recall_requests(filled.corpus, [4], "quarter")
    with filled.bench.serving() as service:
        reply = recall_pb2.RecallResponse.FromString(caller(service.channel, RECALL)(request.SerializeToString()))
    assert reply.hits
    for hit in reply.hits:
        place = int(hit.memory.id.rpartition("/")[2])
        assert tagged[place]
        assert filled.corpus.project_name(place) == request.project


@pytest.fixture(scope="module")
def generator(stores: Stores) -> Generator:
    try:
        return Generator.compiled(stores.directory)
    except NoCompiler as none:
        pytest.skip(str(none))


def test_recalls_of_many_clients_are_looked_at(filled: Filled, generator: Generator) -> None:
    messages = [each.SerializeToString() for each in recall_requests(filled.corpus, range(32), "quarter")]
    with filled.bench.serving() as service:
        served = load.served(service, generator, messages, 2, None)
        replies = [recall_pb2.RecallResponse.FromString(reply) for reply in served.load.replies]
        assert [bool(reply.hits) for reply in replies] == [True, True]
        with pytest.raises(BenchFailed, match="cached True"):
            load.served(service, generator, messages, 2, None)


def test_recalls_of_many_clients_that_find_nothing_fail_aloud(filled: Filled, generator: Generator) -> None:
    messages = [each.SerializeToString() for each in recall_requests(filled.corpus, range(4), "of no memory")]
    with filled.bench.serving() as service, pytest.raises(BenchFailed, match="0 hits"):
        load.served(service, generator, messages, 2, None)


# The part that compares both stores, at a size at which nothing of what it finds means anything.


SMALL = Sizes(
    several=Setting(name="several", memories=256, projects=2), one=Setting(name="one", memories=128, projects=1),
    warm_up=4, recalls=6, learns=4, calls=32, take_overs=1,
)  # fmt: skip


def options_in(directory: Path) -> Options:
    return Options(stores=Stores(directory=directory), models_dir=directory, queries=1)


def test_both_stores_are_asked_the_same_and_each_row_is_found(programs: Path, directory: Path) -> None:
    directory.chmod(0o755)
    found = measure_at(options_in(directory), SMALL)
    assert len(found.rows) == 4
    assert all(row.value > 0 for row in found.rows)
    assert found.skipped == ()


def test_without_postgresql_the_rows_are_skipped_aloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(directory: Path) -> NoReturn:
        raise ProgramsMissing("there is none")

    monkeypatch.setattr(postgresql, "running_node", missing)
    found = measure_at(options_in(tmp_path), SMALL)
    assert found.rows == ()
    assert found.skipped == ("the store over PostgreSQL: there is none",)
