"""Machine and software that a figure was measured with; without them a figure says nothing."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

DIRTY = "-dirty"
_PACKAGES = ("numpy", "numba", "lmdb", "grpcio", "protobuf", "onnxruntime")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine and the code.

    Attributes:
        load_average: Load of the minute before the bench began: above 0 others used the machine too.
        file_system: File system of the bench directory; "tmpfs" means no disk, "unknown" is any outside Linux.
        commit: With DIRTY after it when tracked files other than results differ from it; "unknown" outside a
            repository.
    """

    time: str
    system: str
    cpu: str
    cores: int
    load_average: float
    file_system: str
    commit: str
    versions: dict[str, str]

    @classmethod
    def here(cls, directory: Path) -> Machine:
        """This machine, with a bench in that directory."""
        return cls(
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            system=platform.platform(),
            cpu=_cpu(),
            cores=os.cpu_count() or 1,
            load_average=round(os.getloadavg()[0], 2),
            file_system=_file_system(directory.resolve()),
            commit=_commit(),
            versions={"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}},
        )

    def lines(self) -> list[str]:
        """The machine for people, as a Markdown list."""
        packages = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        return [
            f"- {self.time}, commit {self.commit}",
            f"- {self.cpu}, {self.cores} cores, load average {self.load_average} before it began; {self.system}",
            f"- file system {self.file_system}",
            f"- {packages}",
        ]

    def caption(self) -> str:
        """The machine for people, in a line."""
        return f"{self.cpu}, {self.cores} cores, {self.time[:10]}, commit {self.commit}"


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _file_system(directory: Path) -> str:
    mounts = Path("/proc/mounts")
    fields = [line.split() for line in mounts.read_text().splitlines()] if mounts.exists() else []
    # The kernel writes a space in a path as \040; of two mounts on one path the later is seen.
    holding = [
        (len(point), order, kind)
        for order, (_, point, kind, *_) in enumerate(fields)
        if directory.is_relative_to(point.replace("\\040", " "))
    ]
    return max(holding, default=(0, 0, "unknown"))[2]


def _commit() -> str:
    # What a run writes does not change what is measured next.
    others = ["--", ":(top)", ":(top,exclude)bench/results"]
    try:
        commit = _git("rev-parse", "--short=12", "HEAD")
        return commit + DIRTY if _git("diff", "--name-only", "HEAD", *others) else commit
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    return done.stdout.strip()
