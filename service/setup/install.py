"""Installs Hummock and its locked packages into `.venv`; run by setup.sh, which has checked the machine.

Needs nothing but the standard library. Every file that pip installs is checked against the hashes of service/locks.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "service" / "locks"
VENV = ROOT / ".venv"
LOG = VENV / "setup.log"
SOURCES = (
    "service/hummock",
    "kernels/hummock_kernels",
    "clients/python/hummock_client",
    "clients/python/hummock_tools",
)
EXTRAS = ("server", "dev")
COMPILERS = ("c++", "g++", "clang++")
AVX2 = {"avx2", "fma", "f16c"}


def main(arguments: Sequence[str]) -> int:
    """Set up `.venv` for one extra; the exit status."""
    if len(arguments) != 1 or arguments[0] not in EXTRAS:
        print(f"usage: install.py {'|'.join(EXTRAS)}", file=sys.stderr)
        return 2
    try:
        install(arguments[0])
    except SetupFailed as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; run it again to go on", file=sys.stderr)
        return 130
    return 0


class SetupFailed(Exception):
    """A step did not work; the message says which and what pip said."""


def install(extra: str) -> None:
    """Make `.venv` hold what the extra's lock file says, and this project on top, editable."""
    started_s = time.monotonic()
    create_venv()
    LOG.write_text("", encoding="utf-8")
    lock = LOCKS / f"{extra}.txt"
    hashed = ("--require-hashes", "--no-build-isolation")
    pip("build tools", LOCKS / "build.txt", (*hashed, "-r", str(LOCKS / "build.txt")))
    pip("packages", lock, (*hashed, "-r", str(lock)))
    pip("hummock", None, ("--no-build-isolation", "--no-deps", "--editable", str(ROOT)))
    build_graph(hashed)
    compile_sources()
    compile_kernels()
    for done in EXTRAS[: EXTRAS.index(extra) + 1]:  # dev holds all of server
        (VENV / f".{done}").touch()
    print(f"ready in {time.monotonic() - started_s:.0f} s: .venv/bin/hummock", flush=True)


def build_graph(hashed: Sequence[str]) -> None:
    """Build hnswlib, which has no wheels, where a C++ compiler is; without it large projects keep their sign bits."""
    compiler = os.environ.get("CXX") or next(filter(shutil.which, COMPILERS), None)
    if compiler is None:
        print(f"graph index: left out, no C++ compiler ({', '.join(COMPILERS)}) was found", flush=True)
        return
    lock = LOCKS / "graph.txt"
    # By itself it is built for this processor alone; and pip would keep that for other machines.
    flags = " ".join(f"-m{each}" for each in sorted(AVX2)) if processor_flags() >= AVX2 else ""
    environment = {"HNSWLIB_NO_NATIVE": "1", "CXXFLAGS": f"{os.environ.get('CXXFLAGS', '')} {flags}".strip()}
    try:
        pip("graph index", lock, ("--no-cache-dir", "--no-deps", *hashed, "-r", str(lock)), environment)
    except SetupFailed:
        print(f"graph index: left out, hnswlib could not be built; what pip said: {LOG}", flush=True)


def processor_flags() -> set[str]:
    """Instruction sets of the processor; empty where Linux does not list them."""
    try:
        listed = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return set()
    found = re.search(r"^flags\s*:(.*)$", listed, re.MULTILINE)
    return set(found[1].split()) if found else set()


def compile_sources() -> None:
    """Make the bytecode of this project, as pip does of every package but an editable one: starts need it."""
    sources = [str(ROOT / folder) for folder in SOURCES]
    subprocess.run([VENV / "bin" / "python", "-m", "compileall", "-q", *sources], check=False)


def compile_kernels() -> None:
    """Compile what would otherwise keep the first start waiting; what fails here is compiled there."""
    started_s = time.monotonic()
    print("kernels …", flush=True)
    done = subprocess.run([VENV / "bin" / "python", "-m", "hummock_kernels"], check=False).returncode == 0
    print(f"kernels: {'done' if done else 'left to the first start'}, {time.monotonic() - started_s:.0f} s", flush=True)


def create_venv() -> None:
    """Make `.venv`, or keep the one that is there when its interpreter still runs."""
    python = VENV / "bin" / "python"
    if python.exists() and subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return
    print(f"virtual environment .venv (Python {platform.python_version()})", flush=True)
    try:
        venv.EnvBuilder(clear=True, with_pip=True, symlinks=True).create(VENV)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupFailed(f"the virtual environment .venv could not be made: {error}") from error


def pip(title: str, lock: Path | None, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Run `pip install`, show how far it is, and keep what it says in the log.

    Args:
        title: What is being installed, for people.
        lock: Counts the packages to come; None where there is one.
        arguments: After `pip install`.
        environment: Variables besides those of this process.

    Raises:
        SetupFailed: pip failed; with its last lines.
    """
    command = [str(VENV / "bin" / "python"), "-m", "pip", "--no-input", "--disable-pip-version-check", "install"]
    command += ["--progress-bar", "off", *arguments]
    total = len(re.findall(r"^\S+==", lock.read_text(encoding="utf-8"), re.MULTILINE)) if lock else 1
    line = ProgressLine(title, total)
    said: list[str] = []
    with (
        LOG.open("a", encoding="utf-8") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, **(environment or {})},
        ) as process,
    ):
        if process.stdout is None:
            raise SetupFailed("pip's output cannot be read")
        for text in process.stdout:
            log.write(text)
            said.append(text.rstrip())
            line.show(text)
    if process.returncode != 0:
        line.end("failed")
        tail = "\n".join(said[-25:])
        raise SetupFailed(f"pip could not install the {title}; its last lines (all of them: {LOG}):\n{tail}")
    line.end("done")


class ProgressLine:
    """One line that says how far pip is: rewritten in place on a terminal, printed once elsewhere."""

    def __init__(self, title: str, total: int) -> None:
        self._title = title
        self._total = total
        self._seen = 0
        self._is_terminal = sys.stdout.isatty()
        self._started_s = time.monotonic()
        if not self._is_terminal:
            print(f"{title} …", flush=True)

    def show(self, said: str) -> None:
        """Take one line of pip's output."""
        words = said.split()
        if said.startswith(("Collecting ", "Requirement already satisfied: ", "Ignoring ")):
            self._seen = min(self._seen + 1, self._total)
            # `Ignoring x: markers …` is a package for other machines.
            self._write(words[1] if words[0] == "Collecting" else "")
        elif words[:1] == ["Building"]:
            self._write(f"building {words[3] if len(words) > 3 else ''}")
        elif said.startswith("Installing collected packages"):
            self._write("installing")

    def end(self, how: str) -> None:
        """The last word on it."""
        text = f"{self._title}: {how}, {time.monotonic() - self._started_s:.0f} s"
        print(f"\r\x1b[K{text}" if self._is_terminal else text, flush=True)

    def _write(self, what: str) -> None:
        if self._is_terminal:
            print(f"\r\x1b[K{self._title}: {self._seen}/{self._total} {what}"[:100], end="", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
