"""The directory that keeps compiled kernels between runs.

Numba reuses a cached kernel while its own file is unchanged, even if its helpers in other files have changed. So each
state of the sources has its own directory.
"""

import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

_STATE = re.compile(r"hummock-[0-9a-f]{16}")
_COMPILED = "compiled"
"""Folder of the package that holds kernels compiled ahead, by state and target; only some wheels have it."""
_KEPT_STATES = 3
"""States of the sources to keep: this one and the latest others, so that alternating versions stay compiled."""


def cache_dir_of(package: Path, environ: Mapping[str, str]) -> Path:
    """The directory for the present state of the package's sources; older ones are removed.

    Raises:
        OSError: Nothing can be written anywhere.
    """
    digest = hashlib.sha256()
    for source in sorted(package.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    directory = choose_cache_dir(package, environ, f"hummock-{digest.hexdigest()[:16]}")
    os.utime(directory)
    states = [path for path in directory.parent.iterdir() if _STATE.fullmatch(path.name)]
    for path in sorted(states, key=_last_used)[:-_KEPT_STATES]:
        shutil.rmtree(path, ignore_errors=True)
    return directory


def _last_used(directory: Path) -> int:
    try:
        return directory.stat().st_mtime_ns
    except FileNotFoundError:
        # Another process is removing it as well.
        return 0


def compiled_ahead(package: Path, cache: Path, target: str) -> Path | None:
    """The folder of kernels that the package brings for this state of its sources and this target, if it does."""
    folder = package / _COMPILED / cache.name / target
    return folder if folder.is_dir() else None


def copy_missing(source: Path, folder: Path) -> None:
    """Copy the files that a folder lacks; another process may do the same at the same time.

    Numba's indices (.nbi) come last: they name the other files.

    Raises:
        OSError: A file cannot be written.
    """
    for path in sorted(source.iterdir(), key=lambda path: (path.suffix == ".nbi", path.name)):
        if not (folder / path.name).exists():
            part = folder / f"{path.name}.{os.getpid()}"
            shutil.copyfile(path, part)
            part.replace(folder / path.name)


def choose_cache_dir(package: Path, environ: Mapping[str, str], name: str = "") -> Path:
    """An existing, writable directory of this name for compiled kernels, never another user's.

    Tried in order: `NUMBA_CACHE_DIR`, alongside the package, `XDG_CACHE_HOME`, `HOME`, `HUMMOCK_DATA`, the temporary
    directory, which serves a read-only install without a home.

    Raises:
        OSError: Nothing can be written anywhere.
    """
    for candidate in _candidates(package, environ):
        if _is_writable(candidate) and _is_writable(candidate / name):
            return candidate / name
    directory = _private_temporary_directory() / name
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def _candidates(package: Path, environ: Mapping[str, str]) -> list[Path]:
    configured = Path(environ.get("NUMBA_CACHE_DIR", ""))
    if _STATE.fullmatch(configured.name):
        # Set by the parent process, which chose the directory.
        configured = configured.parent
    places = (("XDG_CACHE_HOME", "hummock/numba"), ("HOME", ".cache/hummock/numba"), ("HUMMOCK_DATA", "cache/numba"))
    users = [Path(environ[name]) / tail for name, tail in places if Path(environ.get(name, "")).is_absolute()]
    return [*([configured] if configured.name else []), package / "__pycache__", *users]


def _is_writable(directory: Path) -> bool:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Asking the file system is the only true test: permission bits say nothing to root or about a read-only mount.
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        return False
    return True


def _private_temporary_directory() -> Path:
    """This user's own directory: the cache holds code, so nobody else may be able to put a file there."""
    owner = os.getuid()
    directory = Path(tempfile.gettempdir()) / f"hummock-numba-{owner}"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        status = directory.lstat()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="hummock-numba-"))
    is_private = stat.S_ISDIR(status.st_mode) and status.st_uid == owner and not status.st_mode & 0o077
    if is_private and _is_writable(directory):
        return directory
    return Path(tempfile.mkdtemp(prefix="hummock-numba-"))
