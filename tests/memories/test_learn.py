"""Learn over a real store."""

from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from hummock.core.candidates import GroupQuery
from hummock.core.errors import EmbSpaceMismatch, InvalidRequest, RequestIdReused
from hummock.core.facets import passes
from hummock.core.memory import (
    CodeFragment,
    DomainKnowledge,
    Draft,
    Filter,
    LearnCommand,
    LearnStatus,
    Lesson,
    MemoryIndex,
    MemoryKind,
    Origin,
    Payload,
    QueryVector,
    SecretPolicy,
    SecretsFound,
)
from hummock.core.settings import ProjectSettings, SecretSettings, TimeSettings
from hummock.text.analyzer import document_terms
from hummock.text.told_days import told_time
from tests.ports.asking import ask, ids
from tests.snapshots import at
from tests.strategies import SPACE, delete_request, unit_vector, write_request
from tests.sure import sure
from tests.workplace import Workplace, note

CREATED, UPDATED = LearnStatus.CREATED, LearnStatus.UPDATED
UNCHANGED, DUPLICATE = LearnStatus.UNCHANGED, LearnStatus.DUPLICATE


def statuses(work: Workplace, *drafts: Draft) -> list[LearnStatus]:
    return [result.status for result in work.teach(*drafts).results]


def all_ids(work: Workplace, project: str = "p") -> list[str]:
    return found_ids(work, Filter(), project)


def found_ids(work: Workplace, where: Filter, project: str = "p") -> list[str]:
    return [memory.id for memory in work.garden.page(project, where, 0, 100, full=False).memories]


def code(path: str, content: str, memory_id: str = "", **more: Any) -> Draft:
    payload = Payload(content=content, detail=CodeFragment(path=path, **more))
    return Draft(id=memory_id, kind=MemoryKind.CODE_FRAGMENT, payload=payload)


def with_vector(draft: Draft, vector: QueryVector, project: str = "p") -> LearnCommand:
    return LearnCommand(project=project, request_id="", lessons=(Lesson(draft=draft, vector=vector),), fingerprint=b"f")


def test_what_was_learnt_is_found_by_both_paths_at_once(work: Workplace) -> None:
    """S4-40."""
    learned = work.teach(note("潮汐木芯 glows when the tide falls"))
    terms = document_terms("木芯")
    found = ask(work.store, terms=terms, min_seq=learned.seq)
    assert found.memory_id == (learned.results[0].id,)
    vector = work.embedder.embed_query("tide falls").vector
    found = at(work.store, "p").search([_query(vector)]).groups[0]
    assert found.memory_id == (learned.results[0].id,)


def test_a_long_memory_has_a_vector_for_every_part(work: Workplace) -> None:
    (result,) = work.teach(note(" ".join(f"word{number}" for number in range(70)))).results
    assert sure(work.get(result.id)).chunk_count == 4
    vector = work.embedder.embed_query("word65 word66 word67").vector
    found = at(work.store, "p").search([_query(vector)]).groups[0]
    assert found.cosine[0] > 0.4


def test_known_memories_are_not_embedded(work: Workplace) -> None:
    work.teach(note("one", "a"), note("two"))
    embedded = len(work.embedder.embedded)
    assert statuses(work, note("one", "a"), note("two "), note("one")) == [UNCHANGED, DUPLICATE, DUPLICATE]
    assert len(work.embedder.embedded) == embedded
    assert all_ids(work) == ["a", "m1"]


def test_a_known_memory_that_is_removed_before_the_write_is_stored_after_all(work: Workplace) -> None:
    """Acknowledged = durable and recallable."""
    work.teach(note("one", "a"), note("two", "b"))
    work.embedder.before = lambda: _remove(work, "a", "b")
    assert statuses(work, note("one", "a"), note("two", "c")) == [CREATED, CREATED]
    assert ids(ask(work.store, terms=document_terms("one two"))) == {"a", "c"}


