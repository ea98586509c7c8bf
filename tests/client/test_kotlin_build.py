"""The one build of the client for Kotlin: made once, and again whenever anything differs; Maven is one that counts."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

_SCRIPT = Path(__file__).parents[2] / "clients/kotlin/build.sh"
_MAVEN = """#!/bin/sh
echo "$@" >> "$BUILDS"
[ ! -e failing ] || exit 1
mkdir -p client/target/classes
cat client/src/A.kt > client/target/classes/A.class
"""


@dataclass(frozen=True, slots=True)
class Clients:
    """A folder such as clients/, with one source and one contract."""

    directory: Path

    @property
    def source(self) -> Path:
        return self.directory / "kotlin/client/src/A.kt"

    @property
    def compiled(self) -> Path:
        return self.directory / "kotlin/client/target/classes/A.class"

    def build(self) -> int:
        """The exit status."""
        path = f"{self.directory}/bin{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "BUILDS": str(self.directory / "builds")}
        return subprocess.run(["sh", "kotlin/build.sh"], cwd=self.directory, env=env).returncode

    @property
    def builds(self) -> int:
        return len((self.directory / "builds").read_text(encoding="utf-8").splitlines())


@pytest.fixture
def clients(tmp_path: Path) -> Clients:
    """Built once."""
    files = {
        "bin/mvn": _MAVEN,
        "protos.sh": "# proto/ is there already",
        "proto/a.proto": "message A {}",
        "kotlin/pom.xml": "<project/>",
        "kotlin/client/pom.xml": "<project/>",
        "kotlin/client/src/A.kt": "class A",
        "kotlin/client/src/B.kt": "class B",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "bin/mvn").chmod(0o755)
    shutil.copy(_SCRIPT, tmp_path / "kotlin")
    made = Clients(tmp_path)
    assert made.build() == 0
    return made


def test_what_has_not_changed_is_built_once(clients: Clients) -> None:
    os.utime(clients.source)
    assert clients.build() == 0
    assert clients.builds == 1


@pytest.mark.parametrize("name", ["kotlin/client/src/A.kt", "kotlin/client/pom.xml", "kotlin/pom.xml", "proto/a.proto"])
def test_what_has_changed_is_built_again_whatever_its_time(clients: Clients, name: str) -> None:
    file = clients.directory / name
    before = file.stat()
    file.write_text(file.read_text(encoding="utf-8").swapcase(), encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert clients.build() == 0
    assert clients.builds == 2


def test_a_file_that_is_new_or_gone_is_a_change(clients: Clients) -> None:
    other = clients.source.with_name("B.kt")
    other.rename(clients.source.with_name("C.kt"))
    assert clients.build() == 0
    clients.source.with_name("C.kt").unlink()
    assert clients.build() == 0
    assert clients.builds == 3


def test_what_somebody_else_has_built_or_removed_is_built_again(clients: Clients) -> None:
    clients.compiled.write_text("of another source", encoding="utf-8")
    assert clients.build() == 0
    assert clients.compiled.read_text(encoding="utf-8") == "class A"
    shutil.rmtree(clients.directory / "kotlin/client/target")
    assert clients.build() == 0
    assert clients.compiled.exists()
    assert clients.builds == 3


def test_a_build_that_failed_is_tried_again(clients: Clients) -> None:
    failing = clients.directory / "kotlin/failing"
    failing.touch()
    clients.source.write_text("class", encoding="utf-8")
    assert clients.build() != 0
    assert clients.build() != 0
    failing.unlink()
    assert clients.build() == 0
    assert clients.builds == 4
