"""Directories whose terms an earlier analyzer made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import lmdb
import pytest

from hummock.core.memory import (
    CodeFragment,
    DomainKnowledge,
    Draft,
    LearnCommand,
    Lesson,
    MemoryIndex,
    MemoryKind,
    Payload,
    Terms,
)
from hummock.memories.learn import Learn
from hummock.memories.preparation import Preparation
from hummock.ports.store import Alike
from hummock.store import WritableStore, recorded_model
from hummock.store.errors import AnalyzerTooNew, DirectoryUnusable, MemoryDamaged
from hummock.store.tables import lookups, row_codec
from hummock.store.write import reanalyse
from hummock.text import terms
from hummock.text.analyzer import ANALYZER_VERSION
from hummock.text.questions import Trait
from hummock.text.terms import Piece
from hummock.text.tokens import EstimatedTokens
from tests.fakes import FakeClock
from tests.store.aging import FIRST_ANALYZER, made_old
from tests.store.opening import MIB, opened
from tests.strategies import learned_request
from tests.workplace import WordEmbedder

PROJECTS = ("p", "还款")
Content = dict[str, dict[bytes, bytes]]


def drafts() -> list[Draft]:
    """Every way in which titles and texts come: given, derived, code, names, several languages, nothing to analyse."""
    code = CodeFragment(path="src/Max.py", start_line=1, end_line=2, language="python", symbol="__str__")
    knowledge = DomainKnowledge(domain="Repayment", aliases=("还款",), summary="how loans end", key_files=("a.py",))
    titled = Payload(content="Max has a title")
    texts = ("Max holds __str__", "先本后息 of 12 loans", "…", "e\u0323 Ｍax ß", "two\nlines")
    return [
        Draft(id="code", kind=MemoryKind.CODE_FRAGMENT, payload=Payload(content="def __str__(): ...", detail=code)),
        Draft(id="domain", kind=MemoryKind.DOMAIN_KNOWLEDGE, payload=Payload(content="", detail=knowledge)),
        Draft(id="titled", kind=MemoryKind.NOTE, index=MemoryIndex(title="A Title", tags=("Tag_1",)), payload=titled),
        Draft(
            id="turn", kind=MemoryKind.NOTE, payload=Payload(content="昨天去哪了？"), session_id="s", speaker="Mia Wong"
        ),
        Draft(kind=MemoryKind.NOTE, id="new", payload=Payload(content="Yesterday Max was old"), supersedes=("titled",)),
        *(Draft(kind=MemoryKind.NOTE, id=f"n{at}", payload=Payload(content=text)) for at, text in enumerate(texts)),
    ]


def filled(directory: Path, given: Sequence[Draft] = ()) -> None:
    with opened(directory) as store:
        embedder = WordEmbedder()
        learn = Learn(
            store, embedder, Preparation(embedder, EstimatedTokens(), lambda: "made"), FakeClock(), lambda _: None
        )
        for project in PROJECTS:
            lessons = tuple(Lesson(draft=draft) for draft in given or drafts())
            learn(LearnCommand(project=project, request_id="", fingerprint=b"f", lessons=lessons))


def content(directory: Path) -> Content:
    """All tables, with the forward lists in place of the numbers of their terms spelt."""
    with lmdb.open(str(directory), max_dbs=64) as env, env.begin() as txn:
        names = [bytes(key) for key, _ in txn.cursor()]
    found: Content = {}
    with lmdb.open(str(directory), max_dbs=64) as env:
        for name in names:
            table = env.open_db(name)
            with env.begin() as txn:
                found[name.decode()] = {bytes(key): bytes(value) for key, value in txn.cursor(table)}
    return found


def spelt(found: Content) -> dict[bytes, dict[bytes, int]]:
    """The terms of each memory with their counts."""
    names = {(key[:4], value): key[4:] for key, value in found["term"].items()}
    lists = {}
    for key, value in found["terms"].items():
        half = len(value) // 2
        numbers = [value[at : at + 4] for at in range(0, half, 4)]
        counts = [int.from_bytes(value[half + at : half + at + 4], "little") for at in range(0, half, 4)]
        lists[key] = {names[key[:4], number]: count for number, count in zip(numbers, counts, strict=True)}
    return lists


def test_all_is_as_if_this_analyzer_had_made_it(tmp_path: Path) -> None:
    filled(tmp_path)
    fresh = content(tmp_path)
    made_old(tmp_path)
    assert content(tmp_path)["column"] != fresh["column"]
    lines: list[str] = []
    with opened(tmp_path, say=lines.append):
        pass
    again = content(tmp_path)
    assert spelt(again) == spelt(fresh)
    assert {name: table for name, table in again.items() if name != "terms"} == {
        name: table for name, table in fresh.items() if name != "terms"
    }
    assert lines[0] == f"the words of up to 20 memories are made anew, for analyzer {ANALYZER_VERSION}"
    assert lines[-1] == "the words of 20 memories are made anew"


def told_changes(store: WritableStore) -> int:
    page = store.read("p", lambda snapshot: snapshot.changes(0, 10, Alike(least_cosine=0, least_age_s=0, count=1)))
    return len(page.changes)


def test_what_tells_a_change_is_seen_in_notes_of_an_earlier_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traits are made with the words: a note whose words of change were not known proposes nothing until then."""
    note = Draft(kind=MemoryKind.NOTE, payload=Payload(content="We no longer park behind the mill"))
    with monkeypatch.context() as patch:
        patch.setattr(row_codec, "traits_of", lambda text: Trait(0))
        for module in (reanalyse, lookups):
            patch.setattr(module, "ANALYZER_VERSION", ANALYZER_VERSION - 1)
        filled(tmp_path, [note])
        with opened(tmp_path) as store:
            assert told_changes(store) == 0
    with opened(tmp_path) as store:
        assert told_changes(store) == 1