def test_what_is_written_is_screened_as_the_project_has_it_by_then(work: Workplace) -> None:
    """X6: the vector that was made of the text with its secret is not kept."""
    key = "AKIAABCDEFGHIJKLMNOP"
    _keep_secrets(work, SecretPolicy.OFF)
    work.embedder.before = lambda: _keep_secrets(work, SecretPolicy.REDACT)
    learned = work.teach(note(f"use {key}", "a"), note("use none", "b"))
    assert learned.pending == 1
    first, second = sure(work.get("a")), sure(work.get("b"))
    assert first.payload == Payload(content="use [redacted: cloud key]")
    assert (first.chunk_count, second.chunk_count) == (0, 1)
    work.embed_pending()
    assert work.embedder.embedded[-1] == "use [redacted: cloud key]"
    assert learned.results[0].secrets == (SecretsFound(kind="cloud key", count=1, redacted=True),)


def test_what_is_embedded_is_screened_as_the_project_has_it_by_then(work: Workplace) -> None:
    """A policy that another service has changed since the last Learn keeps no memory waiting for its vectors."""
    key = "AKIAABCDEFGHIJKLMNOP"
    work.teach(note("one"))
    _keep_secrets(work, SecretPolicy.OFF)
    assert work.teach(note(f"use {key}", "a")).pending == 0
    assert work.embedder.embedded[-1] == f"use {key}"


def _keep_secrets(work: Workplace, policy: SecretPolicy) -> None:
    chosen = ProjectSettings(secrets=SecretSettings(policy=policy))
    work.store.write("p", write_request(lambda unit: unit.set_settings(chosen))).result()


def test_equal_texts_and_ids_of_a_batch_count_in_their_order(work: Workplace) -> None:
    """S4-28."""
    first, second = work.teach(note("tide"), note(" tide")).results
    assert (second.status, second.id, second.duplicate_of) == (DUPLICATE, first.id, first.id)
    assert statuses(work, note("one", "a"), note("two", "a"), note("two", "a")) == [CREATED, UPDATED, UNCHANGED]
    assert sure(work.get("a")).payload == Payload(content="two")
    assert ids(ask(work.store, terms=document_terms("one"))) == set()


def test_an_overwritten_memory_keeps_its_first_time_and_leaves_its_old_text_free(work: Workplace) -> None:
    work.teach(note("one", "a"))
    work.clock.move(60)
    work.teach(note("two", "a"))
    kept = sure(work.get("a"))
    assert (kept.create_time, kept.update_time) == (1_700_000_000.0, 1_700_000_060.0)
    assert statuses(work, note("one")) == [CREATED]


@pytest.mark.parametrize("origin", [Origin.USER_INPUT, Origin.AI_OUTPUT])
def test_turns_of_a_session_are_never_merged(work: Workplace, origin: Origin) -> None:
    """S4-38."""
    turn = note("yes", origin=origin, session_id="s")
    assert statuses(work, turn, turn) == [CREATED, CREATED]
    assert statuses(work, note("yes", origin=origin), note("yes", origin=origin)) == [CREATED, DUPLICATE]


def test_equal_code_of_two_paths_is_two_and_found_by_each(work: Workplace) -> None:
    """S0-18, S1-18: whoever sends it."""
    pieces = [replace(code(path, "return 1"), origin=Origin.INDEXER) for path in ("A.kt", "B.kt")]
    assert statuses(work, *pieces) == [CREATED, CREATED]
    fragments = [code(path, "return id;", path) for path in ("src/A.java", "src/B.java")]
    assert statuses(work, *fragments) == [CREATED, CREATED]
    assert found_ids(work, Filter(paths=("B.java",))) == ["src/B.java"]
    again = code("src/B.java", "return id;"), code("src/B.java", "return id;", start_line=7, end_line=7)
    assert statuses(work, *again) == [DUPLICATE, CREATED]
    first, second = work.garden.get("p", ["src/A.java", "src/B.java"], 0, full=False)
    assert sure(first).content_hash == sure(second).content_hash


def test_a_fingerprint_is_what_it_has_always_been(work: Workplace) -> None:
    """Fingerprints are stored: with another one everything learnt again after an upgrade would be embedded again."""
    draft = Draft(
        id="m", kind=MemoryKind.CODE_FRAGMENT, origin=Origin.INDEXER, index=MemoryIndex(title="t", tags=("a",)),
        payload=Payload(content="c", detail=CodeFragment(path="a.py", start_line=1)), trust=0.5, create_time=1.0,
    )  # fmt: skip
    work.teach(draft)
    assert sure(work.get("m")).fingerprint.hex() == "5af8e603a80ebdc16304f10104e39456"


