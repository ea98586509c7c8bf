"""Writes to any store: memories, requests that are repeated, and settings."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from hummock.core.errors import RequestIdReused, SeqNotReached
from hummock.core.memory import Filter, Memory, MemoryKind
from hummock.core.project import ProjectInfo
from hummock.core.settings import NO_SETTINGS, PresetSettings, ProjectSettings
from hummock.ports.store import Generation, Store
from hummock.ports.writes import TextKey, UnitOfWork
from tests.fakes import FakeClock
from tests.ports.asking import ask, ids, put
from tests.snapshots import at
from tests.store.opening import opened
from tests.strategies import Entry, delete_request, domain, embedding, fragment, put_request, record, write_request
from tests.sure import sure

HOUR = 3600.0


def get(store: Store, memory_id: str, project: str = "p", *, full: bool = True) -> Memory | None:
    return store.get(project, [memory_id], 0, full=full)[0]


@pytest.mark.parametrize(
    "entry",
    [
        Entry(id="世界.图鉴.物品.潮汐木芯", words=("潮汐木芯", "core"), tags=("重要",), session_id="会话"),
        record("r", "how is interest paid", "先息后本"),
        domain("d", ("还款", "repayment"), ("Repayment.java",)),
        fragment("f", "src/main/Repayment.java"),
        Entry(id="no-vector", seeds=()),
        Entry(id="chunks", seeds=(1, 2, 3)),
    ],
    ids=lambda entry: entry.id,
)
def test_what_was_put_comes_back_whole(store: Store, entry: Entry) -> None:
    put(store, "p", entry)
    assert get(store, entry.id) == entry.memory()


def test_the_index_view_has_no_payload(store: Store) -> None:
    """S2-04."""
    put(store, "p", Entry(id="a"))
    assert sure(get(store, "a", full=False)).payload is None


def test_an_acknowledged_write_is_found_by_the_next_read(store: Store) -> None:
    for number in range(20):
        seq = put(store, "p", Entry(id=f"m{number}", words=(f"word{number}",), seeds=(number,)))
        assert ids(ask(store, terms=[f"word{number}"], min_seq=seq)) == {f"m{number}"}


def test_an_edit_replaces_the_memory_everywhere(store: Store) -> None:
    put(store, "p", Entry(id="a", words=("old",)), Entry(id="b", words=("other",)))
    put(store, "p", Entry(id="a", words=("new",)))
    assert not ids(ask(store, terms=["old"]))
    assert ids(ask(store, terms=["new"])) == {"a"}
    assert store.look_up("p", [], [Entry(id="a", words=("old",)).key, Entry(id="x", words=("new",)).key]).holders == [
        None,
        "a",
    ]


def test_a_removed_memory_is_nowhere(store: Store) -> None:
    entry = Entry(id="a")
    put(store, "p", entry, Entry(id="b", words=("rest",)))
    doc = int(ask(store, terms=["tide"]).rows["doc"][0])
    store.write("p", delete_request(["a", "unknown"])).result(timeout=30)
    assert get(store, "a") is None
    assert (store.load("p", [doc], full=True), store.look_up("p", [], [entry.key]).holders) == ([None], [None])
    assert ids(ask(store, seed=1, terms=["tide"])) == {"b"}


def test_a_document_number_is_never_used_again(store: Store) -> None:
    seen: list[int] = []
    for _ in range(4):
        put(store, "p", Entry(id="a"))
        seen.extend(ask(store, terms=["tide"]).rows["doc"].tolist())
        store.write("p", delete_request(["a"])).result(timeout=30)
    assert seen == sorted(set(seen))


def test_the_oldest_of_equal_texts_is_found_by_text(store: Store) -> None:
    put(store, "p", Entry(id="a"), Entry(id="b"))
    assert store.look_up("p", [], [Entry(id="any").key]).holders == ["a"]
    store.write("p", delete_request(["a"])).result(timeout=30)
    assert store.look_up("p", [], [Entry(id="any").key]).holders == ["b"]


def test_equal_texts_of_another_kind_are_other_texts(store: Store) -> None:
    entry = Entry(id="a")
    put(store, "p", entry)
    other = TextKey(kind=MemoryKind.ENTRY, origin=entry.origin, identity=entry.content_hash)
    assert store.look_up("p", [], [other]).holders == [None]


def test_a_unit_of_work_sees_its_own_changes(store: Store) -> None:
    entry = Entry(id="a")
    seen: list[object] = []

    def change(unit: UnitOfWork) -> None:
        entry.put(unit)
        seen.append(unit.get("a"))
        seen.append(unit.find_by_text(entry.key))
        seen.append(unit.delete("a"))
        seen.append(unit.delete("a"))
        seen.append(unit.get("a"))

    store.write("p", write_request(change)).result(timeout=30)
    assert seen == [entry.memory(), "a", True, False, None]


def test_a_write_that_fails_leaves_nothing(store: Store) -> None:
    def fail(unit: UnitOfWork) -> None:
        Entry(id="a").put(unit)
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        store.write("p", write_request(fail)).result(timeout=30)
    assert store.project("p") is None
    assert get(store, "a") is None


def test_seq_counts_accepted_writes_and_content_seq_those_that_changed_something(store: Store) -> None:
    """1.1-1."""
    first = store.write("p", put_request([Entry(id="a")])).result(timeout=30)
    second = store.write("p", delete_request(["unknown"])).result(timeout=30)
    info = ProjectInfo(tech_stack=("Java",), path="/x")
    third = store.write("p", write_request(lambda unit: unit.set_info(info))).result(timeout=30)
    same = store.write("p", write_request(lambda unit: unit.set_info(info))).result(timeout=30)
    assert [written.seq for written in (first, second, third, same)] == [1, 2, 3, 4]
    project = sure(store.project("p"))
    assert (project.seq, project.content_seq, project.info) == (4, 2, info)
    gathered = at(store, "p", 4).search([])
    assert (gathered.seq, gathered.content_seq) == (4, 2)


def test_a_read_of_a_write_that_has_not_happened_fails(store: Store) -> None:
    put(store, "p", Entry(id="a"))
    with pytest.raises(SeqNotReached, match="min_seq is 2"):
        ask(store, seed=1, min_seq=2)
    with pytest.raises(SeqNotReached):
        store.get("p", ["a"], 2, full=False)
    with pytest.raises(SeqNotReached):
        ask(store, "unknown", min_seq=1)


def test_a_repeated_request_has_one_effect_and_the_first_reply(store: Store) -> None:
    answers = iter(range(10))
    request = write_request(lambda unit: Entry(id=f"m{next(answers)}").put(unit), "id-1")
    first = store.write("p", request).result(timeout=30)
    put(store, "p", Entry(id="between"))
    assert store.write("p", request).result(timeout=30) == replace(first, is_repeat=True)
    project = sure(store.project("p"))
    assert (project.seq, project.memory_count) == (2, 2)


def test_one_request_sent_a_hundred_times_at_once_has_one_effect(store: Store) -> None:
    request = put_request([Entry(id="a")], "id-1")
    with ThreadPoolExecutor(8) as threads:
        futures = list(threads.map(lambda _: store.write("p", request), range(100)))
    assert {future.result(timeout=30).seq for future in futures} == {1}
    assert sure(store.project("p")).seq == 1


def test_what_a_request_was_answered_is_read_without_a_write(store: Store, clock: FakeClock) -> None:
    assert store.earlier("p", "id-1", b"f", int) is None
    written = store.write("p", put_request([Entry(id="a")], "id-1", b"f")).result(timeout=30)
    put(store, "q", Entry(id="b"))
    assert store.earlier("p", "id-1", b"f", int) == replace(written, is_repeat=True)
    with pytest.raises(RequestIdReused, match="id-1"):
        store.earlier("p", "id-1", b"other", int)
    for project, request_id in (("q", "id-1"), ("unknown", "id-1"), ("p", ""), ("p", "id-2")):
        assert store.earlier(project, request_id, b"f", int) is None
    clock.move(25 * HOUR)
    assert store.earlier("p", "id-1", b"f", int) is None


def test_a_request_id_of_another_project_is_another_one(store: Store) -> None:
    store.write("p", put_request([Entry(id="a")], "id-1", b"one")).result(timeout=30)
    store.write("q", put_request([Entry(id="b")], "id-1", b"two")).result(timeout=30)
    assert get(store, "b", "q") is not None


def test_a_request_id_is_forgotten_after_a_day(store: Store, clock: FakeClock) -> None:
    store.write("p", put_request([Entry(id="a")], "id-1", b"one")).result(timeout=30)
    clock.move(23 * HOUR)
    with pytest.raises(RequestIdReused):
        store.write("p", put_request([Entry(id="b")], "id-1", b"two")).result(timeout=30)
    clock.move(2 * HOUR)
    assert store.write("p", put_request([Entry(id="b")], "id-1", b"two")).result(timeout=30).seq == 2
    clock.move(23 * HOUR)
    assert store.write("p", put_request([Entry(id="b")], "id-1", b"two")).result(timeout=30).seq == 2


def test_a_request_is_known_even_when_the_clock_is_set_back(store: Store, clock: FakeClock) -> None:
    request = put_request([Entry(id="a")], "id-1")
    store.write("p", request).result(timeout=30)
    clock.move(-1000 * HOUR)
    assert store.write("p", request).result(timeout=30).seq == 1


def test_kinds_are_counted(store: Store) -> None:
    put(store, "p", Entry(id="a"), Entry(id="b"), domain("d", ("还款",)))
    put(store, "p", Entry(id="a", kind=MemoryKind.ENTRY))
    store.write("p", delete_request(["d"])).result(timeout=30)
    assert sure(store.project("p")).kinds == {MemoryKind.NOTE: 1, MemoryKind.ENTRY: 1}


def test_very_long_names_are_kept_apart(store: Store) -> None:
    """LMDB's keys end at 511 bytes; a word or a request id may not."""
    long = "词" * 300
    put(store, "p", Entry(id="a", words=(long + "x",)), Entry(id="b", words=(long + "y",)))
    assert ids(ask(store, terms=[long + "x"])) == {"a"}


