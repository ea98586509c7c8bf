"""Claims to work: one service has each, another takes it over, and who had it cannot write any more."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import NoReturn

import psycopg
import pytest
from msgspec import structs

from hummock.core.learning_requests import ScanScope
from hummock.core.settings import ProjectSettings, RetentionSettings
from hummock.memories.forget import Forget
from hummock.memories.retention import Expiry, Retention
from hummock.memories.sessions import Sessions
from hummock.ports.writes import ALL_PROJECTS, Claim, ClaimLost, ProjectRemoval, Work, WriteRequest
from hummock.store.postgresql.connections import DatabaseUnreachable
from hummock.store.postgresql.database import Database
from hummock.store.tables import keys
from tests.learning_desk import PROJECT, LearningDesk, desk_at, saying
from tests.ports.asking import put
from tests.postgresql.leases import await_that, renew, run_out, two_workplaces
from tests.store.opening import EAGER, Blocker, opened_shared
from tests.strategies import Entry, write_request
from tests.sure import sure
from tests.workplace import Workplace, note

pytestmark = pytest.mark.long

Two = tuple[Workplace, Workplace]


@pytest.fixture
def two(database: str) -> Iterator[Two]:
    with two_workplaces(database) as both:
        yield both


def taken(work: Workplace, kind: Work = Work.EMBED, project: str = "p") -> Claim:
    """A claim that is to be had."""
    return sure(work.store.claims.take(kind, project))


def unreachable(*_: object) -> NoReturn:
    raise DatabaseUnreachable("postgresql://127.0.0.1/hummock", "it was stopped")


def put_under(claim: Claim, entry: Entry) -> WriteRequest[int]:
    return replace(write_request(entry.put), claim=claim)


def deferred(work: Workplace, project: str, *ids: str) -> None:
    work.teach(*(note(f"the tide of {one}", one) for one in ids), project=project, is_deferred=True)


def pending(work: Workplace, project: str = "p") -> int:
    return sure(work.store.project(project)).pending_count


def test_one_service_has_a_claim_until_it_lets_it_go(two: Two) -> None:
    first, second = two
    claim = taken(first)
    assert second.store.claims.take(Work.EMBED, "p") is None
    assert taken(second, Work.EMBED, "q").fence != taken(second, Work.LEARN, "p").fence
    first.store.claims.release(claim)
    assert taken(second).fence > claim.fence
    first.store.claims.release(claim)
    assert first.store.claims.take(Work.EMBED, "p") is None


def test_what_could_not_be_let_go_is_let_go_with_the_next_renewal(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = two
    claim = taken(first)
    with monkeypatch.context() as away:
        away.setattr(Database, "ask", unreachable)
        first.store.claims.release(claim)
    assert second.store.claims.take(Work.EMBED, "p") is None
    kept = taken(first, Work.LEARN)
    renew(first)
    taken(second)
    assert second.store.claims.take(Work.LEARN, "p") is None
    assert first.store.claims.holds(kept)


def test_of_many_that_ask_at_once_one_has_the_claim(two: Two) -> None:
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            asked = [(two[at % 2].store.claims, at % 2) for at in range(8)]
            found = pool.map(lambda one: (one[1], one[0].take(Work.SCAN, f"p{number}")), asked)  # noqa: B023 # at once
            assert len({service for service, claim in found if claim is not None}) == 1


def test_what_a_service_had_whose_lease_has_run_out_is_there_for_others(two: Two, database: str) -> None:
    first, second = two
    claim = taken(first)
    run_out(database, first)
    assert taken(second).fence > claim.fence
    assert first.store.claims.take(Work.EMBED, "q") is None


def test_a_holder_that_was_frozen_past_its_lease_cannot_write(two: Two, database: str) -> None:
    first, second = two
    put(first.store, "p", Entry(id="a"))
    claim = taken(first)
    run_out(database, first)
    newer = taken(second)
    with pytest.raises(ClaimLost, match="no claim to embed in project p"):
        first.store.write("p", put_under(claim, Entry(id="late"))).result(30)
    written = second.store.write("p", put_under(newer, Entry(id="b"))).result(30)
    assert (written.seq, second.get("late")) == (2, None)


def test_nor_where_nobody_has_taken_its_place_yet(two: Two, database: str) -> None:
    first, _ = two
    claim = taken(first)
    run_out(database, first)
    with pytest.raises(ClaimLost):
        first.store.write("p", put_under(claim, Entry(id="late"))).result(30)
    renew(first)
    assert not first.store.claims.holds(claim)
    first.store.write("p", put_under(taken(first), Entry(id="a"))).result(30)


def test_a_late_write_fails_alone_and_its_neighbours_are_written(two: Two, database: str) -> None:
    first, _ = two
    claim = taken(first)
    run_out(database, first)
    blocker = Blocker(first.store)
    requests = [write_request(Entry(id="a").put), put_under(claim, Entry(id="late")), write_request(Entry(id="b").put)]
    written = [first.store.write("p", request) for request in requests]
    blocker.release()
    assert [future.exception(30) is None for future in written] == [True, False, True]


def test_nobody_takes_what_is_being_written_under(two: Two, database: str) -> None:
    """The write is done before another service takes over, or not at all."""
    first, second = two
    claim = taken(first)
    engine = first.store._engine
    with engine.writing(projects=["p"]) as txn:
        engine.require_claim(txn, claim)
        run_out(database, first)
        assert second.store.claims.take(Work.EMBED, "p") is None
    taken(second)


def test_deferred_memories_are_embedded_once_by_whichever_service(two: Two) -> None:
    for number, work in enumerate(two * 3):
        deferred(work, "shared", *(f"s{number}-{at}" for at in range(10)))
        deferred(work, f"p{number}", *(f"m{at}" for at in range(10)))
    for work in two:
        work.backfill.look_everywhere()
    for work in two:
        work.backfill.start()
    for work in two:
        await_that(lambda: not work.store.status().pending_count)  # noqa: B023 # at once
        work.backfill.close()
    embedded = list(chain.from_iterable(work.embedder.embedded for work in two))
    assert len(embedded) == 120


def test_a_project_that_another_service_embeds_is_looked_at_again(two: Two) -> None:
    first, second = two
    deferred(first, "p", "a")
    deferred(second, "p", "b")
    claim = taken(first)
    assert not second.backfill.embed_some()
    first.store.claims.release(claim)
    assert not second.backfill.embed_some()
    second.clock.move(1.0)
    second.embed_pending()
    first.clock.move(1.0)
    first.embed_pending()
    assert (len(second.embedder.embedded), first.embedder.embedded, pending(first)) == (2, [], 0)


def test_what_a_dead_service_had_accepted_is_embedded_by_another_without_a_restart(two: Two, database: str) -> None:
    first, second = two
    second.backfill.start()
    deferred(first, "p", "a", "b")
    run_out(database, first)
    renew(second)
    await_that(lambda: not pending(second))
    second.backfill.close()
    assert (len(second.embedder.embedded), first.embedder.embedded) == (2, [])


def test_vectors_of_a_service_that_thaws_too_late_are_not_stored(two: Two, database: str) -> None:
    first, second = two
    deferred(first, "p", "a")
    seqs: list[int] = []

    def frozen(chunks: object) -> Iterator[object]:
        """While the model runs, all happens that happens around a machine that stands still."""
        run_out(database, first)
        second.backfill.wake("p")
        second.embed_pending()
        seqs.append(second.store.generation("p").seq)
        return embed(chunks)  # type: ignore[arg-type] # handed on

    embed, first.embedder.embed_in_turn = first.embedder.embed_in_turn, frozen  # type: ignore[method-assign,assignment]
    assert first.backfill.embed_some()
    assert [len(work.embedder.embedded) for work in two] == [1, 1]
    assert (seqs, first.store.generation("p").seq, pending(first)) == ([2], 2, 0)


def test_one_service_removes_what_has_expired_and_another_comes_after_it(two: Two, database: str) -> None:
    first, second = two
    expiries = [Expiry(work.store) for work in two]
    for number in range(2):
        first.teach(
            structs.replace(
                note(f"gone soon {number}", f"m{number}"), expire_time=first.clock.now() + 10 * (number + 1)
            )
        )
    first.clock.move(11.0)
    assert [expiry.remove_some() for expiry in expiries] == [True, False]
    assert first.store.expired(10) == []
    first.clock.move(11.0)
    run_out(database, first)
    assert expiries[1].remove_some()
    assert (first.store.expired(10), second.store.generation("p").seq) == ([], 4)


def test_an_expiry_that_lost_its_claim_removes_nothing_and_finds_out(two: Two, database: str) -> None:
    first, second = two
    expiries = [Expiry(work.store) for work in two]
    assert [expiry.remove_some() for expiry in expiries] == [False, False]
    first.teach(structs.replace(note("gone soon", "m"), expire_time=first.clock.now() + 10))
    first.clock.move(11.0)
    run_out(database, first)
    taken(second, Work.EXPIRE, ALL_PROJECTS)
    with pytest.raises(ClaimLost):
        expiries[0].remove_some()
    assert second.store.expired(10) == [("p", "m")]
    assert expiries[1].remove_some()


def test_one_service_looks_after_what_a_project_keeps_and_another_comes_after_it(two: Two, database: str) -> None:
    first, second = two
    looks = [
        Retention(work.store, Forget(work.store), Sessions(work.store, work.clock, lambda: "s"), work.clock)
        for work in two
    ]
    settings = ProjectSettings(retention=RetentionSettings(max_memories=2))
    first.teach(*(note(f"tide {number}", f"m{number}") for number in range(4)))
    first.store.write("p", write_request(lambda unit: unit.set_settings(settings))).result(30)
    looks[0].look()
    looks[1].look()
    assert first.store.generation("p").seq == 3
    first.teach(*(note(f"core {number}", f"n{number}") for number in range(2)))
    looks[1].note("p", 4)
    looks[1].look()
    run_out(database, first)
    assert second.store.generation("p").seq == 4
    looks[1].look()
    assert [second.get(one) is not None for one in ("m2", "m3", "n0", "n1")] == [False, False, True, True]


def test_what_a_removed_project_left_is_cleared_under_a_claim(two: Two, database: str) -> None:
    first, _ = two
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("INSERT INTO hummock.service VALUES ('other', clock_timestamp() + interval '1 day')")
        connection.execute(
            "INSERT INTO hummock.claim VALUES ('clear', %s, nextval('hummock.fence'), 'other') "
            "ON CONFLICT (work, project) DO UPDATE SET fence = excluded.fence, holder = excluded.holder",
            (keys.project_name_key(ALL_PROJECTS),),
        )
        put(first.store, "gone", Entry(id="a"))
        first.store.remove_project("gone", ProjectRemoval(request_id="", fingerprint=b"")).result(30)
        for number in range(3):
            put(first.store, "p", Entry(id=f"m{number}"))
        assert left(first) == 1
        connection.execute("DELETE FROM hummock.service WHERE id = 'other'")
    await_that(lambda: not left(first))


def left(work: Workplace) -> int:
    """Removed projects that are not cleared yet."""
    with work.store._engine.reading() as txn:
        return work.store._engine.count(txn, work.store._engine.tables.project_removed)


def leases(dsn: str) -> list[tuple[bool, datetime]]:
    """Leases: whether each runs, and until when."""
    with psycopg.connect(dsn) as connection:
        return connection.execute("SELECT until > clock_timestamp(), until FROM hummock.service").fetchall()


def test_a_service_renews_its_lease_as_long_as_it_lives_and_ends_it_with_its_stop(database: str) -> None:
    with opened_shared(database, limits=replace(EAGER, lease_s=8.0)) as store:
        claim = store.claims.take(Work.EMBED, "p")
        ((_, begun),) = leases(database)
        await_that(lambda: leases(database)[0][1] > begun)
        assert claim is not None
        assert store.claims.holds(claim)
    assert [runs for runs, _ in leases(database)] == [False]


def scanning(two: Two) -> tuple[LearningDesk, LearningDesk]:
    first, second = (desk_at(work) for work in two)
    first.entries("a", "b", "c", "d")
    first.switch(cold_start_pause_s=0.0)
    for desk in (first, second):
        desk.learner.answer = saying({one: (f"harbour {one}",) for one in ("a", "b")})
    return first, second


def test_each_entry_is_read_once_whoever_is_asked_to_read_it(two: Two) -> None:
    first, second = scanning(two)
    scans = [desk.background.scan(PROJECT, ScanScope.UNLEARNED) for desk in (first, second)]
    assert first.background.step()
    assert second.work() == 1
    first.work()
    assert (scans[0].since(0).end is not None, scans[1].since(0).end) == (True, None)
    second.place.clock.move(1.0)
    second.work()
    assert first.learner.read_ids == [["a"], ["b"], ["c"], ["d"]]
    assert second.learner.read_ids == []
    assert [one.keywords for one in scans[1].since(0).learnt] == [("harbour a",), ("harbour b",), (), ()]
    assert scans[1].since(0).end is scans[0].since(0).end


def test_a_scan_goes_on_where_a_service_that_died_had_left_it(two: Two, database: str) -> None:
    first, second = scanning(two)
    first.background.scan(PROJECT, ScanScope.ALL)
    scan = second.background.scan(PROJECT, ScanScope.ALL)
    first.background.step()
    run_out(database, first.place)
    second.work()
    assert first.learner.read_ids == [["a"]]
    assert second.learner.read_ids == [["b"], ["c"], ["d"]]
    assert [one.memory_id for one in scan.since(0).learnt] == ["a", "b", "c", "d"]


def test_what_a_frozen_learner_read_is_not_stored_and_is_read_by_another(two: Two, database: str) -> None:
    first, second = scanning(two)
    first.background.scan(PROJECT, ScanScope.ALL)
    said = first.learner.answer

    def frozen(question: object) -> object:
        run_out(database, first.place)
        taken(second.place, Work.SCAN, PROJECT)
        return said(question)  # type: ignore[arg-type] # handed on

    first.learner.answer = frozen  # type: ignore[assignment] # the same
    first.background.step()
    assert first.runs() == []


def test_turns_of_one_project_are_learnt_from_one_after_the_other(two: Two) -> None:
    first, second = scanning(two)
    held = taken(first.place, Work.LEARN, PROJECT)
    second.turn(1, "a tide came in", "a")
    assert (second.work(), second.learner.asked, second.background.waiting) == (1, [], 1)
    first.place.store.claims.release(held)
    second.place.clock.move(1.0)
    second.work()
    assert (len(second.learner.asked), second.background.waiting) == (1, 0)
