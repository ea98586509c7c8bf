"""The garden over a real store."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.errors import InvalidRequest, MemoryNotFound, RequestIdReused, Unavailable
from hummock.core.memory import (
    Changes,
    CodeFragment,
    DomainKnowledge,
    Draft,
    LearningRecord,
    Memory,
    MemoryIndex,
    MemoryKind,
    Origin,
    Payload,
)
from hummock.core.settings import ProjectSettings
from hummock.memories.preparation import Preparation, make_memory
from hummock.ports.writes import Reply, WriteRequest, Written
from hummock.text.analyzer import document_terms
from hummock.text.template import as_draft
from hummock.text.tokens import EstimatedTokens
from tests.ports.asking import ask, ids
from tests.strategies import delete_request
from tests.sure import sure
from tests.workplace import WordEmbedder, Workplace, note

TEXTS = st.text("潮汐 core\n\tA.", max_size=12)
FILLED = TEXTS.map(lambda text: f"x{text}")


def drafts() -> st.SearchStrategy[Draft]:
    """Drafts of every kind."""
    records = st.builds(LearningRecord, question=FILLED, answer=FILLED)
    domains = st.builds(DomainKnowledge, domain=FILLED, aliases=st.tuples(TEXTS), summary=FILLED)
    fragments = st.builds(CodeFragment, path=FILLED, symbol=TEXTS)
    details = st.one_of(
        st.tuples(st.just(MemoryKind.LEARNING_RECORD), records),
        st.tuples(st.just(MemoryKind.DOMAIN_KNOWLEDGE), domains),
        st.tuples(st.just(MemoryKind.CODE_FRAGMENT), fragments),
        st.tuples(st.sampled_from([MemoryKind.NOTE, MemoryKind.ENTRY]), st.none()),
    )
    indexes = st.builds(MemoryIndex, title=TEXTS, summary=TEXTS, tags=st.sampled_from([(), ("java",)]))
    return st.builds(
        lambda detail, content, index, origin: Draft(
            id="a", kind=detail[0], origin=origin, index=index, payload=Payload(content=content, detail=detail[1])
        ),
        details,
        FILLED,
        indexes,
        st.sampled_from(list(Origin)),
    )


def update(work: Workplace, changes: Changes, memory_id: str = "a", request_id: str = "") -> Memory:
    return work.garden.update("p", request_id, memory_id, changes, b"f").memory


@given(draft=drafts())
def test_a_memory_is_made_again_as_it_was_out_of_its_draft(draft: Draft) -> None:
    """An update that changes nothing changes nothing."""
    preparation = Preparation(WordEmbedder(), EstimatedTokens(), make_id=lambda: "m")
    (first,) = preparation.prepare("p", [draft], ProjectSettings())
    memory = make_memory(first, None, chunk_count=1, now=5.0)
    (again,) = preparation.prepare("p", [as_draft(memory)], ProjectSettings())
    assert again.index == first.index
    assert again.content_hash == first.content_hash
    assert (again.key and again.key.identity) == (first.key and first.key.identity)
    assert again.words.analysed().token_count == first.words.analysed().token_count
    assert again.draft.payload == draft.payload


def test_an_edit_is_found_by_its_new_words_and_vector_only(work: Workplace) -> None:
    """S4-42."""
    work.teach(note("the tide rises", "a"), note("潮汐木芯", "b"))
    work.clock.move(60)
    after = update(work, Changes(content="loans are repaid 先本后息"))
    assert (after.create_time, after.update_time) == (1_700_000_000.0, 1_700_000_060.0)
    assert after.index.title == "loans are repaid 先本后息"
    assert not ids(ask(work.store, terms=document_terms("tide")))
    assert ids(ask(work.store, terms=document_terms("先本后息"))) == {"a"}
    assert after == work.get("a")


def test_what_a_caller_gave_stays_and_what_was_derived_follows(work: Workplace) -> None:
    """S2-04."""
    index = MemoryIndex(title="my title", tags=("java",))
    work.teach(Draft(id="a", kind=MemoryKind.NOTE, index=index, payload=Payload(content="one")))
    after = update(work, Changes(content="two"))
    assert after.index == MemoryIndex(title="my title", summary="two", tags=("java",))
    assert update(work, Changes(title="")).index.title == "two"


def test_an_event_time_is_cleared_when_it_is_named_and_what_does_not_fit_changes_nothing(work: Workplace) -> None:
    work.teach(note("one", "a"))
    detail = CodeFragment(path="A.java")
    with pytest.raises(InvalidRequest) as caught:
        update(work, Changes(content="x", detail=detail, detail_set=True))
    assert caught.value.field == "detail"
    with pytest.raises(InvalidRequest, match=r"^content: "):
        update(work, Changes(content=" "))
    assert sure(work.store.project("p")).seq == 1
    assert update(work, Changes(event_time=7.0, event_time_set=True)).event_time == 7.0
    assert update(work, Changes(trust=0.0)).event_time == 7.0
    assert update(work, Changes(event_time_set=True)).event_time is None


def test_updates_of_one_memory_at_once_all_happen(work: Workplace) -> None:
    work.teach(note("one", "a"))
    with ThreadPoolExecutor(4) as threads:
        changes = [Changes(speaker="Ada"), Changes(emotion_label="calm"), Changes(trust=0.25), Changes(tags=("t",))]
        list(threads.map(lambda change: update(work, change), changes))
    kept = sure(work.get("a"))
    assert (kept.speaker, kept.emotion_label, kept.trust, kept.index.tags) == ("Ada", "calm", 0.25, ("t",))


def test_an_update_that_others_always_overtake_can_be_tried_again(work: Workplace) -> None:
    """The request itself is not at fault."""
    work.teach(note("version 0", "a"))
    versions = count(1)

    def overtake() -> None:
        work.teach(note(f"version {next(versions)}", "a"))
        work.embedder.before = overtake

    work.embedder.before = overtake
    with pytest.raises(Unavailable, match="memory a"):
        update(work, Changes(speaker="Ada"))


def test_an_update_that_was_stored_is_not_reported_as_missing(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another call removes the memory before this one is answered."""
    work.teach(note("one", "a"))
    write = work.store.write

    def write_then_remove(project: str, request: WriteRequest[Reply]) -> Future[Written[Reply]]:
        future = write(project, request)
        future.result(30)
        write(project, delete_request(["a"])).result(30)
        return future

    monkeypatch.setattr(work.store, "write", write_then_remove)
    assert update(work, Changes(content="two")).payload == Payload(content="two")
    assert work.get("a") is None


