"""hummock projects delete, against a service with canned answers."""

from __future__ import annotations

import pytest

from hummock_client.v1 import project_service_pb2 as pb
from tests.cli.conftest import Run
from tests.cli.fake_service import FakeService


def deleted(fake: FakeService) -> list[str]:
    return [asked.project for asked in fake.asked if isinstance(asked, pb.DeleteProjectRequest)]


def test_delete_asks_and_says_what_was_lost(run: Run, fake: FakeService) -> None:
    result = run("projects", "delete", "还款", stdin=b"y\n")
    assert result.exit_code == 0, result.stderr
    assert "Delete 还款 with its 3 memories" in result.stderr
    # After the answer, which the runner shows as a terminal would.
    assert result.stdout.endswith("还款 is deleted: 3 memories, 1 sessions, 2 messages\n")
    assert deleted(fake) == ["还款"]


@pytest.mark.long
def test_delete_takes_no_for_an_answer(run: Run, fake: FakeService) -> None:
    for answer in (b"n\n", b"\n", b""):
        result = run("projects", "delete", "还款", stdin=answer)
        assert result.exit_code == 1
        assert "nothing was deleted" in result.stderr
    assert deleted(fake) == []


def test_delete_asks_unless_told_not_to_and_takes_no_name_from_the_environment(run: Run, fake: FakeService) -> None:
    assert run("projects", "delete", "--yes").exit_code == 2
    assert deleted(fake) == []
    assert run("projects", "delete", "还款", "--yes").exit_code == 0
    assert [type(asked) for asked in fake.asked] == [pb.DeleteProjectRequest]
