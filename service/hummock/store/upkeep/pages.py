"""The data file page by page, as one read transaction sees it.

While the transaction lives, LMDB uses none of its pages again, so that they can be read from the file beside the
process that writes it. Pages keep their places from one copy to the next: what did not change is the same bytes.
(LMDB's own copy either moves all pages or begins a transaction of its own, of which nothing else could be read.)

Source: the layout of meta pages is that of LMDB 0.9, `struct MDB_meta` in mdb.c.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lmdb

from hummock.store.errors import DirectoryUnusable

_MAGIC = 0xBEEFC0DE
_PAGE_NUMBER = struct.Struct("<Q")
_MAGIC_AT, _PAGE_SIZE_AT, _LAST_PAGE_AT = 16, 40, 136
_LAST_PAGE_AND_TRANSACTION = struct.Struct("<QQ")
_META_BYTES = 152
_META_PAGES = 2


class Overtaken(Exception):
    """Others committed twice since the transaction began, and what it rests on is no longer in the file's head."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilePages:
    """The file of one moment. `head` is its first two pages, `size_bytes` the whole of it."""

    descriptor: int
    head: bytes
    size_bytes: int

    def blocks(self, block_bytes: int) -> Iterator[bytes]:
        """The file in pieces of so many bytes, a multiple of a page; the last one may be shorter."""
        for start in range(0, self.size_bytes, block_bytes):
            length = min(block_bytes, self.size_bytes - start)
            block = os.pread(self.descriptor, length, start)
            # Pages at the end that were never used need not be in the file.
            block = block.ljust(length, b"\0")
            yield self.head + block[len(self.head) :] if start == 0 else block


def pages_of(descriptor: int, txn: lmdb.Transaction[bytes], directory: Path) -> FilePages:
    """The file as the transaction sees it.

    Args:
        descriptor: The data file, opened to read.
        txn: A read transaction on it.
        directory: Of the file, for people.

    Raises: Overtaken: begin another transaction; DirectoryUnusable.
    """
    first = os.pread(descriptor, _META_BYTES, 0)
    if len(first) < _META_BYTES or struct.unpack_from("<I", first, _MAGIC_AT)[0] != _MAGIC:
        raise DirectoryUnusable(directory, "its data file is none of LMDB", "restore it from a backup")
    (page_bytes,) = struct.unpack_from("<I", first, _PAGE_SIZE_AT)
    number = int(txn.id())
    place = number % _META_PAGES
    meta = os.pread(descriptor, page_bytes, place * page_bytes)
    last_page, meta_number = _LAST_PAGE_AND_TRANSACTION.unpack_from(meta, _LAST_PAGE_AT)
    if meta_number != number:
        raise Overtaken
    heads = [_renumbered(meta, page, number if page == place else 0) for page in range(_META_PAGES)]
    return FilePages(descriptor=descriptor, head=b"".join(heads), size_bytes=(last_page + 1) * page_bytes)


def _renumbered(meta: bytes, page: int, number: int) -> bytes:
    """A meta page at another place, of another transaction."""
    at, size = _LAST_PAGE_AT + _PAGE_NUMBER.size, _PAGE_NUMBER.size
    return _PAGE_NUMBER.pack(page) + meta[size:at] + _PAGE_NUMBER.pack(number) + meta[at + size :]
