"""Recall from one end to the other: the real store, the toy model and its failures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hummock.core.candidates import FoundBy
from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.embedding import Embedding, EmbeddingSpace
from hummock.core.errors import EmbSpaceMismatch, InvalidRequest, SeqNotReached
from hummock.core.memory import Memory, Origin
from hummock.core.recall import Intent, Preset, RecallPath, RecallQuery
from hummock.recall.pipeline import Recall
from hummock.store.snapshot import TableSnapshot
from hummock.store.tables.reads import TableProjects
from tests.desk import Desk, domain, fragment, ids, note
from tests.snapshots import over
from tests.strategies import delete_request

DAY = 86_400.0
VECTOR = frozenset({RecallPath.VECTOR})


class Broken:
    """An embedder whose model has died."""

    def __init__(self, space: EmbeddingSpace) -> None:
        self.space = space

    def embed_query(self, text: str, timeout_s: float | None = None, gloss: str | None = None) -> Embedding:
        raise RuntimeError(text)

    def is_known(self, text: str, gloss: str | None = None) -> bool:
        return False

    def embed_documents(
        self, documents: Sequence[Sequence[str]], deadline: Deadline = NO_DEADLINE, *, is_bulk: bool = False
    ) -> list[tuple[Embedding, ...]]:
        raise RuntimeError(documents)

    def embed_in_turn(self, chunks: Sequence[str]) -> Iterator[Embedding]:
        raise RuntimeError(chunks)

    def split(self, header: str, body: str) -> list[str]:
        raise RuntimeError(header)

    def close(self) -> None:
        pass


def test_a_recall_changes_nothing_on_disk_and_no_seq(desk: Desk) -> None:
    """S3-24, 1.1-9."""
    desk.teach(note("the harbour is deep", "a"), domain("港口", "d"))
    before, project = desk.files(), desk.store.project("p")
    for preset in Preset:
        desk.recall("港口 harbour", preset=preset)
    assert desk.files() == before
    assert desk.store.project("p") == project


def test_an_unknown_project_is_empty_and_is_not_made(desk: Desk) -> None:
    """S0-06."""
    answer = over(desk.store, Recall(desk.embedder, desk.clock))(
        RecallQuery(project="unknown", text="harbour", preset=Preset.CODE)
    )
    assert (answer.hits, answer.code_fragments, answer.domains, answer.seq) == ((), (), (), 0)
    assert desk.store.project("unknown") is None


def test_a_model_may_fail_where_nothing_was_learnt_or_it_is_not_needed(desk: Desk) -> None:
    """S4-55."""
    broken = Broken(desk.embedder.space)
    assert desk.recall("港口 harbour", broken).degraded == ()
    desk.teach(note("the harbour is deep", "a"))
    assert [one.reason for one in desk.recall("港口 harbour", broken).degraded] == ["EMBEDDER_FAILED"]
    assert not desk.recall("harbour", broken, paths=frozenset({RecallPath.KEYWORD})).degraded
    assert not desk.recall("harbour", broken, vector=desk.pointing(1)).degraded


def test_without_the_model_the_words_still_answer(desk: Desk) -> None:
    """S0-11, S0-36: what fails is left out and said."""
    desk.teach(note("the harbour is deep", "a"), note("a fine day", "b"), domain("港口", "d"))
    # CODEX looks among entries alone.
    for preset in (Preset.CHAT, Preset.CODE, Preset.AGENT):
        answer = desk.recall("港口 harbour", Broken(desk.embedder.space), preset=preset)
        found = {hit.memory.id for hit in (*answer.hits, *answer.domains)}
        assert found == {"a", "d"}
        assert [(one.path, one.reason) for one in answer.degraded] == [("vector", "EMBEDDER_FAILED")]
        assert "港口" not in answer.degraded[0].message
        assert answer.receipt.vector_weight == 0
        assert all(hit.cosine == hit.similarity == 0 for hit in answer.hits)


@pytest.mark.parametrize(
    "text",
    ["过去两三个小时改了什么", "过去0小时 harbour", "最近两三天", "what broke thıs week", "on frıday", "in Aprıl"],
)
@pytest.mark.parametrize("as_of", [1_684_281_600.0, 1_684_319_400.0], ids=["midnight", "morning"])
def test_words_that_are_nearly_times_are_no_reason_to_fail(desk: Desk, text: str, as_of: float) -> None:
    """S0-36."""
    desk.teach(note(f"{text} harbour", "a"))
    assert ids(desk.recall(text, as_of=as_of)) == ["a"]


def test_chat_with_the_vector_path_alone_is_the_documents_algorithm(desk: Desk) -> None:
    """S4-24, S4-25, S4-26, S4-28, S4-29, S4-30, 1.1-10."""
    now = desk.clock.now()
    cosines = [0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.35, 0.1]
    ages = [60.0, 3.0, 20.0, 0.0, 1.0, 7.0, 0.0, 0.0]
    drafts = [note(f"memory {place}", f"m{place}", at=now - age * DAY) for place, age in enumerate(ages)]
    older = note("Memory 3.", "older", origin=Origin.SUMMARY, at=now - DAY)
    vectors = [desk.pointing(cosine, math.sqrt(1 - cosine**2)) for cosine in [*cosines, 0.8]]
    desk.teach(*drafts, older, vectors=vectors)

    answer = desk.recall("zzz", vector=desk.pointing(1), preset=Preset.CHAT, paths=VECTOR)

    calibrated = desk.embedder.space.calibration.similarity(np.array(cosines, np.float32), han=False)
    scored = {
        f"m{place}": similarity * math.exp(-age / 14)
        for place, (similarity, age) in enumerate(zip(calibrated, ages, strict=True))
        if similarity >= 0.3
    }
    expected = sorted(scored, key=lambda memory_id: -scored[memory_id])[:5]
    assert ids(answer) == expected
    assert [hit.score for hit in answer.hits] == pytest.approx([scored[one] for one in expected], abs=2e-3)
    (main,) = answer.receipt.groups
    assert (main.duplicate, main.below_min_similarity) == (1, len(cosines) - len(scored))


def test_a_hit_of_the_words_is_exempt_from_the_minimum_and_one_of_the_vector_is_not(desk: Desk) -> None:
    """1.1-10."""
    desk.teach(note("harbour", "word"), note("weather", "none"), vectors=[desk.pointing(0, 1), desk.pointing(0, 1)])
    answer = desk.recall("harbour", vector=desk.pointing(1), preset=Preset.CHAT)
    assert ids(answer) == ["word"]
    assert answer.receipt.groups[0].below_min_similarity == 1


def test_the_worked_intent_finds_its_domain_its_files_and_its_keywords(desk: Desk) -> None:
    """S0-03, S0-04, S0-10, S0-15, 1.1-15."""
    desk.teach(
        domain("还款", "d", "RepaymentService.java"),
        fragment("src/RepaymentService.java", "Repayment"),
        note("计算逻辑在利息模块里", "logic"),
        note("天气很好", "weather"),
    )
    intent = Intent(domains=("还款", "还款方式"), action="ADD_FEATURE", keywords=("先本后息", "还款方式", "计算逻辑"))
    answer = desk.recall("增加先本后息的还款方式", preset=Preset.CODE, intent=intent)
    assert answer.intent == intent
    assert [hit.memory.id for hit in answer.domains] == ["d"]
    assert answer.domains[0].score == 1
    (code,) = answer.code_fragments
    assert code.found_by & FoundBy.KEY_FILE
    assert answer.hits[0].memory.id == "logic"
    assert set(answer.hits[0].matched_terms) == {"计算", "算逻", "逻辑"}


def test_a_version_of_the_best_hit_stands_behind_an_unrelated_one(desk: Desk) -> None:
    """S2-01, S2-05, S2-07, 1.1-7."""
    drafts = [note(f"text {name}", name) for name in ("date_v2", "date_v1", "other")]
    vectors = [desk.pointing(1, 0.1), desk.pointing(1, 0.2), desk.pointing(0.1, 0, 1)]
    desk.teach(*drafts, vectors=vectors)
    answer = desk.recall("zzz", vector=desk.pointing(1), paths=VECTOR)
    assert ids(answer) == ["date_v2", "other", "date_v1"]
    assert [hit.near_twin for hit in answer.hits] == [False, False, True]
    assert ids(desk.recall("zzz", vector=desk.pointing(1), paths=VECTOR, relevance_weight=1.0, near_twin_bar=2.0)) == [
        "date_v2",
        "date_v1",
        "other",
    ]


def test_the_sentence_just_said_is_no_answer_to_itself_at_any_age(desk: Desk) -> None:
    """S4-27, S4-48, 1.1-2."""
    desk.teach(note("我下周去杭州", "said", origin=Origin.USER_INPUT), note("杭州有西湖", "lake"))
    for seconds in (0.0, 10.0, 400 * DAY):
        desk.clock.move(seconds)
        answer = desk.recall("我下周还去杭州", min_similarity=-1.0)
        assert "said" in ids(answer), "another sentence is no echo"
        assert "said" not in ids(desk.recall("我下周去杭州", min_similarity=-1.0))
        assert desk.recall("我下周去杭州").receipt.groups[0].echo == 1


def test_as_of_is_the_now_of_ages_and_min_seq_a_condition(desk: Desk) -> None:
    """1.1-3."""
    desk.teach(note("the harbour is deep", "a"))
    then = desk.clock.now() + 14 * DAY
    answer = desk.recall("harbour", preset=Preset.CHAT, as_of=then, min_seq=1, decay_floor=0.0)
    assert (answer.receipt.as_of, answer.seq) == (then, 1)
    assert answer.hits[0].decay == pytest.approx(math.exp(-1))
    with pytest.raises(SeqNotReached):
        desk.recall("harbour", min_seq=2)


def test_a_vector_of_another_space_or_dimension_is_refused(desk: Desk) -> None:
    given = desk.pointing(1)
    with pytest.raises(EmbSpaceMismatch):
        desk.recall("x", vector=replace(given, emb_space="another"))
    with pytest.raises(InvalidRequest, match="has 3 components"):
        desk.recall("x", vector=replace(given, values=given.values[:3]))


def before_the_first_read(monkeypatch: pytest.MonkeyPatch, write: Callable[[], object]) -> None:
    """Has a write come between the view that the next recall takes, and its transaction."""
    reading, writes = TableProjects.reading, [write]

    def late(projects: TableProjects, number: int, seen_seq: int = 0) -> Any:
        if seen_seq and writes:  # a view's own reads name no seq
            writes.pop()()
        return reading(projects, number, seen_seq)

    monkeypatch.setattr(TableProjects, "reading", late)


def test_a_memory_that_is_removed_meanwhile_is_left_out(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.teach(note("harbour one", "a"), note("harbour two", "b"))
    desk.recall("harbour")
    before_the_first_read(monkeypatch, lambda: desk.store.write("p", delete_request(["a"])).result(timeout=30))
    answer = desk.recall("harbour")
    assert ids(answer) == ["b"]
    assert answer.receipt.groups[0].returned == 1


def test_a_memory_that_is_edited_meanwhile_is_recalled_as_it_is_now(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4-42."""
    desk.teach(note("the lamp is lit", "a"), note("the lamp is out", "b"))
    desk.recall("lamp")
    before_the_first_read(monkeypatch, lambda: desk.teach(note("the lamp is green", "a")))
    found = {hit.memory.payload.content for hit in desk.recall("lamp").hits if hit.memory.payload}
    assert found == {"the lamp is green", "the lamp is out"}


def test_what_is_written_after_the_first_read_is_not_mixed_into_the_answer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recall is of one moment."""
    desk.teach(note("the lamp is lit", "a"), note("the lamp is out", "b"))
    load = TableSnapshot.load

    def written_before(project: TableSnapshot, docs: Sequence[int], *, full: bool) -> list[Memory | None]:
        desk.teach(note("the lamp is green", "a"))
        return load(project, docs, full=full)

    monkeypatch.setattr(TableSnapshot, "load", written_before)
    answer = desk.recall("lamp")
    assert {hit.memory.payload.content for hit in answer.hits if hit.memory.payload} == {
        "the lamp is lit",
        "the lamp is out",
    }
    assert answer.seq == 1


@pytest.mark.parametrize("text", ["?!", "🙂", "x", "还", "\u200b", "a" * 8192])
@pytest.mark.parametrize("preset", list(Preset))
def test_any_query_is_answered(desk: Desk, text: str, preset: Preset) -> None:
    desk.teach(note("the harbour is deep", "a"), domain("港口", "d"), fragment("a.py", "f"))
    answer = desk.recall(text, preset=preset)
    assert not answer.degraded
    assert all(0 <= hit.score <= 1 for hit in (*answer.hits, *answer.code_fragments, *answer.domains))
