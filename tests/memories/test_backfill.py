"""Memories that were learnt without vectors: found by words at once, by meaning once their vectors have come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hummock.core.candidates import FoundBy
from hummock.core.embedding import Embedding
from hummock.core.learning import KeywordsLearned, KeywordUpdate, Learner
from hummock.core.memory import Changes, CodeFragment, Draft, LearnStatus, MemoryKind, Origin, Payload
from hummock.core.recall import Recalled, RecallQuery
from hummock.learning.log import record
from hummock.memories.backfill import Backfill
from hummock.recall.pipeline import Recall
from tests.snapshots import over
from tests.strategies import write_request
from tests.sure import sure
from tests.workplace import Workplace, note, workplace


def recalled(work: Workplace, text: str, **fields: object) -> Recalled:
    query = RecallQuery(project="p", text=text, **fields)  # type: ignore[arg-type] # fields of RecallQuery
    return over(work.store, Recall(work.embedder, work.clock, want=work.backfill.want))(query)


def pending(work: Workplace) -> tuple[int, int]:
    """Pending counts of the project and of the store."""
    return sure(work.store.project("p")).pending_count, work.store.status().pending_count


def test_what_is_deferred_is_found_by_words_before_and_by_meaning_after(work: Workplace) -> None:
    learned = work.teach(note("the harbour lamp burns whale oil", "a"), note("red kites", "b"), is_deferred=True)
    assert (learned.pending, pending(work)) == (2, (2, 2))
    assert work.embedder.embedded == []

    before = recalled(work, "harbour lamp")
    assert [hit.memory.id for hit in before.hits] == ["a"]
    assert before.hits[0].found_by is FoundBy.KEYWORD
    (said,) = before.degraded
    assert (said.path, said.reason) == ("vector", "VECTORS_PENDING")
    assert "2 of 2 memories" in said.message
    assert [group.pending for group in before.receipt.groups if group.name == "main"] == [2]

    work.embed_pending()
    after = recalled(work, "harbour lamp")
    assert pending(work) == (0, 0)
    assert after.hits[0].memory.id == "a"
    assert after.hits[0].found_by == FoundBy.VECTOR | FoundBy.KEYWORD
    assert after.degraded == ()
    assert after.content_seq > before.content_seq


def test_vectors_that_come_later_are_those_that_would_have_come_at_once(work: Workplace, tmp_path: Path) -> None:
    drafts = [note("one two three four five six seven eight nine ten eleven twelve", "long"), note("short", "s")]
    work.teach(*drafts, is_deferred=True)
    work.embed_pending()
    with workplace(tmp_path / "inline") as inline:
        inline.teach(*drafts)
        assert stored(work) == stored(inline)


def stored(work: Workplace) -> list[tuple[str, int, float, list[bytes]]]:
    """All memories with the bytes of their vectors."""
    page = work.store.export("p", 0, work.store.generation("p").seq, with_vectors=True)
    return [
        (
            one.memory.id,
            one.memory.chunk_count,
            one.memory.update_time,
            [part.vector.tobytes() + part.tokens.tobytes() for part in one.embeddings],
        )
        for one in page.memories
    ]


def test_a_memory_without_vectors_is_not_ranked_below_one_that_has_them(work: Workplace) -> None:
    work.teach(note("harbour", "with"))
    work.teach(note("harbour lamp oil", "without"), is_deferred=True)
    hits = recalled(work, "harbour lamp oil").hits
    assert [hit.memory.id for hit in hits] == ["without", "with"]


def test_what_is_asked_for_is_embedded_first(work: Workplace) -> None:
    work.teach(*(note(f"word{number} kite", f"m{number:02}") for number in range(20)), is_deferred=True)
    assert recalled(work, "word17").hits[0].memory.id == "m17"
    assert work.backfill.embed_some()
    assert [text for text in work.embedder.embedded if "word17" in text]
    assert pending(work)[0] < 20


def test_a_memory_that_changes_meanwhile_gets_the_vectors_of_its_new_text(work: Workplace) -> None:
    """S2-19."""
    work.teach(note("old words", "a"), is_deferred=True)
    work.teach(note("new words", "a"), is_deferred=True)
    work.embed_pending()
    assert [text for text in work.embedder.embedded if "old" in text] == []
    assert pending(work) == (0, 0)
    assert (sure(work.get("a")).chunk_count, pending(work)) == (1, (0, 0))


def test_vectors_of_a_text_that_is_gone_are_not_stored(work: Workplace) -> None:
    work.teach(note("old words", "a"), is_deferred=True)
    old = sure(work.get("a"))
    work.garden.update("p", "", "a", Changes(content="new words"), b"f")
    vector = Embedding(vector=np.full(4, 0.5, np.float32), tokens=work.embedder.space.no_tokens())
    stored: list[bool] = []
    embed = write_request(
        lambda unit: stored.extend(unit.embed(one, old.fingerprint, [vector]) for one in ("a", "gone"))
    )
    work.store.write("p", embed).result()
    assert stored == [False, False]


def test_what_is_deleted_waits_no_longer(work: Workplace) -> None:
    work.teach(note("one", "a"), note("two", "b"), is_deferred=True)
    work.garden.delete("p", "", ["a"], b"f")
    assert pending(work) == (1, 1)
    work.embed_pending()
    assert (work.get("a"), pending(work)) == (None, (0, 0))


def test_a_learn_of_what_waits_already_changes_nothing(work: Workplace) -> None:
    work.teach(note("one", "a"), is_deferred=True)
    learned = work.teach(note("one", "a"))
    assert [result.status for result in learned.results] == [LearnStatus.UNCHANGED]
    assert pending(work) == (1, 1)


def test_what_is_learnt_of_an_entry_that_waits_outlasts_its_embedding(work: Workplace) -> None:
    """S3-10."""
    lamp = Draft(id="lamp", kind=MemoryKind.ENTRY, payload=Payload(content="burns whale oil"))
    work.teach(lamp, is_deferred=True)
    learn_keyword(work, "lamp", "beacon")
    assert pending(work) == (1, 1)
    assert recalled(work, "beacon").hits[0].memory.id == "lamp"
    work.embed_pending()
    assert pending(work) == (0, 0)
    assert recalled(work, "beacon").hits[0].memory.id == "lamp"


def learn_keyword(work: Workplace, memory_id: str, keyword: str) -> None:
    update = KeywordUpdate(memory_id=memory_id, keywords=(keyword,))
    learnt = KeywordsLearned(learner=Learner.OFFLINE, turn=0, updates=(update,), analyzed_ids=(memory_id,))
    work.store.write("p", write_request(lambda unit: record(unit.learning, learnt))).result()


def test_one_that_the_model_fails_on_stops_no_other(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    work.teach(note("fine", "a"), note("poison", "b"), note("fine too", "c"), is_deferred=True)
    embed = work.embedder.embed_in_turn

    def failing(texts: list[str]) -> Iterator[Embedding]:
        if any("poison" in text for text in texts):
            raise RuntimeError("NaN")
        return embed(texts)

    monkeypatch.setattr(work.embedder, "embed_in_turn", failing)
    work.embed_pending()
    status = work.backfill.status()
    assert (status.pending, status.failed, pending(work)) == (1, 1, (1, 1))
    assert recalled(work, "poison").hits[0].memory.id == "b"

    # The next process tries again.
    monkeypatch.undo()
    again = Backfill(work.store, work.embedder, work.clock, workers=0)
    again.start()
    assert again.embed_some()
    assert pending(work) == (0, 0)


def test_projects_take_turns(work: Workplace) -> None:
    for project in ("one", "two"):
        work.teach(
            *(note(f"{project} {number}", f"m{number}") for number in range(9)), project=project, is_deferred=True
        )
    for _ in range(2):
        assert work.backfill.embed_some()
    assert {text.split()[0] for text in work.embedder.embedded} == {"one", "two"}


def fragment(path: str, content: str) -> Draft:
    detail = CodeFragment(path=path, start_line=1, end_line=2, language="python", symbol="parse")
    payload = Payload(content=content, detail=detail)
    return Draft(id=f"{path}#parse", kind=MemoryKind.CODE_FRAGMENT, origin=Origin.INDEXER, payload=payload)


def counts(work: Workplace) -> tuple[int, int]:
    """Memories that were embedded, and those whose vectors were there."""
    status = work.backfill.status()
    return status.embedded, status.reused


def test_a_file_that_moves_is_not_embedded_again(work: Workplace) -> None:
    long = "def parse(): " + "return one two three four five six seven " * 3
    work.teach(fragment("old/parse.py", long), is_deferred=True)
    work.embed_pending()
    made = stored(work)
    work.teach(fragment("new/parse.py", long), is_deferred=True)
    work.garden.delete("p", "", ["old/parse.py#parse"], b"f")
    work.embed_pending()
    assert counts(work) == (1, 1)
    moved = stored(work)
    assert [one[3] for one in moved] == [one[3] for one in made]
    assert [one[0] for one in moved] == ["new/parse.py#parse"]


@pytest.mark.parametrize(
    ("drafts", "expected"),
    [
        # A branch that comes back, and the same file in two projects, are not embedded again.
        ([("p", fragment("parse.py", f"def parse(): {number}")) for number in (1, 2, 1, 2)], (2, 2)),
        ([(project, fragment("parse.py", "def parse(): 1")) for project in ("one", "two")], (1, 1)),
        # Content that only one project knows must not show in how long another one waits.
        ([(project, note("the door code is 4711", "a")) for project in ("one", "two")], (2, 0)),
    ],
    ids=["a branch", "two projects", "what people say"],
)
def test_equal_code_is_embedded_once_and_what_people_say_each_time(
    work: Workplace, drafts: list[tuple[str, Draft]], expected: tuple[int, int]
) -> None:
    for project, draft in drafts:
        work.teach(draft, project=project, is_deferred=True)
        work.embed_pending()
    assert counts(work) == expected
