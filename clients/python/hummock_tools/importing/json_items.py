"""Reads JSON from a file with line numbers, and the fields of foreign records.

A file has messages, one a line, or objects, one a line or in lists.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import gzip
import io
import json
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import BinaryIO, Final, NamedTuple, TypeVar, cast

from google.protobuf.json_format import Parse, ParseDict, ParseError
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.requests import vector
from hummock_client.v1.transfer_pb2 import TransferRecord

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]
"""A JSON value."""

Fields = dict[str, Value]
"""A JSON object."""

_FIRST_MILLISECONDS = 1e11
"""Numbers from here on are milliseconds: as seconds they would lie after the year 5000, as those in 1973."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Position of a record in its file: its line, and its place in a list, from 1; 0 where each has its own line."""

    line: int
    record: int = 0

    def __str__(self) -> str:
        return f"line {self.line}, record {self.record}" if self.record else f"line {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A record: if it has a vector that was not requested, and how many labels and facts the contract does not take."""

    place: Place
    record: TransferRecord
    has_unused_vector: bool = False
    unfit: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A part of the file that is no record, and why."""

    place: Place
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotWhole:
    """The last part of a file that is not whole, and why: nothing after it was read."""

    place: Place
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherProject:
    """A record of another project than the one that is asked for."""

    place: Place
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """A record whose state marks it as no longer valid."""

    place: Place
    state: str


Part = Line | BadLine | NotWhole | OtherProject | Retired


class BadRecord(Exception):
    """A JSON object is no record of its format; the message says why."""


def text(fields: Fields, name: str, *, required: bool = False) -> str:
    """A text; "" when it is missing or null. Numbers are written out. Raises: BadRecord."""
    value = fields.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value is None or value == "":
        if required:
            raise BadRecord(f"{name} is missing")
        return ""
    if not isinstance(value, str):
        raise BadRecord(f"{name} is no text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRecord(f"{name} holds half a character (a lone surrogate)") from None
    return value


def time(fields: Fields, name: str) -> Timestamp | None:
    """Parse a time in ISO 8601 (UTC without a zone) or in seconds or milliseconds since 1970. Raises: BadRecord."""
    value = fields.get(name)
    if value is None or value == "":
        return None
    made = Timestamp()
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            made.FromDatetime(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
            return made
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            seconds = value / 1000 if abs(value) >= _FIRST_MILLISECONDS else value
            made.FromMicroseconds(round(seconds * 1e6))
            made.ToJsonString()
            return made
    except (ValueError, OverflowError):
        pass
    raise BadRecord(f"{name} is no time")


def embedding(fields: Fields, name: str) -> bytes:
    """A vector as little-endian float32, of a list of numbers or Base64; b"" without one. Raises: BadRecord."""
    value = fields.get(name)
    if value is None or value in ("", []):
        return b""
    if isinstance(value, list):
        numbers = [one for one in value if isinstance(one, int | float) and not isinstance(one, bool)]
        if len(numbers) < len(value):
            raise BadRecord(f"{name} is no list of numbers")
        try:
            return vector(numbers, "").values
        except OverflowError:
            raise BadRecord(f"{name} holds a number that float32 does not") from None
    if not isinstance(value, str):
        raise BadRecord(f"{name} is neither Base64 nor a list of numbers")
    try:
        data = base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        raise BadRecord(f"{name} is no Base64") from None
    if len(data) % struct.calcsize("<f"):
        raise BadRecord(f"{name} has {len(data)} bytes; float32 takes 4 for each component")
    return data


_GZIP: Final = b"\x1f\x8b"
_WIDE: Final = "is UTF-{0} (byte 0); write it as UTF-8: iconv -f UTF-{0} -t UTF-8"
_NOT_READ: Final = {
    b"PK\x03\x04": "is a ZIP archive; unpack it, and import the files that are in it",
    # Before UTF-16, whose mark these begin with.
    **dict.fromkeys((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), _WIDE.format(32)),
    **dict.fromkeys((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), _WIDE.format(16)),
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
    """Yield the lines of a file with their ends, unpacked if it is gzip. Raises: BadFile, OSError."""
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


AnyMessage = TypeVar("AnyMessage", bound=Message)

_LISTS = ("results", "memories", "items", "data")
"""Names of an object's fields with lists."""

_SPACE = " \t\r\n"


class Item(NamedTuple):
    """A value and its position; `beside` are the fields before its list in the same object."""

    place: Place
    value: Value
    beside: Fields


