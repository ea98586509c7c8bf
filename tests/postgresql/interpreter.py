"""A Python with Patroni that the servers' user can run: this one, or a copy where this one is closed to it."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from importlib.metadata import Distribution, distribution
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from packaging.requirements import Requirement

from tests.postgresql.account import Account
from tests.postgresql.programs import COPIES, ProgramsMissing

_PATRONI: Final = Requirement("patroni[etcd3,psycopg3]")
_UNUSED: Final = shutil.ignore_patterns("site-packages", "dist-packages", "test", "idlelib", "config-*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Python:
    """An interpreter, and what its environment needs."""

    program: Path
    environ: Mapping[str, str]


def find_python(account: Account) -> Python:
    """An interpreter that has Patroni and that the account can run.

    The interpreter of a virtual environment is often its maker's, in a home that nobody else may enter. It is copied
    once then, with Patroni and what that needs.

    Raises:
        ProgramsMissing: Patroni is not installed, or even the copy does not run.
    """
    here = Python(program=Path(sys.executable), environ={})
    if _has_patroni(account, here):
        return here
    if account.user_id is None:
        raise ProgramsMissing(f"{here.program} has no Patroni; `make .venv/.dev` installs it")
    copy = _copied()
    # The program names the library by the place that it was built for; the system may have another of this name.
    copied = Python(program=copy / "bin" / "python", environ={"LD_LIBRARY_PATH": str(copy / "lib")})
    if not _has_patroni(account, copied):
        raise ProgramsMissing(f"{account.name} can run Patroni neither with {here.program} nor with {copied.program}")
    return copied


def _has_patroni(account: Account, python: Python) -> bool:
    imports = "import patroni.__main__, patroni.dcs.etcd3, psycopg"
    return account.can_run([python.program, "-c", imports], environ=python.environ)


def _copied() -> Path:
    """A copy of this interpreter, its library and Patroni, made when there is none of these very versions.

    Bytecode comes along: who runs the copy may not write it, and would compile at each start.
    """
    packages = _with_what_it_needs(_PATRONI)
    versions = [sys.version, sys.base_prefix, *sorted(f"{name} {one.version}" for name, one in packages.items())]
    copy = COPIES / f"patroni-{blake2b(repr(versions).encode(), digest_size=8).hexdigest()}"
    if not copy.exists():
        COPIES.mkdir(parents=True, exist_ok=True)
        unfinished = Path(mkdtemp(dir=COPIES))
        unfinished.chmod(0o755)
        _copy_python(unfinished)
        for package in packages.values():
            _copy_package(package, unfinished / _library() / "site-packages")
        unfinished.rename(copy)
    return copy


def _with_what_it_needs(wanted: Requirement) -> dict[str, Distribution]:
    """The installed packages that a requirement leads to, by name."""
    found: dict[str, Distribution] = {}
    waiting, seen = [wanted], set[str]()
    while waiting:
        one = waiting.pop()
        if str(one) in seen:
            continue
        seen.add(str(one))
        found[one.name] = distribution(one.name)
        for line in found[one.name].requires or ():
            needed = Requirement(line)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in one.extras | {""}):
                waiting.append(needed)
    return found


def _library() -> Path:
    # Python finds its library by its own place, which is one above `lib`.
    return Path("lib") / f"python{sys.version_info.major}.{sys.version_info.minor}"


def _copy_python(to: Path) -> None:
    (to / "bin").mkdir()
    shutil.copy2(Path(sys.executable).resolve(), to / "bin" / "python")
    shutil.copytree(sysconfig.get_path("stdlib"), to / _library(), ignore=_UNUSED)
    shared = Path(sysconfig.get_config_var("LIBDIR")) / str(sysconfig.get_config_var("INSTSONAME"))
    if shared.suffix != ".a" and shared.exists():
        shutil.copy2(shared, to / "lib")


def _copy_package(package: Distribution, to: Path) -> None:
    root = Path(str(package.locate_file(""))).resolve()
    for file in package.files or ():
        source = Path(str(package.locate_file(file))).resolve()
        # Not its scripts, which are alongside the library and name the other interpreter.
        if source.is_relative_to(root):
            target = to / source.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
