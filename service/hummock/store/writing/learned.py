"""The learned keywords of a memory: the fourth count of its forward list, which no edit of the memory touches.

They come and go without the memory being embedded again: it moves to a new document with all else as it was, so that
views follow as they follow an edit. Its length stays, so that what is learnt of a memory takes nothing from its own
words.
"""

from __future__ import annotations

import lmdb
import numpy as np
from numpy.typing import NDArray

from hummock.store import keys
from hummock.store.environment import Tables
from hummock.store.records import codec
from hummock.store.views.columns import renumbered
from hummock_kernels.vocabulary import pack_lists

_LEARNED = np.uint32(0xFF00_0000)
_WORD = np.dtype("<u4")


def learned_of(stored: bytes) -> bytes:
    """The learned keywords in a stored list, as a list of their own; empty where there are none."""
    term, counts = _halves(stored)
    learned = counts & _LEARNED
    held = learned != 0
    return _stored(term[held], learned[held])


def with_learned(stored: bytes, learned: bytes) -> bytes:
    """A stored list with these learned keywords instead of its own."""
    term, counts = _halves(stored)
    own = counts & ~_LEARNED
    # Facets count 0 everywhere; another term that would do so now was there for what had been learnt.
    kept = (own != 0) | (counts == 0)
    learned_term, learned_counts = _halves(learned)
    terms = np.concatenate([term[kept], learned_term])
    words, _ = pack_lists(np.array([0, len(terms)], np.int64), terms, np.concatenate([own[kept], learned_counts]))
    return words.astype(_WORD, copy=False).tobytes()


def move_doc(
    txn: lmdb.Transaction[bytes], tables: Tables, number: int, space: int, old: int, new: int, forward_list: bytes
) -> codec.MemoryRecord:
    """Puts all of a document under a new number, with another forward list, and gives its record.

    The old document, and the memory's id, are left to the caller.
    """
    old_key, new_key = keys.doc_key(number, old), keys.doc_key(number, new)
    value = txn.get(old_key, b"", db=tables.memory)
    record = codec.decode_memory(value)
    txn.put(new_key, value, db=tables.memory)
    txn.put(new_key, txn.get(old_key, b"", db=tables.payload), db=tables.payload)
    txn.put(new_key, renumbered(txn.get(old_key, b"", db=tables.column), new), db=tables.column)
    txn.put(new_key, forward_list, db=tables.terms)
    for chunk in range(record.chunk_count):
        old_chunk, new_chunk = keys.chunk_key(number, space, old, chunk), keys.chunk_key(number, space, new, chunk)
        for table in (tables.vector, tables.token):
            part = txn.get(old_chunk, db=table)
            if part is not None:
                txn.put(new_chunk, part, db=table)
    if record.text:
        txn.put(keys.text_key(number, record.text, new), b"", db=tables.by_text)
    return record


def _halves(stored: bytes) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    words = np.frombuffer(stored, _WORD)
    half = len(words) // 2
    return words[:half], words[half:]


def _stored(term: NDArray[np.uint32], counts: NDArray[np.uint32]) -> bytes:
    return term.tobytes() + counts.tobytes()
