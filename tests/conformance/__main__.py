"""`python -m tests.conformance`: every client through every case against the same servers, as one matrix."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conformance.servers import CASES, serving

ROOT = Path(__file__).parents[2]
_LIMIT_S = 900
"""Time limit for one client, including what its first run builds and fetches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client's runner.

    Attributes:
        name: Name of its column.
        folder: Folder of its sources.
        tool: The program without which it cannot be run.
        command: Run in the repository's root.
    """

    name: str
    folder: str
    tool: str
    command: Sequence[str]

    @property
    def missing(self) -> str:
        """Name of a missing program that the client needs; empty if nothing is missing."""
        if not (ROOT / self.folder).is_dir():
            return self.folder
        return "" if shutil.which(self.tool) else self.tool


_RUNNER = (sys.executable, "-m", "tests.conformance.python_runner")
_OF_NPM = ("npm", "--silent", "--prefix", "clients/typescript", "run", "conformance")

CLIENTS = (
    Client(name="python", folder="clients/python", tool=sys.executable, command=_RUNNER),
    Client(name="aio", folder="clients/python", tool=sys.executable, command=(*_RUNNER, "--aio")),
    Client(name="go", folder="clients/go", tool="go", command=("go", "run", "-C", "clients/go", "./conformance")),
    Client(name="typescript", folder="clients/typescript", tool="npm", command=_OF_NPM),
    Client(name="kotlin", folder="clients/kotlin", tool="mvn", command=("sh", "clients/kotlin/conformance.sh")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Result of one case: why it failed; empty if it passed."""

    detail: str = ""


def names_of_cases() -> list[str]:
    """Names of all cases, in the order in which they are run."""
    return [case["name"] for file in sorted(CASES.glob("*.json")) for case in json.loads(file.read_bytes())]


def verdicts(client: Client, told: Path, limit_s: float = _LIMIT_S) -> dict[str, Verdict]:
    """Verdicts of a client's runner by case; a case without a verdict has failed."""
    env = {**os.environ, "HUMMOCK_CONFORMANCE": str(told)}
    with subprocess.Popen(
        client.command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        try:
            output, _ = run.communicate(timeout=limit_s)
            how = f"exit status {run.returncode}"
        except subprocess.TimeoutExpired:
            # What it has started goes with it, or would keep the pipe open.
            os.killpg(run.pid, signal.SIGKILL)
            output, _ = run.communicate()
            how = f"it was ended after {limit_s:g} s"
        finally:
            # Ctrl-C does not reach a session of its own.
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
    said = dict(_said(output))
    silent = Verdict(detail=f"the runner said nothing of it ({how})")
    return {name: said.get(name, silent) for name in names_of_cases()}


def _said(output: str) -> Iterator[tuple[str, Verdict]]:
    for line in output.splitlines():
        if line.startswith("{"):
            told = json.loads(line)
            yield told["case"], Verdict(detail="" if told["ok"] else told.get("detail") or "no reason given")


def matrix(found: Mapping[str, Mapping[str, Verdict]]) -> Iterator[str]:
    """Lines for people: a case each, then the reasons."""
    width = max(map(len, names_of_cases()))
    yield "  ".join(["case".ljust(width), *(name.ljust(10) for name in found)]).rstrip()
    for case in names_of_cases():
        cells = ["ok" if not found[name][case].detail else "FAIL" for name in found]
        yield "  ".join([case.ljust(width), *(cell.ljust(10) for cell in cells)]).rstrip()
    for name, of_cases in found.items():
        yield from (f"{name}: {case}: {verdict.detail}" for case, verdict in of_cases.items() if verdict.detail)


def main(arguments: Sequence[str]) -> int:
    """Runs what was asked for; 1 where anything failed, or was skipped and required."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--client", action="append", choices=[client.name for client in CLIENTS], help="unset: all")
    parser.add_argument("--require", action="store_true", help="a missing toolchain is a failure")
    asked = parser.parse_args(arguments)
    wanted = [client for client in CLIENTS if not asked.client or client.name in asked.client]
    able = [client for client in wanted if not client.missing]
    for client in wanted:
        if client.missing:
            print(f"{client.name} is left out: {client.missing} is missing", file=sys.stderr)
    with TemporaryDirectory(prefix="conformance-") as directory, serving(Path(directory)) as told:
        found = {client.name: verdicts(client, told) for client in able}
    print("\n".join(matrix(found)))
    failed = sum(bool(verdict.detail) for each in found.values() for verdict in each.values())
    passed = sum(map(len, found.values())) - failed
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0 or not found or (asked.require and len(able) < len(wanted)))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
