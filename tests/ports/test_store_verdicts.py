"""Verdicts on memories come with them as candidates, at every moment and after every kind of write."""

from __future__ import annotations

from pathlib import Path

from hummock.core.candidates import Candidates
from hummock.core.learning import MAX_VOICES, FeedbackGiven, Judgement, KeywordsSet, Verdict
from hummock.core.memory import Memory, MemoryEventType, MemoryKind
from hummock.learning.log import record
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork
from hummock.text.normalise import short_hash
from tests.ports.asking import ask, ids, put
from tests.store.opening import opened
from tests.strategies import Entry, delete_request, write_request

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
    assert asked(store) == {"one": (0, 1)}
    assert ids(ask(store, terms=("bay",))) == {"one"}
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
