"""Where compiled kernels are kept between runs."""

import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path


def choose_cache_dir(package: Path, environ: Mapping[str, str]) -> Path | None:
    """A directory for compiled kernels that exists and can be written; None stands for the package's own `__pycache__`.

    Tried in order: `NUMBA_CACHE_DIR`, beside the package, `XDG_CACHE_HOME`, `HOME`, `HUMMOCK_DATA`, the temporary
    directory, which serves a read-only install without a home.

    Raises:
        OSError: Nothing can be written anywhere.
    """
    configured = environ.get("NUMBA_CACHE_DIR")
    if configured and _is_writable(Path(configured)):
        return Path(configured)
    if _is_writable(package / "__pycache__"):
        return None
    for candidate in _candidates(environ):
        if _is_writable(candidate):
            return candidate
    return _private_temporary_directory()


def _candidates(environ: Mapping[str, str]) -> list[Path]:
    places = (("XDG_CACHE_HOME", "hummock/numba"), ("HOME", ".cache/hummock/numba"), ("HUMMOCK_DATA", "cache/numba"))
    return [Path(environ[name]) / tail for name, tail in places if Path(environ.get(name, "")).is_absolute()]


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
