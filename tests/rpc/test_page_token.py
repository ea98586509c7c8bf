"""Tokens of pages: each belongs to its request, and what somebody has made up is the caller's error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.core.errors import InvalidRequest
from hummock.rpc.tokens import page_number, page_token
from hummock_client.v1 import session_service_pb2 as pb


def request(project: str = "p", page_size: int = 0) -> pb.ListSessionsRequest:
    return pb.ListSessionsRequest(project=project, page_size=page_size)


@given(st.integers(1, 2**63 - 1))
def test_a_number_comes_back(number: int) -> None:
    token = page_token(request(), str(number))
    assert page_number(request(page_size=7), token) == number


def test_without_a_token_a_list_begins() -> None:
    assert page_number(request(), "") is None


def test_a_token_of_another_request_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="does not belong"):
        page_number(request("q"), page_token(request("p"), "3"))


@pytest.mark.parametrize("position", ["x", "0", "-1", "+1", " 1", "1_0", "１", str(2**63), "9" * 200])
def test_a_position_that_no_page_ends_at_is_refused(position: str) -> None:
    with pytest.raises(InvalidRequest, match="page_token"):
        page_number(request(), page_token(request(), position))