def test_a_vector_that_is_not_finite_is_refused(store: Store) -> None:
    entry = Entry(id="a")

    def change(unit: UnitOfWork) -> None:
        broken = embedding(1)
        broken.vector[3] = float("nan")
        unit.put(entry.memory(), entry.key, entry.terms(), [broken])

    with pytest.raises(ValueError, match="finite"):
        store.write("p", write_request(change)).result(timeout=30)


def test_what_waits_for_its_vectors_is_counted_over_all_projects(store: Store) -> None:
    put(store, "p", Entry(id="a", seeds=()), Entry(id="b"))
    put(store, "q", Entry(id="c", seeds=()))
    status = store.status()
    assert (status.pending_count, status.project_count) == (2, 2)


EIGHT = ProjectSettings(chat=PresetSettings(top_k=8))


def set_to(store: Store, settings: ProjectSettings, project: str = "p") -> int:
    def apply(work: UnitOfWork) -> None:
        work.set_settings(settings)
        assert work.settings() == settings

    return store.write(project, write_request(apply)).result().seq


def test_settings_are_there_after_the_write_and_move_the_generation(store: Store) -> None:
    """S4-46."""
    put(store, "p", Entry(id="a"))
    assert store.generation("p").settings is NO_SETTINGS
    set_to(store, EIGHT)
    assert store.generation("p") == Generation(seq=2, content_seq=2, settings=EIGHT)


