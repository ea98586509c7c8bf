"""Compiling every kernel ahead of the first request."""

import importlib
from collections.abc import Callable

KERNEL_MODULES = (
    "analyzer",
    "bm25",
    "cosine",
    "maxscore",
    "mmr",
    "postings",
    "rank",
    "signbit",
    "tokens",
    "topk",
    "turns",
    "vocabulary",
)


def warm(progress: Callable[[str, int, int], None] | None = None) -> None:
    """Make every kernel ready to run; signatures are explicit, so that importing a module is compiling it.

    Seconds on an empty cache, a fraction of a second afterwards. Calling it again costs nothing.

    Args:
        progress: Called after each module with its name, the number of modules done, and their total.
    """
    for done, name in enumerate(KERNEL_MODULES, start=1):
        importlib.import_module(f"hummock_kernels.{name}")
        if progress is not None:
            progress(name, done, len(KERNEL_MODULES))
