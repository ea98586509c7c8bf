"""The set-up of a fresh machine: what it says when something is missing."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
APT = "sudo apt-get install -y python3-venv"
HAS_ALL = "exit 0"
NO_VENV = 'case "$2" in *ensurepip*) exit 1 ;; *) exit 0 ;; esac'
TOO_OLD = 'case "$2" in *version_info*) exit 1 ;; *) exit 0 ;; esac'

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="needs a POSIX shell")


class Machine:
    """A copy of the set-up, and a PATH that holds what the test puts there."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._bin = root / "bin"
        self._bin.mkdir()
        shutil.copytree(ROOT / "service" / "setup", root / "service" / "setup")
        for name in ("sh", "dirname", "sed"):
            (self._bin / name).symlink_to(shutil.which(name) or name)
        self.add("uname", "echo Linux")

    def add(self, name: str, program: str) -> None:
        """Put a shell script on the PATH."""
        script = self._bin / name
        script.write_text(f"#!/bin/sh\n{program}\n", encoding="utf-8")
        script.chmod(0o755)

    def set_up(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the set-up."""
        return subprocess.run(
            [str(self._bin / "sh"), str(self._root / "service" / "setup" / "setup.sh"), "server"],
            env={"PATH": str(self._bin), **environment},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    @property
    def is_untouched(self) -> bool:
        """True if nothing was made."""
        return not (self._root / ".venv").exists()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_with_everything_there_the_installer_is_started(machine: Machine) -> None:
    machine.add("python3", 'case "$1" in -c) exit 0 ;; *) echo "$@" ;; esac')
    done = machine.set_up()
    assert (done.returncode, done.stdout, done.stderr) == (0, "service/setup/install.py server\n", "")


def test_missing_virtual_environments_are_one_line_with_the_command_to_run(machine: Machine) -> None:
    machine.add("python3", NO_VENV)
    done = machine.set_up()
    assert done.returncode == 1
    assert done.stderr == (f"error: python3 cannot make virtual environments (venv, ensurepip); install them: {APT}\n")
    assert machine.is_untouched


def test_an_old_python_is_passed_over_for_a_newer_one(machine: Machine) -> None:
    machine.add("python3", TOO_OLD)
    done = machine.set_up()
    assert done.returncode == 1
    assert done.stderr.startswith("error: Python 3.11 or newer was not found")
    machine.add("python3.12", 'case "$1" in -c) exit 0 ;; *) echo newer ;; esac')
    assert machine.set_up().stdout == "newer\n"


def test_a_complete_python_is_preferred_and_the_interpreter_can_be_named(machine: Machine) -> None:
    machine.add("python3", NO_VENV)
    machine.add("python3.11", 'case "$1" in -c) exit 0 ;; *) echo complete ;; esac')
    assert machine.set_up().stdout == "complete\n"
    machine.add("python3", HAS_ALL)
    done = machine.set_up(PYTHON="python9")
    assert done.returncode == 1
    assert "looked for python9" in done.stderr


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The installer, for a `.venv` whose Python says what it was called with and fails."""
    spec = importlib.util.spec_from_file_location("hummock_install", ROOT / "service" / "setup" / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "VENV", tmp_path)
    monkeypatch.setattr(module, "LOG", tmp_path / "setup.log")
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\necho "NATIVE=$HNSWLIB_NO_NATIVE FLAGS=$CXXFLAGS" "$@"\nexit 1\n', encoding="utf-8")
    python.chmod(0o755)
    return module


def test_without_a_compiler_the_graph_is_left_out_and_that_is_said_once(
    install: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("CXX", raising=False)
    install.build_graph(())
    said = capsys.readouterr().out
    assert said == "graph index: left out, no C++ compiler (c++, g++, clang++) was found\n"
    assert not install.LOG.exists()


@pytest.mark.parametrize(
    ("processor", "flags"), [({"avx2", "fma", "f16c", "avx512f"}, "-mavx2 -mf16c -mfma"), ({"avx2", "fma"}, "")]
)
def test_a_graph_that_cannot_be_built_stops_no_setup_and_is_never_built_for_one_processor(
    install: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    processor: set[str],
    flags: str,
) -> None:
    monkeypatch.setenv("CXX", "c++")
    monkeypatch.delenv("CXXFLAGS", raising=False)
    monkeypatch.setattr(install, "processor_flags", lambda: processor)
    install.build_graph(("--require-hashes",))
    assert capsys.readouterr().out.splitlines()[-1].startswith("graph index: left out, hnswlib could not be built")
    called = install.LOG.read_text(encoding="utf-8")
    assert called.startswith(f"NATIVE=1 FLAGS={flags} -m pip")
    assert "--no-cache-dir --no-deps --require-hashes" in called


def test_locks_pin_versions_and_hashes_and_no_addresses() -> None:
    for name in ("build", "server", "dev", "docs", "graph"):
        text = (ROOT / "service" / "locks" / f"{name}.txt").read_text(encoding="utf-8")
        assert "://" not in text
        assert " @ " not in text
        entries = text.replace("\\\n", " ").splitlines()
        assert entries
        for entry in entries:
            assert "==" in entry.split()[0], entry
            assert "--hash=sha256:" in entry, entry


def test_the_locks_agree_where_they_overlap() -> None:
    pins: list[Requirement] = []
    for name in ("build", "server", "dev"):
        text = (ROOT / "service" / "locks" / f"{name}.txt").read_text(encoding="utf-8")
        lines = (line.rstrip(" \\") for line in text.splitlines() if not line.startswith(" "))
        pins.extend(Requirement(line) for line in lines if "==" in line.split(";")[0])
    versions: dict[str, set[str]] = {}
    for pin in pins:
        versions.setdefault(pin.name, set()).add(str(pin.specifier))
    differing = {name for name, found in versions.items() if len(found) > 1}
    # One version for each side of a Python version is no disagreement.
    assert all(pin.marker for pin in pins if pin.name in differing), differing


@pytest.mark.parametrize(
    ("lock", "extras"),
    [
        ("server", ("server", "code", "convert", "http", "console")),
        ("dev", ("dev", "server", "http", "mcp", "console")),
        ("graph", ("graph",)),
    ],
)
def test_the_locks_hold_what_the_project_asks_for(lock: str, extras: tuple[str, ...]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    of_all = [] if lock == "graph" else project["dependencies"]
    asked = [*of_all, *(each for extra in extras for each in project["optional-dependencies"][extra])]
    text = (ROOT / "service" / "locks" / f"{lock}.txt").read_text(encoding="utf-8")
    locked = [Requirement(line.rstrip(" \\")) for line in text.splitlines() if line and not line.startswith(" ")]
    versions: dict[str, list[str]] = {}
    for requirement in locked:
        versions.setdefault(canonicalize_name(requirement.name), []).append(
            str(requirement.specifier).removeprefix("==")
        )
    for requirement in map(Requirement, asked):
        pinned = versions.get(canonicalize_name(requirement.name), [])
        assert pinned, f"{requirement.name} is in no lock: run `make lock`"
        assert all(requirement.specifier.contains(version) for version in pinned), f"{requirement}: run `make lock`"