def test_a_repeated_update_answers_again_and_changes_nothing(work: Workplace) -> None:
    work.teach(note("one", "a"))
    first = work.garden.update("p", "r", "a", Changes(content="two"), b"f")
    work.clock.move(60)
    assert work.garden.update("p", "r", "a", Changes(content="two"), b"f") == first
    with pytest.raises(RequestIdReused):
        work.garden.update("p", "r", "a", Changes(content="three"), b"g")


def test_what_is_not_there_is_neither_updated_nor_removed_and_makes_no_project(work: Workplace) -> None:
    with pytest.raises(MemoryNotFound, match="memory a does not exist"):
        update(work, Changes(content="x"))
    assert work.store.project("p") is None
    assert work.garden.delete("q", "", ["a", "a"], b"f").missing_ids == ("a",)
    assert work.store.project("q") is None


def test_removing_again_says_what_the_first_time_said(work: Workplace) -> None:
    work.teach(note("one", "a"))
    first = work.garden.delete("p", "r", ["a", "a", "b"], b"f")
    assert (first.deleted_count, first.missing_ids) == (1, ("b",))
    work.teach(note("one", "a"))
    assert work.garden.delete("p", "r", ["a", "a", "b"], b"f") == first
    assert work.get("a") is not None


def test_a_request_id_of_a_learn_is_refused_for_a_removal(work: Workplace) -> None:
    work.teach(note("one", "a"), request_id="r", fingerprint=b"learn")
    with pytest.raises(RequestIdReused, match="make a new one"):
        work.garden.delete("p", "r", ["a"], b"delete")
    assert work.get("a") is not None