def test_entries_of_two_names_with_one_text_are_two(work: Workplace) -> None:
    """S3-34: a codex has many entries that say "nothing is known yet"."""
    names = ("潮汐木芯", "雾灯")
    entries = [
        Draft(
            id=f"世界.图鉴.物品.{name}",
            kind=MemoryKind.ENTRY,
            index=MemoryIndex(title=name),
            payload=Payload(content="暂无描述。"),
        )
        for name in names
    ]
    assert statuses(work, *entries) == [CREATED, CREATED]
    assert ids(ask(work.store, terms=document_terms("雾灯"))) == {"世界.图鉴.物品.雾灯"}
    again = Draft(kind=MemoryKind.ENTRY, index=MemoryIndex(title="雾灯 "), payload=Payload(content="暂无描述。"))
    assert statuses(work, again) == [DUPLICATE]


@pytest.mark.parametrize(
    ("stored", "asked"), [("café", "cafe\u0301"), ("ＡＰＩ", "api"), ("Straße", "STRASSE"), ("重要", "重要")]
)
def test_a_tag_is_the_same_however_it_is_typed(work: Workplace, stored: str, asked: str) -> None:
    """S2-04."""
    index = MemoryIndex(tags=(stored,))
    work.teach(replace(note("one", "a"), index=index), note("two"))
    assert found_ids(work, Filter(tags=(asked,))) == ["a"]
    assert found_ids(work, Filter(tags=(asked, "other"))) == []


@pytest.mark.parametrize(
    ("folders", "expected"),
    [
        (["src/"], ["src/a.py", "src/pay/b.py", "src/pay/deep/c.py"]),
        (["/src/pay/"], ["src/pay/b.py", "src/pay/deep/c.py"]),
        (["pay/"], ["src/pay/b.py", "src/pay/deep/c.py", "lib/pay/d.py"]),
        (["deep/", "a.py"], ["src/a.py", "src/pay/deep/c.py"]),
        (["ay/"], []),
        (["b.py/"], []),
        (["/"], []),
        (["no/"], []),
    ],
)
def test_a_folder_is_all_code_below_it(work: Workplace, folders: list[str], expected: list[str]) -> None:
    paths = ["src/a.py", "src/pay/b.py", "src/pay/deep/c.py", "lib/pay/d.py", "payer/e.py"]
    work.teach(*(code(path, f"return {path!r}", path) for path in paths), note("src/a.py is slow", "n"))
    where = Filter(paths=tuple(folders))
    assert found_ids(work, where) == expected
    full = work.garden.get("p", paths, 0, full=True)
    assert [memory.id for memory in full if memory is not None and passes(memory, where, told_time)] == expected


def test_a_path_is_the_same_composed_or_not(work: Workplace) -> None:
    """S0-18: some file systems take letters apart."""
    work.teach(code("소스/Café.java", "return", "a"))
    decomposed = unicodedata.normalize("NFD", "소스/Café.java")
    assert decomposed != "소스/Café.java"
    for path in (decomposed, "Cafe\u0301.java", "Café.java", "/소스/Café.java"):
        assert found_ids(work, Filter(paths=(path,))) == ["a"]
    assert found_ids(work, Filter(paths=("é.java",))) == []


def test_a_domain_is_found_by_each_of_its_names(work: Workplace) -> None:
    """S0-10."""
    detail = DomainKnowledge(domain="还款", aliases=("Repayment  Domain", "   "), summary="how loans are repaid")
    work.teach(Draft(id="d", kind=MemoryKind.DOMAIN_KNOWLEDGE, payload=Payload(detail=detail)))
    assert ids(ask(work.store, domain_names=["repayment domain"])) == {"d"}
    assert ids(ask(work.store, domain_names=[""])) == set()


@pytest.mark.parametrize("blank", ["\n", "  ", "\u3000", "\t\n"])
def test_a_text_behind_much_white_space_has_a_title_and_a_summary(work: Workplace, blank: str) -> None:
    """S2-04."""
    (result,) = work.teach(note(blank * 1000 + "the tide " + blank * 1000 + " rises")).results
    kept = sure(work.get(result.id))
    assert kept.index.title.startswith("the tide")
    assert kept.index.summary == "the tide rises"


