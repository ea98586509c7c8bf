"""Argument types: Numba's for signatures, NumPy's for annotations. All arrays are C-contiguous.

Inputs are declared read-only, which accepts writeable arrays too: arrays over LMDB's bytes are read-only.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hummock_kernels._jit import types

Flags: TypeAlias = NDArray[np.uint8]
Bytes: TypeAlias = NDArray[np.int8]
Shorts: TypeAlias = NDArray[np.int16]
Halves: TypeAlias = NDArray[np.uint16]
Docs: TypeAlias = NDArray[np.int32]
Counts: TypeAlias = NDArray[np.int32]
Words: TypeAlias = NDArray[np.uint32]
Longs: TypeAlias = NDArray[np.uint64]
Indices: TypeAlias = NDArray[np.int64]
Vector: TypeAlias = NDArray[np.float32]
Matrix: TypeAlias = NDArray[np.float32]
Doubles: TypeAlias = NDArray[np.float64]

F32 = types.float32
F64 = types.float64
I64 = types.int64
U32 = types.uint32
VOID = types.void
Tuple: Any = types.Tuple

I8_2D = types.Array(types.int8, 2, "C", readonly=True)
U8_1D = types.Array(types.uint8, 1, "C", readonly=True)
U8_2D = types.Array(types.uint8, 2, "C", readonly=True)
U16_2D = types.Array(types.uint16, 2, "C", readonly=True)
I32_1D = types.Array(types.int32, 1, "C", readonly=True)
I32_2D = types.Array(types.int32, 2, "C", readonly=True)
U32_1D = types.Array(types.uint32, 1, "C", readonly=True)
I64_1D = types.Array(types.int64, 1, "C", readonly=True)
I64_2D = types.Array(types.int64, 2, "C", readonly=True)
U64_1D = types.Array(types.uint64, 1, "C", readonly=True)
U64_2D = types.Array(types.uint64, 2, "C", readonly=True)
U64_3D = types.Array(types.uint64, 3, "C", readonly=True)
F32_1D = types.Array(types.float32, 1, "C", readonly=True)
F32_2D = types.Array(types.float32, 2, "C", readonly=True)
F64_1D = types.Array(types.float64, 1, "C", readonly=True)

OUT_U8_1D = types.Array(types.uint8, 1, "C")
OUT_I32_1D = types.Array(types.int32, 1, "C")
OUT_I32_2D = types.Array(types.int32, 2, "C")
OUT_U32_1D = types.Array(types.uint32, 1, "C")
OUT_I64_1D = types.Array(types.int64, 1, "C")
OUT_I64_2D = types.Array(types.int64, 2, "C")
OUT_U64_1D = types.Array(types.uint64, 1, "C")
OUT_U64_2D = types.Array(types.uint64, 2, "C")
OUT_U64_3D = types.Array(types.uint64, 3, "C")
OUT_F32_1D = types.Array(types.float32, 1, "C")
OUT_F32_2D = types.Array(types.float32, 2, "C")
OUT_F64_1D = types.Array(types.float64, 1, "C")