def test_the_same_settings_again_move_nothing_but_seq(store: Store) -> None:
    """S4-46."""
    set_to(store, EIGHT)
    set_to(store, EIGHT)
    assert store.generation("p") == Generation(seq=2, content_seq=1, settings=EIGHT)


def test_settings_that_say_nothing_leave_nothing_behind(store: Store) -> None:
    """S4-46."""
    set_to(store, EIGHT)
    set_to(store, NO_SETTINGS)
    assert store.generation("p").settings is NO_SETTINGS
    put(store, "p", Entry(id="a"))
    assert store.generation("p").settings is NO_SETTINGS


def test_settings_survive_a_restart_in_memory_or_not(tmp_path: Path) -> None:
    """S4-46, S4-02."""
    with opened(tmp_path) as store:
        put(store, "p", Entry(id="a"))
        set_to(store, EIGHT)
    with opened(tmp_path) as store:
        assert store.generation("p").settings == EIGHT
        assert store.page("p", Filter(), 0, 10, full=False).memories
        assert store.generation("p").settings == EIGHT


def test_a_write_that_fails_changes_no_setting(store: Store) -> None:
    def apply(work: UnitOfWork) -> None:
        work.set_settings(EIGHT)
        raise ValueError

    put(store, "p", Entry(id="a"))
    assert isinstance(store.write("p", write_request(apply)).exception(), ValueError)
    assert store.generation("p") == Generation(seq=1, content_seq=1)
