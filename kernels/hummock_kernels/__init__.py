"""Hummock's compiled kernels: pure functions over NumPy arrays.

Importing this package compiles nothing and does not import Numba; importing a kernel's module does both.
"""

from hummock_kernels.warm import warm

__all__ = ["warm"]
