"""Cost of finding the neighbours of a memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from hummock.core.memory import CodeFragment, MemoryKind, Payload
from hummock.store.tables import record_codec
from tests.ports.asking import ask, put
from tests.snapshots import at
from tests.store.opening import opened
from tests.strategies import Entry


class Decodes:
    """Counts payloads that are decoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._decode = record_codec.decode_payload
        monkeypatch.setattr(record_codec, "decode_payload", self)

    def __call__(self, value: bytes) -> Payload:
        self.count += 1
        return self._decode(value)


def piece(number: int) -> Entry:
    detail = CodeFragment(path="src/A.java", start_line=10 * number, end_line=10 * number + 9)
    return Entry(id=f"f{number}", words=(f"method{number}",), kind=MemoryKind.CODE_FRAGMENT, detail=detail)


def test_a_file_is_looked_through_once_however_many_of_its_fragments_are_hits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as store:
        put(store, "p", *map(piece, range(40)))
        docs = ask(store, "p", seed=1, pool=100).rows["doc"].tolist()
        decodes = Decodes(monkeypatch)
        found = at(store, "p").neighbours(docs, 2, full=False, most_bytes=1 << 20)
        assert len(docs) == len(found) == 40
        assert decodes.count <= 2 * len(docs)


def test_a_turn_beside_several_is_decoded_once_and_one_without_room_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as store:
        put(store, "p", *(Entry(id=f"t{number}", session_id="s") for number in range(20)))
        docs = ask(store, "p", seed=1, pool=100).rows["doc"].tolist()
        decodes = Decodes(monkeypatch)
        found = at(store, "p").neighbours(docs, 10, full=True, most_bytes=100)
        assert all(each.is_cut and not each.before and not each.after for each in found)
        assert decodes.count == 0
        found = at(store, "p").neighbours(docs, 10, full=True, most_bytes=1 << 20)
        assert sum(len(each.before) + len(each.after) for each in found) > 200
        assert decodes.count == 20


def test_neighbours_come_with_the_hashes_of_their_rows(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        told = [Entry(id=f"t{number}", session_id="s", words=(f"word{number}",)) for number in range(5)]
        put(store, "p", *told)
        found = ask(store, "p", seed=1, pool=100)
        stored = dict(zip(found.rows["doc"].tolist(), found.rows["text_hash"].tolist(), strict=True))
        ids = {
            doc: memory.id
            for doc, memory in zip(stored, store.load("p", list(stored), full=False), strict=True)
            if memory
        }
        for each in at(store, "p").neighbours(list(stored), 10, full=False, most_bytes=1 << 20):
            beside = {memory.id for memory in (*each.before, *each.after)}
            assert each.text_hashes == {ids[doc]: text for doc, text in stored.items() if ids[doc] in beside}
