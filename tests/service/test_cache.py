"""The recall cache, through the socket."""

from __future__ import annotations

import grpc
import pytest

from tests.service.calls import ask, contents, failure, learn, render, stages
from tests.service.inputs import note
from tests.service.running import Stubs

pytestmark = pytest.mark.timed

TEXT = "when does the 火车 leave"


def test_an_equal_recall_is_answered_from_the_cache(service: Stubs, project: str) -> None:
    """S0-31, S0-32, S2-03."""
    learn(service, project, note("the 火车 leaves at nine", id="a"))
    fresh, cached = (ask(service, project, TEXT) for _ in range(2))
    assert (fresh.receipt.cached, cached.receipt.cached) == (False, True)
    assert stages(cached.receipt) == ["cache"]
    assert [(hit.memory, hit.score) for hit in cached.hits] == [(hit.memory, hit.score) for hit in fresh.hits]
    assert (cached.seq, cached.content_seq) == (fresh.seq, fresh.content_seq)


def test_a_memory_learnt_within_five_minutes_of_an_equal_recall_is_found(service: Stubs, project: str) -> None:
    """1.1-1, S4-50."""
    learn(service, project, note("the 火车 leaves at nine"))
    for number in range(5):
        ask(service, project, TEXT)
        learn(service, project, note(f"now the 火车 {number} leaves at {number}"))
        answer = ask(service, project, TEXT)
        assert not answer.receipt.cached
        assert f"now the 火车 {number} leaves at {number}" in contents(answer)


def test_a_deleted_memory_is_gone_from_the_next_equal_recall(service: Stubs, project: str) -> None:
    """X2."""
    learn(service, project, note("the 火车 leaves at nine", id="a"))
    assert contents(ask(service, project, TEXT))
    assert contents(ask(service, project, TEXT))
    service.memory.DeleteMemories(project=project, ids=["a"])
    assert contents(ask(service, project, TEXT)) == []


def test_a_seq_that_is_not_reached_is_an_error_beside_a_kept_answer(service: Stubs, project: str) -> None:
    seq = learn(service, project, note("the 火车 leaves at nine")).seq
    ask(service, project, TEXT)
    assert ask(service, project, TEXT, min_seq=seq).receipt.cached
    refused = failure(ask, service, project, TEXT, min_seq=seq + 1)
    assert (refused.code, refused.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "SEQ_NOT_REACHED")


def test_render_and_search_share_the_cache(service: Stubs, project: str) -> None:
    """S1-20: fewer repeated searches."""
    learn(service, project, note("the 火车 leaves at nine"))
    asked = ask(service, project, TEXT)
    rendered = render(service, project, TEXT)
    assert (asked.receipt.cached, rendered.receipt.cached) == (False, True)
    assert "nine" in rendered.text
    searches = [service.context.Search(project=project, query_text=TEXT) for _ in range(2)]
    assert [search.receipt.cached for search in searches] == [False, True]
    assert searches[0].text == searches[1].text


def test_two_projects_never_share_an_answer(service: Stubs, project: str) -> None:
    """X2, S0-06."""
    other = f"{project}-other"
    learn(service, project, note("the 火车 leaves at nine", id="a"))
    learn(service, other, note("the 火车 leaves at ten", id="a"))
    for _ in range(2):
        assert contents(ask(service, project, TEXT)) == ["the 火车 leaves at nine"]
        assert contents(ask(service, other, TEXT)) == ["the 火车 leaves at ten"]
