"""The dtypes of columns are read from their annotations, as every NumPy that is supported writes them."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import pytest
from msgspec import Struct
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

from hummock.core import candidates
from hummock.core.candidates import MemoryColumns, dtypes_of

_Scalar = TypeVar("_Scalar", bound=np.generic)
# NumPy 2.5 and later declare NDArray in this way.
Alias = TypeAliasType("Alias", "np.ndarray[tuple[Any, ...], np.dtype[_Scalar]]", type_params=(_Scalar,))


class Plain(Struct):
    """Columns by this NumPy's own name for an array, and a field that is none."""

    ids: NDArray[np.int64]
    name: str
    scores: NDArray[np.float32]


class Aliased(Struct):
    """Columns by an alias that is a type of its own, and a field that is none."""

    ids: Alias[np.int64]
    name: str
    scores: Alias[np.float32]


def test_the_dtypes_are_the_same_by_either_name(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {"ids": np.dtype(np.int64), "scores": np.dtype(np.float32)}
    assert dtypes_of(Plain) == expected
    monkeypatch.setattr(candidates, "NDArray", Alias)
    found: dict[str, Any] = dict(dtypes_of(Aliased))
    assert found == expected


def test_all_columns_of_memories_have_one() -> None:
    assert len(dtypes_of(MemoryColumns)) > 20
