"""`hummock forget`: it asks first, and says what is gone and where its bytes are."""

from __future__ import annotations

import json

import pytest

from hummock_client.v1 import memory_service_pb2 as pb
from hummock_client.v1 import project_service_pb2 as project_pb
from tests.cli.conftest import Run
from tests.cli.fake_service import FakeService


def test_it_counts_asks_and_forgets(run: Run, fake: FakeService) -> None:
    done = run("forget", "--contains", "港口", "--session", "s", "--path", "a.py", "--speaker", "bot", stdin=b"y\n")
    assert done.exit_code == 0, done.output
    assert "Forget 3 memories" in done.stderr
    assert "forgotten: 3 memories" in done.stdout
    assert "hummock remove bytes" in done.stderr
    counted, forgotten = fake.requests(pb.ForgetRequest)
    assert (counted.dry_run, forgotten.dry_run) == (True, False)
    assert (forgotten.contains, list(forgotten.filter.paths), forgotten.with_sessions) == ("港口", ["a.py"], True)
    assert list(forgotten.filter.speakers) == ["bot"]
    assert forgotten.request_id


def test_without_a_yes_nothing_is_forgotten(run: Run, fake: FakeService) -> None:
    refused = run("forget", "a", stdin=b"n\n")
    assert (refused.exit_code, [one.dry_run for one in fake.requests(pb.ForgetRequest)]) == (1, [True])


def test_a_dry_run_only_counts(run: Run, fake: FakeService) -> None:
    done = run("forget", "a", "--dry-run")
    assert "would be forgotten: 3 memories" in done.stdout
    assert [one.dry_run for one in fake.requests(pb.ForgetRequest)] == [True]


@pytest.mark.long
def test_yes_asks_nothing_and_json_is_the_receipt(run: Run, fake: FakeService) -> None:
    done = run("forget", "a", "--yes", "--json")
    assert json.loads(done.stdout)["memoryCount"] == 3
    assert [list(one.ids) for one in fake.requests(pb.ForgetRequest)] == [["a"]]


@pytest.mark.long
def test_a_whole_project_is_forgotten_with_a_receipt_once_somebody_says_so(run: Run, fake: FakeService) -> None:
    done = run("forget", "-p", "loan", "--all", stdin=b"y\n")
    assert done.exit_code == 0, done.output
    assert "Forget loan with its" in done.stderr
    assert "digest" in done.stdout
    assert [one.project for one in fake.requests(project_pb.DeleteProjectRequest)] == ["loan"]
    assert run("forget", "-p", "loan", "--all", stdin=b"n\n").exit_code == 1
    assert "would be forgotten: loan" in run("forget", "-p", "loan", "--all", "--dry-run").stdout
    assert len(fake.requests(project_pb.DeleteProjectRequest)) == 1


@pytest.mark.parametrize(
    "arguments", [["--all"], ["-p", "loan", "--all", "a"], ["-p", "loan", "--all", "--contains", "x"]]
)
def test_a_whole_project_is_named_and_goes_without_conditions(
    run: Run, fake: FakeService, arguments: list[str]
) -> None:
    """The environment may name another project than who types thinks of."""
    assert run("forget", *arguments, "--yes").exit_code == 2
    assert fake.requests(project_pb.DeleteProjectRequest) == []


@pytest.mark.long
def test_no_condition_is_refused(run: Run) -> None:
    assert run("forget", "--yes").exit_code == 2
