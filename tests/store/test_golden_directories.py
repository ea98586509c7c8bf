"""Directories that earlier states of the store wrote: they open, hold what they held, and take what is new.

`golden/store` holds them table by table, keys and values in hexadecimal: "first" is of the first store of all, before
the analyzer had a version, "before_sessions" of the last one that knew no sessions, no settings and no learning,
"before_checksums" of the last one that kept no checksums.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

from hummock.core.errors import RequestIdReused
from hummock.core.memory import DomainKnowledge, Filter, LearningRecord, Memory, MemoryKind, Origin
from hummock.core.project import ProjectInfo
from hummock.core.settings import PresetSettings, ProjectSettings
from hummock.projects.transfer import Export
from hummock.store import DEFAULT_LIMITS, WritableStore
from hummock.text.analyzer import document_terms
from tests.fakes import FakeClock
from tests.ports.asking import ask, ids, put
from tests.store.opening import opened
from tests.strategies import Entry, delete_request, put_request, write_request
from tests.sure import sure

GOLDEN = Path(__file__).parent.parent / "golden" / "store"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.json"))
CHOSEN = ProjectSettings(chat=PresetSettings(top_k=3))
TREE = "世界.图鉴.物品.潮汐木芯"


def restored(directory: Path, name: str) -> None:
    """Makes the directory as it was written."""
    tables = json.loads((GOLDEN / f"{name}.json").read_text())
    with lmdb.open(str(directory), max_dbs=len(tables), map_size=1 << 24) as environment:
        for table, entries in tables.items():
            database = environment.open_db(table.encode())
            with environment.begin(write=True) as txn:
                for key, value in entries.items():
                    txn.put(bytes.fromhex(key), bytes.fromhex(value), db=database)


@pytest.fixture(params=NAMES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WritableStore]:
    restored(tmp_path, request.param)
    with opened(tmp_path, clock=FakeClock(), limits=DEFAULT_LIMITS) as store:
        yield store


def everything(store: WritableStore, project: str = "loan") -> dict[str, Memory]:
    return {one.id: one for one in store.page(project, Filter(), 0, 99, full=True).memories}


def test_all_memories_are_there_with_all_their_fields(store: WritableStore) -> None:
    """S4-44."""
    found = everything(store)
    assert list(found) == ["record", "domain", "code", TREE, "answer", "said"]
    record, domain, code, tree, said = (found[name] for name in ("record", "domain", "code", TREE, "said"))
    assert record.payload is not None
    assert record.payload.detail == LearningRecord(
        question="还款方式有哪些？", answer="等额本息、等额本金、先息后本。", source_files=("RepaymentType.java",)
    )
    assert domain.payload is not None
    assert isinstance(domain.payload.detail, DomainKnowledge)
    assert domain.payload.detail.aliases == ("repayment",)
    assert (code.origin, code.source_hash, code.index.title) == (Origin.INDEXER, "5f", "src/Repay.kt · Repay.repay")
    assert (tree.index.title, tree.index.tags) == ("潮汐木芯", ("item", "物品"))
    assert (said.session_id, said.speaker, said.emotion_label, said.trust) == ("会话", "林", "calm", 0.5)
    assert (said.event_time, said.supersedes) == (1_699_999_000.25, ("old",))
    assert (said.create_time, said.update_time) == (1_700_000_060.0, 1_700_000_240.0)
    assert said.payload is not None
    assert said.payload.raw == "[joy] how do I repay early"


def test_what_is_known_of_projects_and_their_writes_can_be_exported(store: WritableStore) -> None:
    """S4-44."""
    loan = sure(store.project("loan"))
    assert loan.info == ProjectInfo(tech_stack=("Spring Boot", "MyBatis"), path="/srv/loan")
    assert loan.seq == 7
    assert loan.kinds[MemoryKind.NOTE] == 2
    assert store.generation("loan").settings == ProjectSettings()
    assert list(everything(store, "另一个")) == ["said"]
    project = sure(store.project("loan"))
    (page,) = Export(store)(project, with_vectors=True)
    assert [kept.memory.id for kept in page.memories] == ["record", "domain", "code", TREE, "answer", "said"]
    assert [kept.session_position for kept in page.memories] == [-1, -1, -1, -1, 1, 0]
    assert [len(kept.embeddings) for kept in page.memories] == [kept.memory.chunk_count for kept in page.memories]
    assert all(kept.embeddings[0].tokens.shape == (2, 4) for kept in page.memories)
    request_id = "00000000-0000-0000-0000-000000000007"
    with pytest.raises(RequestIdReused):
        store.write("loan", put_request([Entry(id="x")], request_id, b"another")).result(30)
    assert everything(store).keys() == {"record", "domain", "code", TREE, "answer", "said"}


def test_memories_are_found_by_words_by_vector_and_by_their_session(store: WritableStore) -> None:
    """S4-44."""
    assert ids(ask(store, "loan", terms=document_terms("repay"))) >= {"code", "said", "answer"}
    assert TREE in ids(ask(store, "loan", terms=document_terms("退潮时发光")))
    assert ids(ask(store, "loan", domain_names=["还款"])) >= {"domain"}
    assert len(ask(store, "loan", seed=1)) == 6
    assert ids(ask(store, "loan", terms=document_terms("repay"), where=Filter(session_ids=("会话",)))) == {
        "said",
        "answer",
    }
    assert ids(ask(store, "loan", terms=document_terms("潮汐"), where=Filter(tags=("物品",)))) == {TREE}


def test_what_was_not_kept_then_is_a_gap_for_those_who_watch(store: WritableStore) -> None:
    """S4-44."""
    assert store.memory_events("loan", 0, full=False).is_reset
    put(store, "loan", Entry(id="new"))
    assert [event.memory_id for event in store.memory_events("loan", 7, full=False).events] == ["new"]


@pytest.mark.long
def test_the_directory_takes_what_is_new_and_opens_again(tmp_path: Path) -> None:
    """S4-44."""
    for name in NAMES:
        directory = tmp_path / name
        directory.mkdir()
        restored(directory, name)
        with opened(directory, clock=FakeClock(), limits=DEFAULT_LIMITS) as store:
            put(store, "loan", Entry(id="said", session_id="会话"), Entry(id="new", session_id="会话"))
            store.write("loan", delete_request(["code"])).result(30)
            store.write("loan", write_request(lambda unit: unit.set_settings(CHOSEN))).result(30)
        with opened(directory, clock=FakeClock(), limits=DEFAULT_LIMITS) as store:
            assert list(everything(store)) == ["record", "domain", TREE, "answer", "said", "new"]
            assert store.generation("loan").settings == CHOSEN
            positions = {
                kept.memory.id: kept.session_position
                for kept in store.export("loan", 0, 10, with_vectors=False).memories
            }
            assert [positions[memory_id] for memory_id in ("said", "answer", "new")] == [0, 1, 2]
