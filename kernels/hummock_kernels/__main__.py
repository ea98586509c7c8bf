"""Compiles every kernel, at set-up: `python -m hummock_kernels`."""

import importlib
import os
import subprocess
import sys
from collections.abc import Sequence

from hummock_kernels.warm import warm

SHARES = (("analyzer", "cosine", "signbit", "turns", "vocabulary"), ("bm25", "maxscore", "mmr", "rank", "tokens"))
"""What two processes compile beside each other, in about the same time; what is missing takes no time of its own."""


def main(modules: Sequence[str]) -> int:
    """Compiles the kernels of these modules; without any those of all, on two cores where there are two."""
    if modules:
        for name in modules:
            importlib.import_module(f"hummock_kernels.{name}")
        return 0
    others = SHARES if (os.cpu_count() or 1) > 1 else ()
    started = [subprocess.Popen([sys.executable, "-m", "hummock_kernels", *share]) for share in others]
    failed = [process.wait() for process in started]
    # What is left, or all of it where a process failed.
    warm()
    return max(failed, default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
