"""Number of connections that a service takes."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.running import in_process


@pytest.fixture
def most_files() -> Iterator[int]:
    """The hard limit; the soft one is low meanwhile, as it is where services are started."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = min(512, hard // 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (low, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_service_takes_as_many_connections_as_the_system_allows(
    tmp_path: Path, models_dir: Path, model: str, most_files: int
) -> None:
    """D12."""
    with in_process(tmp_path, models_dir, model) as process:
        limits = Path(f"/proc/{process.popen.pid}/limits").read_text("utf-8")
    (row,) = [line.split() for line in limits.splitlines() if line.startswith("Max open files")]
    assert (int(row[3]), int(row[4])) == (most_files, most_files)
