"""Texts that hold a string."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.memory import Memory, Payload
from hummock.store.search.filters import SubstringScan
from hummock.store.tables import record_codec
from tests.strategies import Entry, domain, fragment, record


def records(entry: Entry) -> tuple[bytes, bytes]:
    memory = entry.memory()
    payload = memory.payload or Payload()
    return record_codec.encode_memory(memory, b"", -1), record_codec.encode(payload)


def decoded(stored: tuple[bytes, bytes]) -> Memory:
    return record_codec.memory_of(*stored)


def scan(entries: list[Entry], *wanted: str, byte_limit: int = 1 << 20) -> SubstringScan:
    stored = [records(entry) for entry in entries]
    return SubstringScan(wanted, lambda doc: stored[doc], decoded, byte_limit)


ENTRIES = [
    Entry(id="0", words=("每月十五号还款",)),
    Entry(id="1", words=("RepaymentService", "calculates")),
    record("2", "先本后息是什么", "the interest comes last"),
    fragment("3", "src/loan/Plan.java"),
    domain("4", ("还款方式", "repayment modes")),
    Entry(id="5", words=("nothing",), title=("Tide-Core",), tags=("木芯",)),
]


@pytest.mark.parametrize(
    ("wanted", "held"),
    [
        ("款", [0, 4]),
        ("paymentserv", [1]),
        ("息", [2]),
        ("INTEREST COMES", [2]),
        ("an.jav", [3]),
        ("ment mod", [4]),
        ("de-core", [5]),
        ("芯", [5]),
        ("absent", []),
    ],
)
def test_any_part_of_the_text_is_found_whatever_its_case(wanted: str, held: list[int]) -> None:
    """S0-11, 1.1-13."""
    assert scan(ENTRIES, wanted).first(range(len(ENTRIES)), 10) == held


def test_what_is_stored_but_not_searched_is_not_found() -> None:
    """The raw text, the files' language and the feeling are no part of the text."""
    for wanted in ("raw", "calm", "java5f", "older"):
        assert scan(ENTRIES[:3], wanted).first(range(3), 10) == []


def test_any_keyword_is_enough_and_each_has_its_bit() -> None:
    """S0-11: ANY keyword."""
    looked = scan(ENTRIES, "interest", "还款", "本")
    assert looked.first(range(len(ENTRIES)), 10) == [0, 2, 4]
    assert [looked.held(doc) for doc in range(len(ENTRIES))] == [0b010, 0, 0b101, 0, 0b010, 0]


def test_documents_are_read_in_order_and_no_more_than_needed() -> None:
    read: list[int] = []
    stored = [records(entry) for entry in ENTRIES]

    def read_one(doc: int) -> tuple[bytes, bytes]:
        read.append(doc)
        return stored[doc]

    looked = SubstringScan(["还款"], read_one, decoded, 1 << 20)
    assert looked.first([5, 4, 3, 2, 1, 0], 1) == [4]
    assert read == [5, 4]
    assert not looked.is_cut


def test_a_scan_stops_at_its_limit_and_says_so() -> None:
    size = sum(map(len, records(ENTRIES[0])))
    looked = scan(ENTRIES, "款", byte_limit=size)
    assert looked.first([0], 10) == [0]
    assert not looked.is_cut
    assert looked.first([0, 4], 10) == [0]
    assert looked.is_cut
    assert looked.held(4) == 0


def test_what_was_removed_since_holds_nothing() -> None:
    assert SubstringScan(["x"], lambda _: (b"", b""), decoded, 10).held(1) == 0


@given(st.text(min_size=1, max_size=30), st.data())
def test_every_stretch_of_a_text_is_found_in_it(text: str, data: st.DataObject) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    start = data.draw(st.integers(0, len(text) - 1))
    wanted = text[start : data.draw(st.integers(start + 1, len(text)))]
    assert scan([Entry(id="x", words=(text,))], wanted).held(0) == 1
