"""learn against a service that keeps what it is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from hummock_client.v1 import context_service_pb2 as pb
from tests.cli.conftest import Run
from tests.cli.fake_service import FakeService

GOOD = '{"id": "a", "kind": "MEMORY_KIND_NOTE", "content": "还款"}'


def streamed(fake: FakeService) -> list[str]:
    requests = [asked for asked in fake.asked if isinstance(asked, pb.LearnStreamRequest)]
    return [memory.id for request in requests for memory in request.learn.memories]


def test_what_is_learnt_is_named_and_of_the_zone_of_its_machine(
    run: Run, fake: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUMMOCK_TIME_ZONE", "Asia/Shanghai")
    assert run("learn", "昨天我们搬了数据库").stdout == "created m9\n"
    (request,) = (asked for asked in fake.asked if isinstance(asked, pb.LearnRequest))
    assert [one.time_zone for one in request.memories] == ["Asia/Shanghai"]


@pytest.mark.long
@pytest.mark.parametrize("line", ["", "x --file -", "--file - --tag x", "--file - --pin", "x --kind code_fragment"])
def test_what_does_not_go_together_is_a_usage_error(run: Run, line: str) -> None:
    assert run("learn", *line.split()).exit_code == 2


def test_a_wrong_line_is_named_and_nothing_is_stored(run: Run, fake: FakeService, tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(f'{GOOD}\n{{"knd": 1}}\n', encoding="utf-8")
    result = run("learn", "--file", str(file))
    assert result.exit_code == 1
    assert f"error: {file}, line 2: " in result.stderr
    assert "knd" in result.stderr
    assert "nothing was stored" in result.stderr
    assert streamed(fake) == []


def test_wrong_lines_can_be_passed_over_aloud(run: Run, fake: FakeService, tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_bytes(b"\xff\xff\n" + GOOD.encode() + b"\nnot json\n")
    result = run("learn", "--file", str(file), "--continue")
    assert result.exit_code == 1
    assert streamed(fake) == ["a"]
    assert "line 1: is not UTF-8" in result.stderr
    assert "line 3: " in result.stderr
    assert "1 created, 2 lines passed over" in result.stderr


def test_a_refused_batch_is_reported_and_the_others_go_on(run: Run, fake: FakeService) -> None:
    lines = [GOOD.replace('"a"', f'"m{number}"') for number in range(64)]
    lines += [GOOD.replace('"a"', '"bad"')]
    result = run("learn", "--file", "-", stdin="\n".join(lines).encode())
    assert result.exit_code == 1
    assert len(streamed(fake)) == 65
    said = " ".join(result.stderr.split())
    assert "memories 65 to 65 are not stored: memories[0].content: too large" in said
    assert "64 created, 1 failed" in said


@pytest.mark.long
def test_wrong_metadata_and_a_missing_file_are_named(run: Run) -> None:
    for wrong in ("env", "=prod"):
        result = run("learn", "the tide", "--meta", wrong)
        assert result.exit_code == 2
        assert "is not NAME=VALUE" in " ".join(result.stderr.split())
    result = run("learn", "--file", "/absent/records.jsonl")
    assert result.exit_code == 1
    assert "error: /absent/records.jsonl cannot be read: No such file or directory" in result.stderr


def test_an_empty_file_learns_nothing_and_lines_of_stdin_in_order(run: Run, fake: FakeService) -> None:
    result = run("learn", "--file", "-", stdin=b"")
    assert result.exit_code == 0
    assert "nothing to learn" in result.stderr
    lines = "\n".join([GOOD, "", GOOD.replace('"a"', '"b"')])
    result = run("learn", "--file", "-", stdin=lines.encode())
    assert result.exit_code == 0
    assert streamed(fake) == ["a", "b"]
    assert "2 created" in result.stderr
