"""The set-up of a fresh machine: what it says when something is missing, and what it asks the compiler for."""

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
APT = "sudo apt-get install -y g++ python3-dev python3-venv"
HAS_ALL = "exit 0"
NO_HEADERS = 'case "$2" in *Python.h*) exit 1 ;; *) exit 0 ;; esac'
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
        """Whether nothing was made."""
        return not (self._root / ".venv").exists()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture(scope="module")
def install() -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup_install", ROOT / "service" / "setup" / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_missing_compiler_is_one_line_with_the_command_to_run(machine: Machine) -> None:
    machine.add("python3", HAS_ALL)
    done = machine.set_up()
    assert done.returncode == 1
    assert done.stderr == (
        f"error: no C++ compiler (g++ or c++) was found; hnswlib is built from source; install one: {APT}\n"
    )
    assert machine.is_untouched


@pytest.mark.parametrize("compiler", ["g++", "c++"])
def test_with_everything_there_the_installer_is_started(machine: Machine, compiler: str) -> None:
    machine.add("python3", 'case "$1" in -c) exit 0 ;; *) echo "$@" ;; esac')
    machine.add(compiler, HAS_ALL)
    done = machine.set_up()
    assert (done.returncode, done.stdout, done.stderr) == (0, "service/setup/install.py server\n", "")


def test_missing_headers_are_named(machine: Machine) -> None:
    machine.add("python3", NO_HEADERS)
    machine.add("g++", HAS_ALL)
    done = machine.set_up()
    assert done.returncode == 1
    assert done.stderr == f"error: python3 has no Python.h, which hnswlib needs to be built; install it: {APT}\n"


def test_missing_virtual_environments_are_named(machine: Machine) -> None:
    machine.add("python3", NO_VENV)
    machine.add("g++", HAS_ALL)
    done = machine.set_up()
    assert done.returncode == 1
    assert done.stderr.startswith("error: python3 cannot make virtual environments (venv, ensurepip)")


def test_each_missing_thing_has_a_line_of_its_own(machine: Machine) -> None:
    machine.add("python3", NO_HEADERS)
    assert len(machine.set_up().stderr.splitlines()) == 2


def test_an_old_python_is_passed_over_for_a_newer_one(machine: Machine) -> None:
    machine.add("python3", TOO_OLD)
    machine.add("g++", HAS_ALL)
    done = machine.set_up()
    assert done.returncode == 1
    assert done.stderr.startswith("error: Python 3.11 or newer was not found")
    machine.add("python3.12", 'case "$1" in -c) exit 0 ;; *) echo newer ;; esac')
    assert machine.set_up().stdout == "newer\n"


def test_a_complete_python_is_preferred_to_the_first_one(machine: Machine) -> None:
    machine.add("python3", NO_HEADERS)
    machine.add("python3.11", 'case "$1" in -c) exit 0 ;; *) echo complete ;; esac')
    machine.add("g++", HAS_ALL)
    assert machine.set_up().stdout == "complete\n"


def test_the_interpreter_can_be_named(machine: Machine) -> None:
    machine.add("python3", HAS_ALL)
    machine.add("g++", HAS_ALL)
    done = machine.set_up(PYTHON="python9")
    assert done.returncode == 1
    assert "looked for python9" in done.stderr


def test_locks_pin_versions_and_hashes_and_no_addresses() -> None:
    for name in ("build", "server", "dev"):
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


def test_one_requirement_is_cut_out_with_its_hashes(install: ModuleType) -> None:
    wanted = "hnswlib==0.8.0 \\\n    --hash=sha256:11 \\\n    --hash=sha256:22\n"
    lock = f"a==1 \\\n    --hash=sha256:00\n{wanted}z==2 \\\n    --hash=sha256:33\n"
    assert install.requirement(lock, "hnswlib") == wanted
    with pytest.raises(install.SetupFailed, match="make lock"):
        install.requirement(lock, "absent")


def test_the_compiler_is_never_told_to_use_what_only_this_processor_has(
    install: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXXFLAGS", "-O2")
    monkeypatch.delenv("CFLAGS", raising=False)
    monkeypatch.setattr(install.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(install, "cpu_features", lambda: frozenset({"avx2", "fma", "sse"}))
    assert install.compiler_flags() == {
        "HNSWLIB_NO_NATIVE": "1",
        "CFLAGS": "-mavx2 -mfma",
        "CXXFLAGS": "-O2 -mavx2 -mfma",
    }
    monkeypatch.setattr(install, "cpu_features", lambda: frozenset({"avx2"}))
    assert install.compiler_flags() == {"HNSWLIB_NO_NATIVE": "1", "CXXFLAGS": "-O2"}
    monkeypatch.setattr(install, "cpu_features", lambda: frozenset({"avx2", "fma"}))
    monkeypatch.setattr(install.platform, "machine", lambda: "aarch64")
    assert install.compiler_flags() == {"HNSWLIB_NO_NATIVE": "1", "CXXFLAGS": "-O2"}


def test_processor_features_come_from_the_kernel(install: ModuleType, tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nflags\t\t: sse2 avx2 fma\n\n", encoding="utf-8")
    assert install.cpu_features(cpuinfo) == {"sse2", "avx2", "fma"}
    assert install.cpu_features(tmp_path / "absent") == frozenset()


@pytest.mark.parametrize(("lock", "extras"), [("server", ("server", "code", "convert")), ("dev", ("dev", "server"))])
def test_the_locks_hold_what_the_project_asks_for(lock: str, extras: tuple[str, ...]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(each for extra in extras for each in project["optional-dependencies"][extra])]
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
