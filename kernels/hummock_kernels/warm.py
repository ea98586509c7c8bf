"""Compiling every kernel ahead of the first request."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_OWN = ("analyzer", "cosine", "signbit", "turns", "vocabulary", "topk", "postings", "hints")
_BESIDE = ("gather", "bm25", "files", "maxscore", "messages", "mmr", "rank", "replaced", "tokens")
"""Modules that a second process compiles in parallel if nothing is cached; they take about as long as `_OWN`."""

KERNEL_MODULES = (*_OWN, *_BESIDE)


def warm(progress: Callable[[str, int, int], None] | None = None) -> None:
    """Make every kernel ready to run; signatures are explicit, so that importing a module is compiling it.

    Twenty seconds of two cores on an empty cache, a fraction of a second afterwards. Calling it again costs nothing.

    Args:
        progress: Called after each module with its name, the number of modules done, and their total.
    """
    beside = _compile_beside()
    for done, name in enumerate(KERNEL_MODULES, start=1):
        if beside is not None and name == _BESIDE[0]:
            # Modules that it could not compile are compiled here.
            beside.wait()
        importlib.import_module(f"hummock_kernels.{name}")
        if progress is not None:
            progress(name, done, len(KERNEL_MODULES))


def _compile_beside() -> subprocess.Popen[bytes] | None:
    """A process that compiles its share, if the cache is empty and a core is free."""
    from hummock_kernels import _jit  # imports Numba, which importing this package must not do

    cache = _jit.cache_directory()
    if cache is None or any(cache.iterdir()) or (os.cpu_count() or 1) < 2:
        return None
    # It chooses the directory of the sources in the same place.
    environ = {**os.environ, "NUMBA_CACHE_DIR": str(Path(cache).parent)}
    command = [sys.executable, "-m", "hummock_kernels", *_BESIDE]
    try:
        return subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL)
    except OSError:
        return None