def test_a_directory_of_this_analyzer_is_left_alone(tmp_path: Path) -> None:
    filled(tmp_path)
    before = content(tmp_path)
    lines: list[str] = []
    with opened(tmp_path, say=lines.append):
        pass
    assert (content(tmp_path), lines) == (before, [])


def test_a_new_directory_has_nothing_to_make_anew(tmp_path: Path) -> None:
    lines: list[str] = []
    with opened(tmp_path, say=lines.append):
        pass
    assert lines == []


@pytest.mark.parametrize("cuts", [1, 2, 5])
def test_a_start_that_is_cut_short_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: int
) -> None:
    """Finished work is kept, nothing is made twice, and no earlier version opens a half-finished store."""
    filled(tmp_path)
    fresh = content(tmp_path)
    made_old(tmp_path)
    monkeypatch.setattr(reanalyse, "_MEMORIES_AT_ONCE", 3)
    made: list[int] = []

    def failing(memories: Sequence[Sequence[Piece]]) -> list[Terms]:
        if len(made) == cuts:
            raise OSError("power cut")
        made.append(len(memories))
        return terms.terms_of(memories)

    with monkeypatch.context() as patch:
        patch.setattr(reanalyse, "terms_of", failing)
        with pytest.raises(DirectoryUnusable, match="power cut"), opened(tmp_path):
            pass
    with monkeypatch.context() as patch:
        patch.setattr("hummock.store.tables.lookups.ANALYZER_VERSION", FIRST_ANALYZER)
        with pytest.raises(AnalyzerTooNew):
            recorded_model(tmp_path)
    lines: list[str] = []
    with opened(tmp_path, say=lines.append):
        pass
    assert lines[-1] == f"the words of {20 - sum(made)} memories are made anew"
    assert spelt(content(tmp_path)) == spelt(fresh)
    assert content(tmp_path)["column"] == fresh["column"]
    with opened(tmp_path, say=lines.append):
        pass
    assert len(lines) == 2


def test_large_memories_are_made_anew_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path)
    fresh = content(tmp_path)
    made_old(tmp_path)
    monkeypatch.setattr(reanalyse, "_BYTES_AT_ONCE", 1)
    made: list[int] = []

    def counting(memories: Sequence[Sequence[Piece]]) -> list[Terms]:
        made.append(len(memories))
        return terms.terms_of(memories)

    monkeypatch.setattr(reanalyse, "terms_of", counting)
    with opened(tmp_path):
        pass
    assert made == [1] * 20
    assert spelt(content(tmp_path)) == spelt(fresh)


def test_a_memory_is_still_found_by_what_was_learnt_of_it(tmp_path: Path) -> None:
    filled(tmp_path)
    with opened(tmp_path) as store:
        for memory_id in ("n0", "domain"):
            store.write("p", learned_request(memory_id, "RepaymentPlan", "硬木头")).result()
    fresh = spelt(content(tmp_path))
    assert sum(any(count >> 24 for count in counts.values()) for counts in fresh.values()) == 2
    made_old(tmp_path)
    with opened(tmp_path):
        pass
    assert spelt(content(tmp_path)) == fresh


def test_a_record_that_cannot_be_read_keeps_nobody_from_the_others(tmp_path: Path) -> None:
    filled(tmp_path)
    made_old(tmp_path)
    with lmdb.open(str(tmp_path), max_dbs=64, map_size=256 * MIB) as env, env.begin(write=True) as txn:
        payload = env.open_db(b"payload", txn=txn)
        with txn.cursor(payload) as cursor:
            cursor.first()
            cursor.put(cursor.key(), b"\xc1")
    with opened(tmp_path) as store:
        assert [one is not None for one in store.get("p", ["domain", "new"], 0, full=True)] == [True, True]
        with pytest.raises(MemoryDamaged):
            store.get("p", ["code"], 0, full=True)
