"""recall, render and search against a service with canned answers."""

from __future__ import annotations

from datetime import datetime

import pytest
from google.protobuf.json_format import Parse, ParseDict
from google.protobuf.message import Message
from rich.cells import cell_len

from hummock_client.time_zone import own_clock, own_zone
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import explain_pb2, recall_pb2
from tests.cli.conftest import Run
from tests.cli.fake_service import EXPLAINED, RECALLED, RENDERED, SEARCHED, FakeService

pytestmark = pytest.mark.long


def test_recall_shows_scores_kind_title_reason_and_age(run: Run) -> None:
    result = run("recall", "增加先本后息的还款方式", "--preset", "code")
    assert result.exit_code == 0
    for expected in ("0.83", "0.61", "4.2", "note", "还款方式", "vector+keyword", "another", "12 d"):
        assert expected in result.stdout
    assert "RepaymentService.java:7" in result.stdout
    assert "3.1 ms: embed 2.1 ms · gather 0.5 ms · 300 searched" in result.stderr
    assert "degraded: vector: the embedder failed" in result.stderr


@pytest.mark.parametrize("command", [("recall", "x"), ("render", "x"), ("search", "x"), ("explain", "x", "--id", "m1")])
def test_a_question_may_be_of_a_time(run: Run, fake: FakeService, command: tuple[str, ...]) -> None:
    assert run(*command, "--since", "2023-05-02", "--until", "2023-05-03").exit_code == 0
    request = fake.asked[0]
    where = request.filter if isinstance(request, context_pb.SearchRequest) else _recall_of(request).filter
    assert where.event_after.ToJsonString() == "2023-05-02T00:00:00Z"
    assert where.event_before.ToJsonString() == "2023-05-04T00:00:00Z"


def test_days_and_questions_are_of_the_callers_zone(
    run: Run, fake: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4-31."""
    monkeypatch.setenv("HUMMOCK_TIME_ZONE", "Asia/Shanghai")
    run("recall", "x", "--since", "2023-05-02", "--until", "2023-05-03")
    request = _recall_of(fake.asked[0])
    assert request.filter.event_after.ToJsonString() == "2023-05-01T16:00:00Z"
    assert request.filter.event_before.ToJsonString() == "2023-05-03T16:00:00Z"
    assert request.time_zone == "Asia/Shanghai"
    monkeypatch.setenv("HUMMOCK_TIME_ZONE", "Asia/Nowhere")
    refused = run("recall", "x", "--since", "2023-05-02")
    assert (refused.exit_code, "Asia/Shanghai" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("named", "machine", "zone"),
    [
        ("Asia/Tokyo", "Europe/Berlin", "Asia/Tokyo"),
        ("", "Europe/Berlin", "Europe/Berlin"),
        ("", ":Asia/Kolkata", "Asia/Kolkata"),
        ("", "Etc/UTC", ""),
        ("", "UTC", ""),
        ("+05:45", "UTC", "+05:45"),
    ],
)
def test_a_machine_on_utc_says_nothing_of_where_somebody_lives(
    monkeypatch: pytest.MonkeyPatch, named: str, machine: str, zone: str
) -> None:
    monkeypatch.setenv("HUMMOCK_TIME_ZONE", named)
    monkeypatch.setenv("TZ", machine)
    assert own_zone() == zone
    assert own_clock().utcoffset(None if zone.startswith("+") else datetime(2026, 1, 1)) is not None


def _recall_of(request: Message) -> recall_pb2.RecallRequest:
    if isinstance(request, context_pb.RenderRequest | explain_pb2.ExplainRequest):
        return request.recall
    assert isinstance(request, recall_pb2.RecallRequest)
    return request


def test_a_piped_table_fits_80_columns_and_what_is_no_time_is_refused(run: Run) -> None:
    result = run("recall", "x")
    assert "\x1b" not in result.output
    assert max(cell_len(line) for line in result.stdout.splitlines()) <= 80
    result = run("recall", "x", "--since", "last week")
    assert result.exit_code == 2
    assert "2023-05-02" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("recall", "x"), ParseDict(RECALLED, recall_pb2.RecallResponse())),
        (("render", "x"), ParseDict(RENDERED, context_pb.RenderResponse())),
        (("search", "x"), ParseDict(SEARCHED, context_pb.SearchResponse())),
        (("explain", "x", "--id", "m1"), ParseDict(EXPLAINED, explain_pb2.ExplainResponse())),
    ],
)
def test_json_is_the_reply_in_protobufs_mapping(run: Run, arguments: tuple[str, ...], expected: Message) -> None:
    result = run(*arguments, "--json")
    assert Parse(result.stdout, type(expected)()) == expected
    assert "\\u8fd8" not in result.stdout


def test_an_explanation_and_a_search_are_shown(run: Run) -> None:
    result = run("explain", "增加先本后息", "--id", "m1")
    assert result.stdout.splitlines() == [EXPLAINED["sentence"], "tuning.top_k = 17", "filter.tags cleared"]
    assert "by meaning 3, by words - of 300 · cosine 0.500" in result.stderr
    assert "create 创建" in run("search", "create").stdout


def test_rendered_text_goes_to_stdout_and_marks_of_memories_beside_it(run: Run) -> None:
    """S2-26."""
    result = run("render", "x", "--form", "waterfall", "--budget", "100", "--locale", "zh")
    assert result.stdout == f"{RENDERED['text']}\n"
    assert "full" in result.stderr
    assert "best match" in result.stderr
    assert "missing: gone" in result.stderr
    assert "9/100 tokens; rendered in 0.4 ms" in result.stderr
    assert "(best match, unverified, instruction like)" in run("render", "x").stderr
    assert run("render").exit_code == 2
    assert run("render", "x", "--id", "a").exit_code == 2


def test_a_wide_terminal_shows_ids_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "世界.图鉴" not in run("recall", "x").stdout
    monkeypatch.setenv("COLUMNS", "140")
    assert "世界.图鉴.物品.潮汐木芯" in run("recall", "x").stdout
