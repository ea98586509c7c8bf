"""Tokens of pages and of prompt prefixes: what somebody has made up is the caller's error, not one of the service's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.errors import InvalidRequest
from hummock.core.render import Locale, PrefixState, SeenMemory
from hummock.rpc.tokens import page_number, page_position, page_token, prefix_state, prefix_token
from hummock_client.v1 import memory_pb2
from hummock_client.v1.memory_service_pb2 import ListMemoriesRequest
from hummock_client.v1.session_service_pb2 import ListSessionsRequest

MEMORIES, SESSIONS = ListMemoriesRequest(project="p"), ListSessionsRequest(project="p")


@given(st.integers(1, 2**63 - 1))
def test_a_number_comes_back(number: int) -> None:
    assert page_number(ListSessionsRequest(project="p", page_size=7), page_token(SESSIONS, str(number))) == number


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_a_page_token_leads_back_to_its_position(position: str) -> None:
    token = page_token(ListMemoriesRequest(project="p", page_size=3), position)
    assert page_position(ListMemoriesRequest(project="p", page_size=9), token) == position


def test_without_a_token_a_list_begins() -> None:
    assert page_number(SESSIONS, "") is None
    assert page_position(MEMORIES, "") == ""


@pytest.mark.parametrize("position", ["x", "0", "-1", "+1", " 1", "1_0", "１", str(2**63), "9" * 200])
def test_a_position_that_no_page_ends_at_is_refused(position: str) -> None:
    with pytest.raises(InvalidRequest, match="page_token"):
        page_number(SESSIONS, page_token(SESSIONS, position))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: token[:-1] + "9",
        lambda token: token + "0",
        lambda token: "0" + token[1:],
        lambda token: token[:32],
        lambda token: "x",
    ],
)
def test_a_page_token_that_was_changed_is_refused(spoil: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        page_position(MEMORIES, spoil(page_token(MEMORIES, "17")))
    assert refused.value.field == "page_token"


@pytest.mark.parametrize(
    "other",
    [
        ListMemoriesRequest(project="q"),
        ListMemoriesRequest(project="p", filter=memory_pb2.MemoryFilter(tags=["a"])),
        ListMemoriesRequest(project="p", view=memory_pb2.MEMORY_VIEW_FULL),
    ],
)
def test_a_page_token_of_another_request_is_refused(other: ListMemoriesRequest) -> None:
    for position_of in (page_position, page_number):
        with pytest.raises(InvalidRequest, match="does not belong") as refused:
            position_of(other, page_token(MEMORIES, "17"))
        assert refused.value.field == "page_token"


SEEN = SeenMemory(memory_id="世界.图鉴", turns=2, last_turn=3)
STATE = PrefixState(turn=3, base_turn=1, as_of=1.5, locale=Locale.ZH, prefix_ids=("世界.图鉴",), seen=(SEEN,))


def test_a_token_gives_back_the_state_that_it_was_made_of() -> None:
    """1.1-11."""
    for state in (STATE, replace(STATE, prefix_ids=(), seen=()), replace(STATE, seen=(SEEN,) * 128)):
        assert prefix_state("p", prefix_token("p", state)) == state
    assert prefix_state("p", b"") is None


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("prefix_ids", {"prefix_ids": ("a",) * 129}),
        ("prefix_ids", {"prefix_ids": ("长" * 86,)}),
        ("seen", {"seen": (SEEN,) * 129}),
        ("seen", {"seen": (replace(SEEN, turns=-1),)}),
        ("seen", {"seen": (replace(SEEN, last_turn=1 << 31),)}),
        ("seen", {"seen": (replace(SEEN, memory_id="a" * 257),)}),
        ("turn", {"turn": 1 << 31}),
        ("turn", {"turn": -1}),
        ("turn", {"base_turn": -1}),
        ("all_tokens", {"prefix_tokens": -1}),
        ("all_tokens", {"all_tokens": 1 << 63}),
        ("as_of", {"as_of": float("nan")}),
        ("as_of", {"as_of": float("-inf")}),
    ],
)
def test_a_token_with_a_number_that_no_render_writes_is_refused(field: str, changes: dict[str, Any]) -> None:
    """1.1-11: as the caller's mistake, not as a failure of the service."""
    with pytest.raises(InvalidRequest) as refused:
        prefix_state("p", prefix_token("p", replace(STATE, **changes)))
    assert refused.value.field == f"prefix_token.{field}"


def test_a_token_is_bound_to_the_whole_name_of_its_project() -> None:
    """S0-06: also where names are long and begin alike."""
    token = prefix_token("项目" * 20 + "a", STATE)
    assert prefix_state("项目" * 20 + "a", token) == STATE
    for other in ("项目" * 20 + "b", "项目" * 20, "项" * 21, ""):
        with pytest.raises(InvalidRequest, match="prefix_token"):
            prefix_state(other, token)
