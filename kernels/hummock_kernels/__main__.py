"""Compiles kernels ahead of the first start: `python -m hummock_kernels [MODULE]...`, all of them without a name."""

import importlib
import sys

from hummock_kernels.warm import warm

if __name__ == "__main__":
    for name in sys.argv[1:]:
        importlib.import_module(f"hummock_kernels.{name}")
    if not sys.argv[1:]:
        warm()