def messages(
    lines: Iterable[bytes], type_: type[AnyMessage], upgraded: Callable[[Value], Value] | None = None
) -> Iterator[tuple[Place, AnyMessage] | BadLine]:
    """A message in protobuf's JSON mapping from each line that is not empty.

    `upgraded` makes JSON of today's message of that of an older one; None where there never was another.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place, text = Place(line=number), _decoded(number, line)
        if isinstance(text, BadLine):
            yield text
        elif text.strip():
            try:
                yield place, _message(text, type_, upgraded)
            except (ParseError, RecursionError) as error:
                yield BadLine(place=place, reason=" ".join(str(error).split()))


def _message(text: str, type_: type[AnyMessage], upgraded: Callable[[Value], Value] | None) -> AnyMessage:
    try:
        return Parse(text, type_())
    except ParseError:
        # Nearly all lines have the current form, so only others pay for the conversion.
        value = _value(text)
        older = None if value is None or upgraded is None else upgraded(value[0])
        if value is None or not isinstance(older, dict) or older == value[0]:
            raise
        return ParseDict(older, type_())


def items(lines: Iterable[bytes]) -> Iterator[Item | BadLine | NotWhole]:
    """Yield the values of the file: one per line, or those of its lists.

    It is of lists where its first line is one, holds one, or is no whole value. Such lists, or objects that hold some,
    may follow each other, as pages do that were fetched one by one; nothing else may stand between them.

    Raises: BadFile.
    """
    numbered = enumerate(lines, start=1)
    for number, line in numbered:
        text = _decoded(number, line)
        if isinstance(text, BadLine):
            yield text
        elif text.strip(_SPACE):
            whole = _value(text)
            if whole is None or isinstance(whole[0], list) or _holds_list(whole[0]):
                yield from _of_documents(number, _joined(line, numbered))
            else:
                yield from _one_a_line(chain([(number, line)], numbered))
            return
    yield NotWhole(place=Place(line=1), reason="is empty")


def _joined(first: bytes, rest: Iterable[tuple[int, bytes]]) -> bytes:
    lines, size = [first], len(first)
    for number, line in rest:
        size += len(line)
        if size > MOST_BYTES:
            raise BadFile(number, f"is a list of more than {MOST_BYTES >> 20} MiB; write its records one a line")
        lines.append(line)
    return b"".join(lines)


def _one_a_line(numbered: Iterable[tuple[int, bytes]]) -> Iterator[Item | BadLine]:
    for number, line in numbered:
        text = _decoded(number, line)
        if isinstance(text, BadLine):
            yield text
        elif text.strip(_SPACE):
            place = Place(line=number)
            try:
                yield Item(place, json.loads(text), {})
            except (ValueError, RecursionError) as error:
                yield BadLine(place=place, reason=f"is no JSON: {_said(error)}")


def _of_documents(first: int, data: bytes) -> Iterator[Item | BadLine | NotWhole]:
    """The elements of the lists that are, or are held by, the documents in the text; it begins on the line `first`."""
    text = _decoded(first, data)
    if isinstance(text, BadLine):
        yield NotWhole(place=text.place, reason=text.reason)
        return
    documents = _Documents(text, first)
    try:
        while documents.peek():
            yield from documents.elements({}) if documents.peek() == "[" else documents.elements_of_object()
    except (ValueError, RecursionError) as error:
        reason = f"is no JSON: {_said(error)}; what follows was not read"
        yield NotWhole(place=Place(line=documents.line()), reason=reason)


class _Documents:
    """A walk through a JSON text that knows its line, and counts the elements of lists."""

    def __init__(self, text: str, first: int) -> None:
        self._text = text
        self._record = 0
        self._at = 0
        self._counted = 0
        self._line = first
        self._decoder = json.JSONDecoder()

    def line(self) -> int:
        """The line of the next character that is no space."""
        self.peek()
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def peek(self) -> str:
        """The next character that is no space; "" at the end."""
        while self._at < len(self._text) and self._text[self._at] in _SPACE:
            self._at += 1
        return self._text[self._at : self._at + 1]

    def elements_of_object(self) -> Iterator[Item | BadLine]:
        """Elements of the next object's lists; the line is reported if it has no list. Raises: ValueError."""
        first, has_list = self.line(), False
        beside: Fields = {}
        self._take("{")
        while self.peek() != "}":
            name = self._next()
            self._take(":")
            if name in _LISTS and self.peek() == "[":
                has_list = True
                yield from self.elements(beside)
            else:
                beside[str(name)] = self._next()
            if self.peek() != "}":
                self._take(",")
        self._take("}")
        if not has_list:
            yield BadLine(place=Place(line=first), reason=f"holds no list named {', '.join(_LISTS)}")

    def elements(self, beside: Fields) -> Iterator[Item]:
        """The elements of the list that comes next; `beside` stands before it. Raises: ValueError."""
        self._take("[")
        while self.peek() != "]":
            self._record += 1
            place = Place(line=self.line(), record=self._record)
            yield Item(place, self._next(), beside)
            if self.peek() != "]":
                self._take(",")
        self._take("]")

    def _take(self, character: str) -> None:
        if self.peek() != character:
            raise ValueError(f"{character!r} is missing")
        self._at += 1

    def _next(self) -> Value:
        self.peek()
        value: Value
        value, self._at = self._decoder.raw_decode(self._text, self._at)
        return value


def _value(text: str) -> tuple[Value] | None:
    """The value that a text is; None when it is not a whole one."""
    try:
        return (json.loads(text),)
    except (ValueError, RecursionError):
        return None


def _holds_list(value: Value) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(name), list) for name in _LISTS)


def _decoded(number: int, data: bytes) -> str | BadLine:
    try:
        return data.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        line = number + data.count(b"\n", 0, error.start)
        at = error.start - data.rfind(b"\n", 0, error.start) - 1
        return BadLine(place=Place(line=line), reason=f"is not UTF-8 (byte {at})")


def _said(error: ValueError | RecursionError) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
