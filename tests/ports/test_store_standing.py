"""Rank of one memory among all, what takes it from the candidates, and what people said of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hummock.core.candidates import Candidates, GroupQuery, Standing
from hummock.core.learning import MAX_VOICES, FeedbackGiven, Judgement, KeywordsSet, Verdict
from hummock.core.memory import Filter, Memory, MemoryEventType, MemoryKind, Origin
from hummock.learning.log import record
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork
from hummock.text.normalise import short_hash
from tests.ports.asking import ask, ids, put
from tests.snapshots import at
from tests.store.opening import opened
from tests.strategies import Entry, delete_request, unit_vector, write_request
from tests.sure import sure

ALL = Filter()


def standing(store: Store, memory_id: str, project: str = "p", /, **fields: object) -> Standing | None:
    query = GroupQuery(name="main", filter=fields.pop("where", ALL), **fields)  # type: ignore[arg-type] # its own fields
    return at(store, project).standing(query, memory_id)


def known(store: Store, memory_id: str, **fields: object) -> Standing:
    return sure(standing(store, memory_id, "p", **fields))


def many(store: Store) -> None:
    put(store, "p", *(Entry(id=f"m{n:02}", words=("tide", *["loan"] * n), seeds=(n,)) for n in range(12)))


def stored_cosine(seed: int, query: int) -> float:
    return float(unit_vector(seed).astype(np.float16).astype(np.float32) @ unit_vector(query))


def test_ranks_are_those_of_all_that_pass_whatever_the_pool(store: Store) -> None:
    many(store)
    cosines = {
        f"m{n:02}": float(unit_vector(n).astype(np.float16).astype(np.float32) @ unit_vector(3)) for n in range(12)
    }
    by_cosine = sorted(cosines, key=lambda memory_id: -cosines[memory_id])
    for memory_id, cosine in cosines.items():
        found = known(store, memory_id, vector=unit_vector(3), pool=1)
        assert found.vector_rank == by_cosine.index(memory_id) + 1
        assert found.cosine == pytest.approx(cosine, abs=1e-3)
        assert (found.searched, found.failed) == (12, ())


def test_ranks_by_words_agree_with_the_candidates(store: Store) -> None:
    many(store)
    query = GroupQuery(name="main", filter=ALL, terms=("loan",), pool=12)
    (found,) = at(store, "p").search([query]).groups
    best_first = [found.memory_id[row] for row in np.argsort(-found.keyword, kind="stable")]
    for rank, memory_id in enumerate(best_first, start=1):
        stands = known(store, memory_id, terms=("loan",), pool=1)
        assert (stands.keyword_rank, stands.matched) == (rank, 1)
        assert stands.keyword == pytest.approx(float(found.keyword[found.memory_id.index(memory_id)]))


def test_what_no_path_finds_has_no_rank(store: Store) -> None:
    put(store, "p", Entry(id="bare", seeds=()), Entry(id="other", words=("loan",)))
    found = known(store, "bare", vector=unit_vector(1), terms=("loan",))
    assert (found.vector_rank, found.keyword_rank, found.keyword, found.matched) == (0, 0, 0.0, 0)
    assert math.isnan(found.cosine)
    unasked = known(store, "other")
    assert (unasked.vector_rank, unasked.keyword_rank) == (0, 0)


def test_every_condition_that_it_does_not_meet_is_named(store: Store) -> None:
    put(store, "p", Entry(id="a", tags=("java",), session_id="s1", speaker="Yu", create_time=100.0), Entry(id="b"))
    where = Filter(
        kinds=frozenset({MemoryKind.NOTE}),
        origins=frozenset({Origin.SUMMARY}),
        tags=("java", "todo"),
        session_ids=("s1", "s2"),
        paths=("a.py",),
        speakers=("Lin",),
        created_after=101.0,
        created_before=100.0,
        excluded_ids=("a",),
        event_after=101.0,
        event_before=100.0,
        metadata=(("env", "prod"),),
        writers=("ci",),
    )
    found = known(store, "a", where=where, vector=unit_vector(1))
    assert found.failed == (
        "origins",
        "tags",
        "paths",
        "speakers",
        "created_after",
        "created_before",
        "excluded_ids",
        "event_after",
        "event_before",
        "metadata",
        "writers",
    )
    assert (found.searched, found.vector_rank) == (0, 1)


def test_the_newest_that_hold_a_string_come_first(store: Store) -> None:
    put(store, "p", *(Entry(id=f"m{n}", words=("潮汐" if n % 2 else "月亮",), create_time=100.0 + n) for n in range(6)))
    ranks = {n: known(store, f"m{n}", substrings=("汐",), pool=1).keyword_rank for n in range(6)}
    assert ranks == {0: 0, 1: 3, 2: 0, 3: 2, 4: 0, 5: 1}


def test_what_is_not_there_stands_nowhere(store: Store) -> None:
    assert standing(store, "a") is None
    put(store, "p", Entry(id="a"))
    put(store, "q", Entry(id="theirs"))
    assert standing(store, "theirs") is None
    store.write("p", delete_request(["a"])).result(30)
    assert standing(store, "a") is None


def test_an_edit_stands_where_the_new_text_does(store: Store) -> None:
    many(store)
    put(store, "p", Entry(id="m05", words=("bread",), seeds=(3,)))
    found = known(store, "m05", vector=unit_vector(3), terms=("loan",))
    assert (found.vector_rank, found.keyword_rank) == (2, 0)


OLD = Entry(id="old", words=("tide",), seeds=(1,), supersedes=())
NEW = Entry(id="new", words=("tide", "loan"), seeds=(2,), supersedes=("old", "absent"))
OTHER = Entry(id="other", words=("tide", "lamp"), seeds=(3,), supersedes=())


def found(store: Store, project: str = "p") -> set[str]:
    by_words, by_vector = ids(ask(store, project, terms=("tide",))), ids(ask(store, project, seed=1))
    assert by_words == by_vector
    return by_words


@pytest.mark.parametrize("order", [(OLD, NEW, OTHER), (NEW, OTHER, OLD)])
def test_what_another_replaces_is_no_candidate_whichever_was_written_first(
    store: Store, order: Sequence[Entry]
) -> None:
    """1.1-17."""
    for entry in order:
        put(store, "p", entry)
    assert (found(store), store.superseded_by("p", ["old", "new", "absent"])) == ({"new", "other"}, {"old": ("new",)})


def test_what_one_write_brings_is_replaced_by_what_it_brings(store: Store) -> None:
    """1.1-17."""
    put(store, "p", NEW, OLD)
    assert found(store) == {"new"}


def test_it_is_still_there_and_told_with_what_replaces_it(store: Store) -> None:
    """1.1-17."""
    put(store, "p", OLD, NEW)
    (memory,) = store.get("p", ["old"], 0, full=True)
    assert memory is not None
    assert {one.id for one in store.page("p", Filter(), 0, 10, full=False).memories} == {"old", "new"}


def test_it_comes_back_when_what_replaced_it_is_removed_or_says_so_no_more(store: Store) -> None:
    """1.1-17."""
    put(store, "p", OLD, NEW, Entry(id="newer", supersedes=("old",)))
    store.write("p", delete_request(["new"])).result(timeout=30)
    assert (found(store), store.superseded_by("p", ["old"])) == ({"newer"}, {"old": ("newer",)})
    put(store, "p", Entry(id="newer", words=("tide", "x"), supersedes=()))
    assert (found(store), store.superseded_by("p", ["old"])) == ({"newer", "old"}, {})


def test_an_edit_of_the_old_one_leaves_it_replaced(store: Store) -> None:
    """1.1-17: the one that replaces it says so of the memory, not of its words."""
    put(store, "p", OLD, NEW)
    put(store, "p", Entry(id="old", words=("tide", "again"), supersedes=()))
    assert found(store) == {"new"}


def test_of_two_that_replace_each_other_the_one_written_last_stays(store: Store) -> None:
    put(store, "p", Entry(id="a", supersedes=("b",)))
    put(store, "p", Entry(id="b", supersedes=("a",)))
    assert found(store) == {"b"}
    put(store, "p", Entry(id="a", words=("tide", "x"), supersedes=("b",)))
    assert found(store) == {"a"}


def test_a_memory_does_not_replace_itself(store: Store) -> None:
    put(store, "p", Entry(id="a", supersedes=("a",)))
    assert found(store) == {"a"}


def test_a_chain_leaves_its_end(store: Store) -> None:
    put(store, "p", OLD, NEW, Entry(id="newest", supersedes=("new",)))
    assert found(store) == {"newest"}


def test_projects_replace_apart(store: Store) -> None:
    """S0-06."""
    put(store, "p", OLD)
    put(store, "q", NEW)
    assert (found(store), store.superseded_by("p", ["old"])) == ({"old"}, {})


@pytest.mark.long
def test_among_many_memories_the_same_are_left_out_while_they_are_indexed_anew(store: Store) -> None:
    """This holds in the delta and in the base."""
    put(store, "p", OLD, NEW)
    for number in range(12):
        put(store, "p", *(Entry(id=f"m{number}-{one}", seeds=(number,), supersedes=()) for one in range(4)))
        store.write("p", delete_request([f"m{number}-0"])).result(timeout=30)
        assert "old" not in ids(ask(store, terms=("tide",), pool=200))
        assert "new" in ids(ask(store, terms=("tide",), pool=200))


def test_it_is_told_why_it_is_no_candidate(store: Store) -> None:
    """1.1-17."""
    put(store, "p", OLD, NEW, OTHER)
    standing = sure(at(store, "p").standing(GroupQuery(name="main", filter=Filter(), terms=("tide",)), "old"))
    assert (standing.superseded_by, standing.failed) == (("new",), ())
    other = sure(at(store, "p").standing(GroupQuery(name="main", filter=Filter(), terms=("tide",)), "other"))
    assert (other.superseded_by, other.searched) == ((), 2)


def test_it_is_the_same_after_a_restart(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        put(store, "p", NEW, OLD, OTHER)
    with opened(tmp_path) as store:
        assert (store.superseded_by("p", ["old"]), found(store)) == ({"old": ("new",)}, {"new", "other"})


ONE = Entry(id="one", words=("tide",), seeds=(1,), supersedes=(), kind=MemoryKind.ENTRY)
TWO = Entry(id="two", words=("tide", "lamp"), seeds=(2,), supersedes=())


def say(store: Store, memory_id: str, judgement: Judgement, voice: int = 1, project: str = "p") -> None:
    def apply(work: UnitOfWork) -> None:
        memory = work.get(memory_id)
        text = 0 if memory is None else short_hash(memory.content_hash)
        verdict = Verdict(memory_id=memory_id, judgement=judgement, text=text)
        record(work.learning, FeedbackGiven(query_text="", verdicts=(verdict,), voice=voice))

    store.write(project, write_request(apply)).result(30)


def said(found: Candidates) -> dict[str, tuple[int, int]]:
    """Voices that said HELPFUL and WRONG, of those of whom anything was said."""
    if not len(found.wrong):
        return {}
    counts = zip(found.memory_id, found.helpful.tolist(), found.wrong.tolist(), strict=True)
    return {name: (helpful, wrong) for name, helpful, wrong in counts if helpful or wrong}


def asked(store: Store) -> dict[str, tuple[int, int]]:
    by_words, by_vector = said(ask(store, terms=("tide",))), said(ask(store, seed=1))
    assert by_words == by_vector
    return by_words


def test_nothing_is_there_where_nothing_was_said(store: Store) -> None:
    put(store, "p", ONE, TWO)
    assert len(ask(store, terms=("tide",)).wrong) == 0


def test_each_voice_counts_once_with_its_last_word(store: Store) -> None:
    """S1-17."""
    put(store, "p", ONE, TWO)
    say(store, "one", Judgement.WRONG, 1)
    assert asked(store) == {"one": (0, 1)}
    say(store, "one", Judgement.WRONG, 1)
    say(store, "one", Judgement.HELPFUL, 2)
    say(store, "two", Judgement.HELPFUL, 1)
    assert asked(store) == {"one": (1, 1), "two": (1, 0)}
    say(store, "one", Judgement.NOT_HELPFUL, 1)
    assert asked(store) == {"one": (1, 0), "two": (1, 0)}


def test_what_changes_no_count_changes_no_content(store: Store) -> None:
    """1.1-1."""
    put(store, "p", ONE)
    say(store, "one", Judgement.WRONG)
    before = store.generation("p")
    say(store, "one", Judgement.WRONG)
    say(store, "one", Judgement.NOT_HELPFUL, 2)
    after = store.generation("p")
    assert (after.seq, after.content_seq) == (before.seq + 2, before.content_seq)


def test_the_oldest_voice_gives_way(store: Store) -> None:
    put(store, "p", ONE)
    for voice in range(1, MAX_VOICES + 3):
        say(store, "one", Judgement.WRONG if voice < 4 else Judgement.HELPFUL, voice)
    assert asked(store) == {"one": (MAX_VOICES - 1, 1)}


def test_keywords_and_edits_leave_what_was_said_and_other_texts_do_not(store: Store) -> None:
    """S1-17, S3-30."""
    put(store, "p", ONE, TWO)
    asked(store)
    say(store, "one", Judgement.WRONG)
    store.write(
        "p", write_request(lambda work: record(work.learning, KeywordsSet(memory_id="one", keywords=("bay",))))
    ).result(30)
    assert (asked(store), ids(ask(store, terms=("bay",)))) == ({"one": (0, 1)}, {"one"})
    put(
        store, "p", Entry(id="one", words=("tide",), seeds=(1,), supersedes=(), tags=("#other",), kind=MemoryKind.ENTRY)
    )
    assert asked(store) == {"one": (0, 1)}
    put(store, "p", Entry(id="one", words=("tide", "harbour"), seeds=(1,), supersedes=(), kind=MemoryKind.ENTRY))
    assert asked(store) == {}
    put(store, "p", ONE)
    assert asked(store) == {"one": (0, 1)}


def test_a_removed_memory_takes_it_along(store: Store) -> None:
    put(store, "p", ONE, TWO)
    say(store, "one", Judgement.WRONG)
    store.write("p", delete_request(["one"])).result(30)
    put(store, "p", ONE)
    assert asked(store) == {}


def test_one_write_says_of_what_it_puts(store: Store) -> None:
    def apply(work: UnitOfWork) -> None:
        memory: Memory | None = work.get("one")
        assert memory is not None
        verdict = Verdict(memory_id="one", judgement=Judgement.WRONG, text=short_hash(memory.content_hash))
        record(work.learning, FeedbackGiven(query_text="", verdicts=(verdict,), voice=3))
        assert work.delete("two")

    put(store, "p", ONE, TWO)
    asked(store)
    store.write("p", write_request(apply)).result(30)
    assert asked(store) == {"one": (0, 1)}


def test_logs_of_before_verdicts_counted_rank_nothing(store: Store) -> None:
    """S3-28: what replaying them gives stays what it was."""
    put(store, "p", ONE)
    say(store, "one", Judgement.WRONG, voice=0)
    assert asked(store) == {}
    assert store.read_learning("p", lambda learning: learning.state().feedback.wrong) == 1


def test_who_watches_is_not_told_of_it(store: Store) -> None:
    put(store, "p", ONE)
    after = store.generation("p").seq
    say(store, "one", Judgement.WRONG)
    assert store.memory_events("p", after, full=False).events == ()
    put(store, "p", TWO)
    (event,) = store.memory_events("p", after, full=False).events
    assert (event.type, event.memory_id) == (MemoryEventType.CREATED, "two")


def test_it_survives_rebuilds_and_restarts(tmp_path: Path) -> None:
    """S4-02."""
    with opened(tmp_path) as store:
        put(store, "p", ONE, TWO)
        asked(store)
        say(store, "one", Judgement.WRONG)
        for number in range(12):
            put(store, "p", *(Entry(id=f"m{number}-{one}", seeds=(number,), supersedes=()) for one in range(4)))
            store.write("p", delete_request([f"m{number}-0"])).result(timeout=30)
            assert said(ask(store, terms=("tide",), pool=200)) == {"one": (0, 1)}
        say(store, "one", Judgement.HELPFUL, 2)
        assert said(ask(store, terms=("tide",), pool=200)) == {"one": (1, 1)}
    with opened(tmp_path) as store:
        assert said(ask(store, terms=("tide",), pool=200)) == {"one": (1, 1)}
