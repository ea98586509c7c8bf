"""The audit log: what it says, how it is chained, and what becomes of it when it cannot be written."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.access.audit import FILE_NAME, KEPT_FILES, NO_LINE, AuditFailed, AuditLog, files_of, hash_of, verify
from hummock.core.errors import StartError


def written(directory: Path, count: int, **limits: int) -> AuditLog:
    log = AuditLog(directory, **limits)
    for number in range(count):
        log.append({"who": "ci", "method": "Learn", "ids": [f"世界.{number}"]}, now_s=float(number))
    return log


def lines(directory: Path) -> list[bytes]:
    return (directory / FILE_NAME).read_bytes().splitlines(keepends=True)


def test_lines_have_numbers_times_and_the_hash_of_the_one_before(tmp_path: Path) -> None:
    """X12."""
    written(tmp_path, 2).close()
    first, second = map(json.loads, lines(tmp_path))
    assert first == {
        "n": 1, "time": "1970-01-01T00:00:00+00:00", "who": "ci", "method": "Learn", "ids": ["世界.0"],
        "before": NO_LINE,
    }  # fmt: skip
    assert (second["n"], second["before"]) == (2, hash_of(lines(tmp_path)[0]))
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_a_log_that_nobody_touched_is_whole_over_restarts_and_files(tmp_path: Path) -> None:
    """X12."""
    assert verify(tmp_path).problems == ()
    for _ in range(3):
        written(tmp_path, 7, max_file_bytes=600).close()
    verdict = verify(tmp_path)
    assert (verdict.lines, verdict.first, verdict.last, verdict.problems) == (21, 1, 21, ())
    assert len(files_of(tmp_path)) > 3
    assert verify(tmp_path, verdict.head).problems == ()


@pytest.mark.long
@given(st.integers(0, 8), st.sampled_from(["removed", "changed", "doubled", "exchanged"]))
def test_what_is_done_to_a_line_is_found(tmp_path_factory: pytest.TempPathFactory, at: int, harm: str) -> None:
    """X12: any but the last, after which nothing is chained."""
    directory = tmp_path_factory.mktemp("audit")
    written(directory, 10).close()
    kept = lines(directory)
    match harm:
        case "removed":
            del kept[at]
        case "changed":
            kept[at] = kept[at].replace(b'"ci"', b'"me"')
        case "doubled":
            kept.insert(at, kept[at])
        case _:
            kept[at], kept[at + 1] = kept[at + 1], kept[at]
    (directory / FILE_NAME).write_bytes(b"".join(kept))
    assert verify(directory).problems


def test_that_the_last_lines_are_gone_is_seen_by_a_head_that_was_noted(tmp_path: Path) -> None:
    """X12."""
    written(tmp_path, 5).close()
    head = verify(tmp_path).head
    (tmp_path / FILE_NAME).write_bytes(b"".join(lines(tmp_path)[:-2]))
    assert verify(tmp_path).problems == ()
    assert "lines were removed" in verify(tmp_path, head).problems[0]


def test_a_file_that_is_missing_between_others_is_found(tmp_path: Path) -> None:
    written(tmp_path, 30, max_file_bytes=600).close()
    full = files_of(tmp_path)
    full[1].unlink()
    assert "the line before it was removed" in verify(tmp_path).problems[0]


def test_old_files_are_removed_and_the_rest_is_whole(tmp_path: Path) -> None:
    written(tmp_path, 60, max_file_bytes=300).close()
    assert len(files_of(tmp_path)) == KEPT_FILES
    verdict = verify(tmp_path)
    assert verdict.problems == ()
    assert verdict.first > 1
    assert verdict.last == 60
    # Fewer than are kept: somebody removed them.
    files_of(tmp_path)[0].unlink()
    assert "were removed" in verify(tmp_path).problems[0]


def test_what_a_power_cut_left_of_a_line_is_named_and_the_chain_goes_on(tmp_path: Path) -> None:
    written(tmp_path, 3).close()
    file = tmp_path / FILE_NAME
    file.write_bytes(file.read_bytes()[:-20])
    head = verify(tmp_path).head
    written(tmp_path, 2).close()
    verdict = verify(tmp_path, head)
    assert [problem.partition(" ")[0] for problem in verdict.problems] == ["audit.jsonl:3"]
    assert verdict.last == 4


def test_lines_of_many_threads_are_one_chain(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, max_file_bytes=5000)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: log.append({"who": str(n)}, 1.0, is_durable=n % 5 == 0), range(200)))
    log.close()
    verdict = verify(tmp_path)
    assert (verdict.lines, verdict.problems) == (200, ())


def test_a_full_disk_fails_the_call_and_breaks_no_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """X12."""
    log = written(tmp_path, 2)
    real, left = os.write, [30]

    def write(file: int, data: bytes) -> int:
        return real(file, data[: left[0]])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(AuditFailed, match="No space left"):
        log.append({"who": "a"}, 3.0)
    left[0] = 1 << 20
    log.append({"who": "b"}, 4.0)
    log.close()
    verdict = verify(tmp_path)
    assert (verdict.lines, verdict.last, verdict.problems) == (3, 3, ())


def test_what_cannot_be_made_durable_fails_and_breaks_no_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = written(tmp_path, 1)

    def fsync(file: int) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(AuditFailed, match="Input/output error"):
        log.append({"who": "a"}, 3.0, is_durable=True)
    monkeypatch.undo()
    log.append({"who": "b"}, 4.0)
    log.close()
    assert verify(tmp_path).problems == ()


def test_a_place_that_cannot_be_written_is_said_at_the_start(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(StartError, match="switch audit off"):
        AuditLog(tmp_path)
