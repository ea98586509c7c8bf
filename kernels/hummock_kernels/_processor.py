"""Processor instructions that Numba does not offer, with fallbacks for targets without them."""

from typing import Any

import numpy as np
from llvmlite import ir

from hummock_kernels._jit import HAS_F16C, IS_COMPILED, helper, intrinsic, types
from hummock_kernels._types import Halves, Longs

# Value of the last mantissa bit for each exponent; 0 is the subnormals', which share the exponent of 1.
_UNIT = np.array([2.0 ** (max(exponent, 1) - 25) for exponent in range(31)], np.float32)


@intrinsic
def _count_by_cpu(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


def _count_by_hand(word: np.uint64) -> int:
    return int(word).bit_count()


bit_count = _count_by_cpu if IS_COMPILED else _count_by_hand
"""Number of bits set in a uint64."""


@intrinsic
def half_by_cpu(typing_context: Any, bits: Any) -> Any:
    """Convert a float16 to float32; only for targets with an instruction for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), generate


@helper()
def half_by_hand(bits: np.uint16) -> np.float32:
    """Convert a float16 to float32 on any target."""
    pattern = np.int64(bits)
    exponent = (pattern >> 10) & 31
    mantissa = pattern & 1023
    if exponent == 31:
        magnitude = np.float32(np.inf) if mantissa == 0 else np.float32(np.nan)
    elif exponent == 0:
        magnitude = np.float32(mantissa) * _UNIT[0]
    else:
        magnitude = np.float32(mantissa + 1024) * _UNIT[exponent]
    return -magnitude if pattern >> 15 else magnitude


half = half_by_cpu if HAS_F16C and IS_COMPILED else half_by_hand
"""Converts a float16 stored as uint16 to float32."""


@intrinsic
def _fetch_by_cpu(typing_context: Any, values: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch.p0", (), kind)
        # Into the second cache: the first waits for ten lines at most.
        to_read, second_cache, data = number(0), number(1), number(1)
        builder.call(fetch, [address, to_read, second_cache, data])
        return context.get_dummy_value()

    return types.void(values, types.int64), generate


def _fetch_by_hand(values: Halves | Longs, at: int) -> None:
    """Does nothing: plain Python cannot prefetch."""


fetch = _fetch_by_cpu if IS_COMPILED else _fetch_by_hand
"""Prefetches the value at a flat index of an array."""