def test_a_blank_title_is_none_and_a_cut_one_says_so(work: Workplace) -> None:
    """S2-15. A hit must show something."""
    index = MemoryIndex(title=" \n", summary="\u3000")
    (result,) = work.teach(replace(note("the tide rises"), index=index)).results
    assert sure(work.get(result.id)).index == MemoryIndex(title="the tide rises", summary="the tide rises")
    for text, title in (("x" * 120, "x" * 120), ("x" * 121, "x" * 119 + "…"), ("a " * 60, "a " * 59 + "a")):
        (result,) = work.teach(note(text)).results
        assert sure(work.get(result.id)).index.title == title


def test_a_vector_of_the_space_is_used_and_of_another_refused_by_its_place(work: Workplace) -> None:
    with pytest.raises(EmbSpaceMismatch, match=r"memories\[0\]\.vector\.emb_space"):
        work.learn(with_vector(note("one"), QueryVector(values=unit_vector(7), emb_space="other")))
    short = QueryVector(values=np.ones(1, np.float32), emb_space=SPACE.id)
    with pytest.raises(InvalidRequest, match=r"memories\[0\]\.vector\.values: has 1 components; the space has 16"):
        work.learn(with_vector(note("one"), short))
    assert work.store.project("p") is None
    work.learn(with_vector(note("one", "a"), QueryVector(values=unit_vector(7), emb_space=SPACE.id))).result()
    assert work.embedder.embedded == []
    assert ask(work.store, seed=7).cosine == pytest.approx([1.0], abs=1e-3)


def test_a_memory_from_the_future_is_refused_with_the_limit(work: Workplace) -> None:
    now = work.clock.now()
    work.teach(replace(note("one"), create_time=now + 59))
    with pytest.raises(InvalidRequest, match=r"memories\[0\]\.create_time: is 61 s in the future; the limit is 60 s"):
        work.teach(replace(note("one"), create_time=now + 61))


def test_a_repeated_request_answers_the_same_even_when_its_memories_are_gone(work: Workplace) -> None:
    first = work.teach(note("one"), request_id="r")
    _remove(work, first.results[0].id)
    assert work.teach(note("one"), request_id="r") == first
    assert all_ids(work) == []
    with pytest.raises(RequestIdReused):
        work.teach(note("two"), request_id="r", fingerprint=b"g")


def test_many_callers_of_one_text_store_it_once(work: Workplace) -> None:
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda _: work.teach(note("the same")).results[0], range(16)))
    assert len({result.id for result in results}) == 1
    assert len(all_ids(work)) == 1


def _query(vector: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> GroupQuery:
    return GroupQuery(name="main", filter=Filter(), vector=vector, pool=1)


def _remove(work: Workplace, *memory_ids: str) -> None:
    work.store.write("p", delete_request(memory_ids)).result(30)


@pytest.mark.parametrize("text", ["Yesterday I swam a mile", "昨天 deploy 了一次", "今早跑了五公里"])
def test_an_event_is_told_once_a_day(work: Workplace, text: str) -> None:
    """Told again on another day it is another event; told again on that day it is not."""
    told = []
    for _ in range(3):
        told += [*statuses(work, note(text)), *statuses(work, note(text))]
        work.clock.move(86_400)
    assert told == [CREATED, DUPLICATE] * 3
    assert len(all_ids(work)) == 3
    assert statuses(work, note("I swam a mile")) == [CREATED]
    work.clock.move(86_400)
    assert statuses(work, note("I swam a mile")) == [DUPLICATE]


@pytest.mark.parametrize(("zone", "again"), [("", CREATED), ("Asia/Shanghai", DUPLICATE)])
def test_a_day_ends_at_midnight_of_the_projects_zone(work: Workplace, zone: str, again: LearnStatus) -> None:
    """From 06:00 to 10:00 in Shanghai a day of UTC begins."""
    lived_in = ProjectSettings(times=TimeSettings(zone=zone or None))
    work.store.write("p", write_request(lambda unit: unit.set_settings(lived_in))).result(30)
    work.clock.move(-work.clock.now() % 86_400 - 2 * 3600)
    assert statuses(work, note("昨天 deploy 了一次")) == [CREATED]
    work.clock.move(4 * 3600)
    assert statuses(work, note("昨天 deploy 了一次")) == [again]


def test_a_given_time_says_by_itself_what_is_told_twice(work: Workplace) -> None:
    given = replace(note("Yesterday I swam a mile"), create_time=work.clock.now())
    assert statuses(work, given) == [CREATED]
    work.clock.move(86_400)
    assert statuses(work, given) == [DUPLICATE]
