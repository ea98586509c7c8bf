"""While the database cannot be reached, recalls that allow it are answered with what the service saw last."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn, cast

import grpc
import pytest

from hummock.core.errors import StoreUnreachable
from hummock.ports.store import Reads
from hummock.ports.writes import ProjectRemoval
from hummock.store.postgresql.database import Database
from hummock.store.postgresql.opening import SharedStore
from hummock.store.tables.reads import TableProject
from hummock_client import requests
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import recall_pb2 as recall
from tests.ports.asking import ask as candidates
from tests.ports.asking import ids, put
from tests.postgresql.family import frozen
from tests.postgresql.node import Node, running_node
from tests.postgresql.test_outage import eventually
from tests.service.calls import ask, contents, degraded, failure, learn
from tests.service.inputs import note
from tests.service.models import install_model
from tests.service.running import Stubs, in_thread, settings
from tests.store.opening import opened_shared
from tests.strategies import Entry, write_request
from tests.sure import sure

pytestmark = pytest.mark.long

_STALE = ("memories", "STALE")
_TEXT = "还款日是每月5号"


@pytest.fixture
def own_node(directory: Path) -> Iterator[Node]:
    """A server that nobody else needs."""
    with running_node(directory) as node:
        yield node


@pytest.fixture
def services(tmp_path: Path, own_node: Node) -> Iterator[tuple[Stubs, Stubs]]:
    model, database = install_model(tmp_path), own_node.dsn_of("hummock")
    one = settings(tmp_path / "one", tmp_path, model, store=database)
    two = settings(tmp_path / "two", tmp_path, model, store=database)
    with in_thread(one) as first, in_thread(two) as second:
        yield first, second


def test_a_recall_goes_on_where_it_may_and_is_whole_again_behind_the_outage(
    services: tuple[Stubs, Stubs], own_node: Node
) -> None:
    first, second = services
    seq = learn(first, "p", note(_TEXT, id="a")).seq
    assert contents(ask(first, "p", "还款日", allow_stale=True)) == [_TEXT]
    with frozen(own_node.postmaster.pid):
        for _ in range(3):
            answer = ask(first, "p", "还款日", allow_stale=True)
            assert contents(answer) == [_TEXT]
            assert degraded(answer) == [_STALE]
            assert answer.seq == seq
        assert f"as of seq {seq}, " in answer.degraded[0].message
        refused = failure(ask, first, "p", "还款日")
        assert (refused.code, refused.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNREACHABLE")
        assert sure(refused.retry_after_s) <= 2
    later, request_id = "还款日改为每月8号", str(uuid.uuid4())
    eventually(lambda: learn(second, "p", note(later, id="b"), request_id=request_id), grpc.RpcError)
    # A call that is answered shows that the server is back.
    eventually(lambda: ask(first, "p", "还款日"), grpc.RpcError)
    whole = ask(first, "p", "还款日", allow_stale=True)
    assert degraded(whole) == []
    assert set(contents(whole)) == {_TEXT, later}


def test_what_is_not_in_memory_is_unavailable(services: tuple[Stubs, Stubs], own_node: Node) -> None:
    first, second = services
    seq = learn(first, "p", note(_TEXT)).seq
    learn(second, "elsewhere", note(_TEXT))
    ask(first, "p", "还款日")
    with frozen(own_node.postmaster.pid):
        assert degraded(ask(first, "p", "还款日", allow_stale=True, min_seq=seq)) == [_STALE]
        for project, least, where in (
            ("p", seq + 1, None),
            ("elsewhere", 0, None),
            # Without its number a tag would let the wrong memories pass.
            ("p", 0, memory_pb2.MemoryFilter(tags=["never asked for"])),
        ):
            refused = failure(ask, first, project, "还款日", allow_stale=True, min_seq=least, filter=where)
            assert (refused.code, refused.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNREACHABLE")
            assert refused.retry_after_s == 1.0


def test_a_rendering_and_a_search_go_on_as_well(services: tuple[Stubs, Stubs], own_node: Node) -> None:
    first, _ = services
    learn(first, "p", note(_TEXT, id="a"))
    rendering = requests.render("p", recall.RecallRequest(query_text="还款日", allow_stale=True), {"read_ids": ["a"]})
    searching = context.SearchRequest(project="p", query_text="还款日", allow_stale=True)
    before = first.context.Render(rendering), first.context.Search(searching)
    with frozen(own_node.postmaster.pid):
        rendered, searched = first.context.Render(rendering), first.context.Search(searching)
        assert rendered.text == before[0].text
        assert searched.text == before[1].text
        assert degraded(rendered) == [_STALE]
        assert [one.reason for one in searched.degraded] == [recall.DEGRADATION_REASON_STALE]
        for one in (rendering, searching):
            one.project = "never seen"
        assert "does not answer" in failure(first.context.Render, rendering).message
        assert "does not answer" in failure(first.context.Search, searching).message


def test_texts_that_are_not_in_memory_are_left_out_and_counted_and_those_to_be_forgotten_are_in_no_answer(
    services: tuple[Stubs, Stubs], own_node: Node
) -> None:
    first, _ = services
    for project in ("seen", "forgotten"):
        learn(first, project, note(_TEXT, id="a"), note("还款日以后要计罚息", id="b"))
    assert contents(ask(first, "seen", "还款日", top_k=1)) == [_TEXT]
    assert len(contents(ask(first, "forgotten", "还款日"))) == 2
    first.memory.Forget(memory.ForgetRequest(project="forgotten", ids=["b"]))
    with frozen(own_node.postmaster.pid):
        answer = ask(first, "seen", "还款日", top_k=2, allow_stale=True)
        assert contents(answer) == [_TEXT]
        assert "; 1 hits are left out" in answer.degraded[0].message
        answer = ask(first, "forgotten", "还款日", allow_stale=True)
        assert contents(answer) == [_TEXT]
        assert "left out" not in answer.degraded[0].message


def test_once_it_is_known_that_the_server_is_away_nobody_waits_for_it(
    own_node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened_shared(own_node.dsn_of("hummock")) as store:
        put(store, "p", Entry(id="a"))
        assert ids(candidates(store, "p", terms=("tide",))) == {"a"}
        connections = store._database._connections
        assert store._database.away is None
        assert connections._patience_s() == 2.0
        with frozen(own_node.postmaster.pid):
            with pytest.raises(StoreUnreachable):
                candidates(store, "p", terms=("tide",))
            monkeypatch.setattr(Database, "seq", _asked)
            monkeypatch.setattr(Database, "reading", _asked)
            assert isinstance(store._database.away, StoreUnreachable)
            # What waits in vain takes threads from what could be answered.
            assert connections._patience_s() == 0.1
            assert ids(candidates(seen_of(store), "p", terms=("tide",))) == {"a"}
            monkeypatch.undo()
        eventually(lambda: candidates(store, "p", terms=("tide",)))
        assert store._database.away is None
        assert connections._patience_s() == 2.0


def _cut_off(*_: object) -> NoReturn:
    raise StoreUnreachable("cut off")


def _asked(*_: object) -> None:
    raise AssertionError("the database was asked")


def test_a_memory_that_was_read_lately_is_not_read_again(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened_shared(database) as store:
        put(store, "p", Entry(id="a"), Entry(id="b", words=("tide", "b")))
        docs = _docs(store)
        before = store.load("p", docs, full=True)
        monkeypatch.setattr(Database, "prefetch", _asked)
        assert store.load("p", docs, full=True) == before
        # Its index part is the same without the rest.
        assert [one.payload for one in store.load("p", docs, full=False) if one] == [None, None]


def test_a_memory_that_another_service_removes_leaves_what_was_read_lately(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened_shared(database) as store, opened_shared(database) as other:
        monkeypatch.setattr(store._listener, "_followers", ())
        put(store, "p", Entry(id="a"), Entry(id="b", words=("tide", "b")))
        docs = _docs(store)
        store.load("p", docs, full=True)
        other.write("p", write_request(lambda unit: unit.delete("a"))).result(30)
        # The view is not brought up yet, and what was read as it was is not what is.
        assert [one and one.id for one in store.load("p", docs, full=True)] == [None, "b"]
        assert ids(candidates(store, "p", terms=("tide",))) == {"b"}
        assert [one and one.id for one in store.last_seen("p").load(docs, full=True)] == [None, "b"]


def test_what_is_removed_here_is_gone_from_memory_before_that_is_acknowledged(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened_shared(database) as store:
        # Nobody else brings the view up.
        monkeypatch.setattr(store._listener, "_followers", ())
        put(store, "p", Entry(id="a"), Entry(id="b", words=("tide", "b")), Entry(id="c", words=("tide", "c")))
        assert ids(candidates(store, "p", terms=("tide",))) == {"a", "b", "c"}
        store.write("p", write_request(lambda unit: unit.delete("b"))).result(30)
        assert ids(candidates(seen_of(store), "p", terms=("tide",))) == {"a", "c"}

        monkeypatch.setattr(Database, "answering", _cut_off)
        store.write("p", write_request(lambda unit: unit.delete("c"))).result(30)
        with pytest.raises(StoreUnreachable):
            candidates(seen_of(store), "p", terms=("tide",))


def test_an_edit_and_a_removed_project_leave_what_was_read_lately(database: str) -> None:
    with opened_shared(database) as store:
        put(store, "p", Entry(id="a"))
        docs = _docs(store)
        store.load("p", docs, full=True)
        put(store, "p", Entry(id="a", words=("tide", "again")))
        assert store.last_seen("p").load(docs, full=True) == [None]
        store.load("p", _docs(store), full=True)
        assert store._recent_reads.usage()[0] == 1
        store.remove_project("p", ProjectRemoval(request_id="", fingerprint=b"")).result(30)
        assert store._recent_reads.usage() == (0, 0)


def test_a_view_that_was_cut_off_while_it_followed_a_write_still_has_its_texts(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened_shared(database) as store, opened_shared(database) as other:
        put(store, "p", Entry(id="a"))
        docs = _docs(store)
        store.load("p", docs, full=True)

        monkeypatch.setattr(TableProject, "memories_of", _cut_off)
        put(other, "p", Entry(id="b", words=("tide", "b")))
        with pytest.raises(StoreUnreachable):
            candidates(store, "p", terms=("tide",))
        assert ids(candidates(seen_of(store), "p", terms=("tide",))) == {"a"}
        assert [one and one.id for one in store.last_seen("p").load(docs, full=True)] == ["a"]


def seen_of(store: SharedStore) -> Reads:
    """Reads of what is in memory, as if the database was away."""
    return cast(Reads, SimpleNamespace(read=lambda project, work, *, min_seq=0: work(store.last_seen(project))))


def _docs(store: SharedStore) -> list[int]:
    docs: list[int] = candidates(store, "p", terms=("tide",)).rows["doc"].tolist()
    return docs
