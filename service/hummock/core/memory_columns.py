"""The columns that search keeps of memories: one table of their names, types and order on disk."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class MemoryColumns(Struct, frozen=True, kw_only=True, eq=False):
    """Row i of every column is the same memory. Stored rows have the same fields in the same order.

    A new column goes to the end, and is 0 in rows that were stored before it.

    Attributes:
        doc: The store's number; never reused.
        create_time: Unix seconds.
        update_time: Unix seconds.
        event_time: Unix seconds; NaN when not known.
        text_hash: Equal for texts that differ in case, width, spaces, faces and final marks alone.
        id_hash: Of the memory's id.
        length: Terms with repetitions.
        session_position: Ascending in a session; -1 without one.
        chunk_count: Its vector rows; 0 while it waits for its vectors.
        kind: MemoryKind.
        origin: Origin.
        session: Equal for memories of one session; 0 without one.
        traits: `text.traits.Trait` of what was said.
        name_hash: Equal for what may be versions of one thing; 0 for what has no name.
        supersedes: 1 if it names memories that it replaces.
        speaker: Equal for memories of one speaker; 0 without one.
        file: Equal for fragments of one file; 0 for what is no code.
        helpful: Voices that said so of its text.
        wrong: Voices that said so of its text.
        expire_time: Unix seconds; 0 if it never ends.
        token_sign: `store.views.row_codec.TokenSign`.
        writer: Equal for what one caller wrote and nobody vouches for; 0 of all else.
        apart: Differs for texts that are never copies, however alike (`text.likeness`).
    """

    doc: NDArray[np.int64]
    create_time: NDArray[np.float64]
    update_time: NDArray[np.float64]
    event_time: NDArray[np.float64]
    text_hash: NDArray[np.uint64]
    id_hash: NDArray[np.uint64]
    length: NDArray[np.float32]
    session_position: NDArray[np.int32]
    chunk_count: NDArray[np.int32]
    kind: NDArray[np.uint8]
    origin: NDArray[np.uint8]
    session: NDArray[np.uint64]
    traits: NDArray[np.uint8]
    name_hash: NDArray[np.uint64]
    supersedes: NDArray[np.uint8]
    speaker: NDArray[np.uint32]
    file: NDArray[np.uint32]
    helpful: NDArray[np.uint8]
    wrong: NDArray[np.uint8]
    expire_time: NDArray[np.float64]
    token_sign: NDArray[np.uint8]
    writer: NDArray[np.uint32]
    apart: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.doc)


@cache
def dtypes_of(columns: type[MemoryColumns]) -> Mapping[str, np.dtype[Any]]:
    """The type of each field that is an array, in the order of the fields."""
    hints = get_type_hints(columns)
    arrays = {name: hints[name] for name in columns.__struct_fields__ if get_origin(hints[name]) is np.ndarray}
    return {name: np.dtype(get_args(get_args(hint)[1])[0]) for name, hint in arrays.items()}
