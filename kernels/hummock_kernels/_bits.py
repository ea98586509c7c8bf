"""Counting bits. It may be shared by kernels, against the rule for helpers, because it will never change."""

from typing import Any

import numpy as np

from hummock_kernels._jit import IS_COMPILED, intrinsic, types


@intrinsic
def _count_by_cpu(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


def _count_by_hand(word: np.uint64) -> int:
    return int(word).bit_count()


bit_count = _count_by_cpu if IS_COMPILED else _count_by_hand
"""How many bits of a uint64 are set."""
