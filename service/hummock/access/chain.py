"""The chain of the audit log: each line holds the SHA-256 of the whole line before it, whatever that is.

The first line of a file holds that of the last one of the file before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

FILE_NAME = "audit.jsonl"
KEPT_FILES = 16
"""Full ones beside the one that is written; the oldest is removed for the next."""

NO_LINE = "0" * 64
"""Stands before the very first line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is true of an audit log.

    Attributes:
        lines: How many there are.
        first, last: Numbers of the first and the last one; 0 without any. The first is above 1 where old files were
            removed.
        head: Hash of the last line, to be noted elsewhere: who removes the last lines removes no link.
        problems: What is wrong, with file and line; empty where nothing is.
    """

    lines: int
    first: int
    last: int
    head: str
    problems: tuple[str, ...]


def verify(data_dir: Path, known_head: str = "") -> Verdict:
    """Reads all files and compares each line with the one before.

    Args:
        data_dir: Where they lie.
        known_head: A head that was noted before, which must still be there; empty for none.

    Raises: OSError.
    """
    problems: list[str] = []
    lines = first = last = 0
    head, seen = "", not known_head
    for where, line in _lines(data_dir):
        lines += 1
        told = link_of(line)
        if told is None:
            problems.append(f"{where} is no whole line; the process may have been killed while it wrote it")
        else:
            number, before = told
            if head and before != head:
                problems.append(f"{where}: the line before it was removed or changed")
            elif head and last and number != last + 1:
                problems.append(f"{where} has number {number}; {last + 1} was to come")
            elif number == 1 and before != NO_LINE:
                problems.append(f"{where} was changed")
            first, last = first or number, number
        head = hash_of(line)
        seen = seen or head == known_head
    if first > 1 and len(files_of(data_dir)) < KEPT_FILES:
        problems.insert(0, f"the lines before number {first} were removed")
    if not seen:
        problems.append(f"no line has the hash {known_head}: lines were removed behind it, or it was changed")
    return Verdict(lines=lines, first=first, last=last, head=head or NO_LINE, problems=tuple(problems))


def files_of(data_dir: Path) -> list[Path]:
    """Those that are full, the oldest first."""
    return sorted(data_dir.glob("audit-*.jsonl"))


def _lines(data_dir: Path) -> Iterator[tuple[str, bytes]]:
    """Each line, and where it stands."""
    for path in (*files_of(data_dir), data_dir / FILE_NAME):
        if path.exists():
            with path.open("rb") as opened:
                for number, line in enumerate(opened, 1):
                    yield f"{path.name}:{number}", line


def last_link(data_dir: Path) -> tuple[int, str]:
    """Number of the last whole line, and the hash of the last line there is."""
    for path in (data_dir / FILE_NAME, *files_of(data_dir)[::-1]):
        lines = path.read_bytes().removesuffix(b"\n").split(b"\n") if path.exists() else []
        if any(lines):
            return next((told[0] for line in reversed(lines) if (told := link_of(line))), 0), hash_of(lines[-1])
    return 0, NO_LINE


def link_of(line: bytes) -> tuple[int, str] | None:
    """Its number and the hash of the line before; None where it is not whole."""
    try:
        told = json.loads(line)
        return int(told["n"]), str(told["before"])
    except (ValueError, LookupError, TypeError):
        return None


def hash_of(line: bytes) -> str:
    """What the line behind it holds. One that lacks its end, as a power cut leaves it, will have it then."""
    return sha256(line.removesuffix(b"\n") + b"\n").hexdigest()
