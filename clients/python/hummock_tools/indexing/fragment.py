"""A source file from the walk, and the fragments that the chunker cuts it into."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b

MAX_ID_BYTES = 256
_DIGEST_BYTES = 8
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A text file: its path relative to the root, with `/` between parts, and its text as UTF-8.

    For a notebook it is the text of its cells. `guessed` is the encoding guessed for the bytes on disk; empty if they
    are UTF-8 or declare their encoding.
    """

    path: str
    data: bytes
    guessed: str = ""

    def text(self) -> str:
        r"""The decoded text without byte order mark, every line end as `\n`.

        Raises:
            UnicodeDecodeError: The bytes are not UTF-8; the walk never yields such a file.
        """
        text = self.data.decode("utf-8-sig")
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def lines(self) -> list[str]:
        r"""The lines of `text`; only `\n` parts them, so that numbers agree with the parser's rows."""
        return self.text().split("\n")

    @property
    def suffix(self) -> str:
        """The extension in lower case with its dot, empty when the name has none."""
        return suffix_of(self.path)


def suffix_of(path: str) -> str:
    """The extension of a path's name in lower case with its dot, empty when the name has none."""
    stem, dot, extension = path.rpartition("/")[2].rpartition(".")
    return f".{extension.lower()}" if dot and stem else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A run of lines of one file that is worth recalling on its own.

    `start_line` and `end_line` count from 1, both inclusive. A large class is one fragment that spans all its lines
    with the bodies of its members left out of the content; the members are fragments of their own. `title` is the
    symbol with a function's parameters, empty without a symbol.
    """

    id: str
    path: str
    language: str
    symbol: str
    title: str
    start_line: int
    end_line: int
    content: str

    def __post_init__(self) -> None:
        if not 1 <= self.start_line <= self.end_line:
            raise ValueError(f"{self.id}: lines {self.start_line} to {self.end_line} are no range")


def located_id(path: str, place: str) -> str:
    """The id of a place in a file: `path#place`, at most 256 bytes of UTF-8.

    Two places never share an id: `#` in a path is escaped, and an id that had to be cut ends in a digest of the whole.
    """
    whole = f"{escaped(path)}#{place}"
    raw = whole.encode()
    if len(raw) <= MAX_ID_BYTES:
        return whole
    digest = blake2b(raw, digest_size=_DIGEST_BYTES).hexdigest()
    kept = raw[: MAX_ID_BYTES - len(digest) - 1].decode(errors="ignore")
    return f"{kept}~{digest}"


def escaped(path: str) -> str:
    """Escape a path for the beginning of an id."""
    return path.replace("%", "%25").replace("#", "%23")


def distinct(place: str, taken: set[str]) -> str:
    """`place`, or the first free one of `place~2`, `place~3` …; the answer is added to `taken`.

    Control characters and those that turn the direction of writing, which no id may hold, become `?`.
    """
    place = _CONTROL.sub("?", place)
    candidate, turn = place, 1
    while candidate in taken:
        turn += 1
        candidate = f"{place}~{turn}"
    taken.add(candidate)
    return candidate
