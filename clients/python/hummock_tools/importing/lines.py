"""The lines of a file of memories, as they are or out of gzip."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final, cast

_GZIP: Final = b"\x1f\x8b"
_NOT_READ: Final = {
    b"PK\x03\x04": "is a ZIP archive; unpack it, and import the files that are in it",
    # Before UTF-16, whose mark these begin with.
    codecs.BOM_UTF32_LE: "is UTF-32 (byte 0); write it as UTF-8: iconv -f UTF-32 -t UTF-8",
    codecs.BOM_UTF32_BE: "is UTF-32 (byte 0); write it as UTF-8: iconv -f UTF-32 -t UTF-8",
    codecs.BOM_UTF16_LE: "is UTF-16 (byte 0); write it as UTF-8: iconv -f UTF-16 -t UTF-8",
    codecs.BOM_UTF16_BE: "is UTF-16 (byte 0); write it as UTF-8: iconv -f UTF-16 -t UTF-8",
}
"""Messages by the first bytes of files that cannot be read."""

MOST_BYTES = 256 << 20
"""Held at once: of a line out of gzip, and of a file that is a list."""


class BadFile(Exception):
    """The file cannot be read from this line on; the message says why."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.number = number


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file with their ends; where it is gzip, of what is in it. Raises: BadFile, OSError."""
    buffered = io.BufferedReader(cast(io.RawIOBase, file))
    try:
        head = buffered.peek(4)[:4]
        for beginning, reason in _NOT_READ.items():
            if head.startswith(beginning):
                raise BadFile(1, reason)
        if head.startswith(_GZIP):
            yield from _unpacked(gzip.GzipFile(fileobj=buffered))
        else:
            yield from buffered
    finally:
        # The file is its caller's to close; an import that was broken off ends here after it has.
        if not file.closed:
            buffered.detach()


def _unpacked(packed: gzip.GzipFile) -> Iterator[bytes]:
    number = 0
    try:
        # A few bytes of gzip may hold any number of one: no more than this is unpacked before it is looked at.
        while line := packed.readline(MOST_BYTES + 1):
            number += 1
            if len(line) > MOST_BYTES:
                raise BadFile(number, f"unpacks to a line of more than {MOST_BYTES >> 20} MiB")
            yield line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadFile(number + 1, f"is cut off or damaged, as gzip: {error}") from error
