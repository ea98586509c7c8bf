"""Recalls of one shape are checked and parsed by what the first of them left behind, and answered as if alone."""

from __future__ import annotations

from typing import Any

import protovalidate
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.errors import InvalidRequest
from hummock.core.recall import MAX_QUERY_CHARACTERS
from hummock.rpc.recall_messages import recall_query
from hummock.rpc.validation import LARGEST_KEPT_BYTES, PER_CALL, RulesBroken, check, shape_of
from hummock_client.v1 import memory_pb2
from hummock_client.v1.recall_pb2 import PRESET_CHAT, Intent, RecallRequest, RecallTuning

VALIDATOR = protovalidate.Validator()
VECTOR = memory_pb2.Embedding(values=b"\0\0\x80\x3f" * 4)


def request(**more: Any) -> RecallRequest:
    fields: dict[str, Any] = {
        "project": "p",
        "query_text": "harbour",
        "preset": PRESET_CHAT,
        "tuning": RecallTuning(top_k=3),
    }
    return RecallRequest(**{**fields, **more})


def broken(sent: RecallRequest) -> str:
    with pytest.raises(RulesBroken) as caught:
        check(sent)
    return str(caught.value)


@given(
    project=st.text(min_size=1, max_size=256),
    query_text=st.text(min_size=1) | st.just("字" * MAX_QUERY_CHARACTERS),
    session_id=st.text(max_size=64),
    values=st.binary(min_size=4) | st.just(b"1" * 65536),
    emb_space=st.text(max_size=64),
    as_of=st.builds(Timestamp, seconds=st.integers(-(2**63), 2**63 - 1)),
    min_seq=st.integers(0, 2**64 - 1),
)
def test_what_differs_from_call_to_call_has_rules_of_length_alone(
    values: bytes, emb_space: str, **fields: object
) -> None:
    """Other rules would not be seen where a shape is known."""
    sent = request(query_vector=memory_pb2.Embedding(values=values, emb_space=emb_space), **fields)
    assert {"query_vector", *fields} == {*PER_CALL}
    check(sent)
    assert not VALIDATOR.collect_violations(sent)


@pytest.mark.parametrize(
    "faults",
    [
        {"project": ""},
        {"project": "p" * 257},
        {"query_text": ""},
        {"query_text": "字" * 8193},
        {"session_id": "字" * 86},
        {"query_vector": memory_pb2.Embedding()},
        {"query_vector": memory_pb2.Embedding(values=VECTOR.values, emb_space="s" * 65)},
        {"context_window": 11},
        {"tuning": RecallTuning(top_k=0)},
        {"project": "", "preset": 99},
    ],
    ids=str,
)
def test_a_known_shape_breaks_the_rules_that_a_new_one_breaks(faults: dict[str, object]) -> None:
    check(request())
    check(request(query_vector=VECTOR, session_id="字" * 85))
    sent = request(**faults)
    first, again = broken(sent), broken(sent)
    assert first == again
    places = [one.proto.field for one in VALIDATOR.collect_violations(sent)]
    assert all(place is not None and place.elements[0].field_name in first for place in places)


def test_a_shape_is_all_but_what_differs_from_call_to_call() -> None:
    other = request(
        project="q", query_text="码头", query_vector=VECTOR, session_id="s", min_seq=3, as_of=Timestamp(seconds=9)
    )
    assert shape_of(other) == shape_of(request())
    for field, value in (("context_window", 1), ("late_interaction", False), ("view", 1), ("time_zone", "+08:00")):
        assert shape_of(request(**{field: value})) != shape_of(request())


def test_a_query_takes_nothing_from_an_earlier_one_of_its_shape() -> None:
    first = recall_query(
        request(project="q", query_text="码头", query_vector=VECTOR, session_id="s", as_of=Timestamp(seconds=9)), 5.0
    )
    assert (first.project, first.text, first.session_id, first.as_of, first.until_s) == ("q", "码头", "s", 9.0, 5.0)
    second = recall_query(request(min_seq=2))
    assert (second.project, second.text, second.session_id, second.min_seq) == ("p", "harbour", "", 2)
    assert (second.vector, second.as_of, second.until_s, second.top_k) == (None, None, None, 3)


@pytest.mark.parametrize(
    ("fault", "field"),
    [
        ({"time_zone": "Nowhere/Land"}, "recall.time_zone"),
        ({"tuning": RecallTuning(window_turns=2)}, "recall.tuning.window_turns"),
        ({"project": "a\u202eb"}, "recall.project"),
        ({"filter": memory_pb2.MemoryFilter(tags=[" "])}, "recall.filter.tags[0]"),
    ],
)
def test_a_fault_is_told_by_its_path_each_time(fault: dict[str, object], field: str) -> None:
    for _ in range(2):
        with pytest.raises(InvalidRequest) as caught:
            recall_query(request(**fault), prefix="recall.")
        assert (caught.value.field, str(caught.value).partition(": ")[0]) == (field, field)


def test_times_of_an_intent_are_those_of_its_request() -> None:
    asked = request(intent=Intent(domains=["repay"]))
    assert recall_query(asked).intent == recall_query(asked, 1.0).intent != recall_query(request()).intent


def test_a_shape_too_large_to_be_kept_is_read_as_others_are() -> None:
    ids = [f"memory-{number}" for number in range(LARGEST_KEPT_BYTES // 8)]
    sent = request(filter=memory_pb2.MemoryFilter(excluded_ids=ids), query_vector=VECTOR)
    check(sent)
    assert recall_query(sent).filter.excluded_ids == tuple(ids)
