"""The audit log: a JSON line for each write and each administrative call, in a hash chain that reveals removals.

Each line contains the SHA-256 of the whole previous line, whatever that is; the first line of a file that of the last
line of the previous file. It contains no memory content.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
import structlog

from hummock.access.tokens import shown_time
from hummock.core.errors import NotReady, StartError

FILE_NAME = "audit.jsonl"
KEPT_FILES = 16
"""Number of full files kept in addition to the current one; the oldest is removed for the next."""

NO_LINE = "0" * 64
"""Hash before the very first line."""

MAX_FILE_BYTES = 16 << 20
_log = structlog.get_logger("hummock.access")


class AuditFailed(NotReady):
    """The audit log cannot be written."""

    reason = "AUDIT_FAILED"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"the audit log cannot be written ({problem}), and what administers is not done without; make room, or "
            "mend the rights of the data directory"
        )
        self.problem = problem


class AuditLog:
    """Appends lines. Thread-safe."""

    def __init__(self, data_dir: Path, max_file_bytes: int = MAX_FILE_BYTES) -> None:
        """Open the log, to continue after its last line. Raises: StartError."""
        self._path = data_dir / FILE_NAME
        self._max_file_bytes = max_file_bytes
        self._lock = Lock()
        self._file = -1
        try:
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._number, self._head = last_link(data_dir)
            self._open()
        except OSError as error:
            raise StartError(
                f"{self._path} cannot be written: {error.strerror}; mend it, or switch audit off"
            ) from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def append(self, told: Mapping[str, Any], now_s: float, *, is_durable: bool = False) -> None:
        """Write a line.

        Args:
            told: Its fields, besides its number and time.
            now_s: Unix seconds.
            is_durable: Whether to wait until it is on the disk.

        Raises:
            AuditFailed: It could not be written or made durable.
        """
        with self._lock:
            number = self._number + 1
            said = {"n": number, "time": shown_time(now_s), **told, "before": self._head}
            line = msgspec.json.encode(said) + b"\n"
            try:
                if self._file < 0:
                    self._open()
                if self._size and self._size + len(line) > self._max_file_bytes:
                    self._turn()
                self._write(line)
                self._number, self._head = number, hash_of(line)
                if is_durable:
                    os.fsync(self._file)
            except OSError as error:
                _log.error("audit_failed", problem=error.strerror)
                raise AuditFailed(error.strerror or "unknown") from error

    def _write(self, line: bytes) -> None:
        written = os.write(self._file, line)
        self._size += written
        if written == len(line):
            return
        # A full disk took only a part. Remove it, so that the chain continues after the last whole line.
        self._size -= written
        os.ftruncate(self._file, self._size)
        raise OSError(28, os.strerror(28))

    def _open(self) -> None:
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._file, self._size = file, os.fstat(file).st_size
        if self._size and not _ends_a_line(self._path):
            # The rest of a line after a power cut is kept as a line.
            self._write(b"\n")

    def _turn(self) -> None:
        """Rename the full file by the number of its last line, and begin another."""
        os.fsync(self._file)
        os.close(self._file)
        self._file = -1
        self._path.replace(self._path.with_name(f"audit-{self._number:012}.jsonl"))
        for old in files_of(self._path.parent)[:-KEPT_FILES]:
            old.unlink()
        self._open()


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as opened:
        opened.seek(-1, os.SEEK_END)
        return opened.read() == b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Result of verifying an audit log.

    Attributes:
        lines: Number of lines.
        first, last: Numbers of the first and the last line; 0 without any. The first is above 1 if old files were
            removed.
        head: Hash of the last line, to be stored elsewhere: removing the last lines breaks no link.
        problems: Problems with file and line; empty if there are none.
    """

    lines: int
    first: int
    last: int
    head: str
    problems: tuple[str, ...]


def verify(data_dir: Path, known_head: str = "") -> Verdict:
    """Read all files and check each line's link to the previous one.

    Args:
        data_dir: The data directory.
        known_head: A head stored earlier, which must still be present; empty for none.

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
    """The full files, the oldest first."""
    return sorted(data_dir.glob("audit-*.jsonl"))


def _lines(data_dir: Path) -> Iterator[tuple[str, bytes]]:
    """All lines with their locations (`file:line`)."""
    for path in (*files_of(data_dir), data_dir / FILE_NAME):
        if path.exists():
            with path.open("rb") as opened:
                for number, line in enumerate(opened, 1):
                    yield f"{path.name}:{number}", line


def last_link(data_dir: Path) -> tuple[int, str]:
    """Number of the last whole line, and hash of the last line, whole or not."""
    for path in (data_dir / FILE_NAME, *files_of(data_dir)[::-1]):
        lines = path.read_bytes().removesuffix(b"\n").split(b"\n") if path.exists() else []
        if any(lines):
            return next((told[0] for line in reversed(lines) if (told := link_of(line))), 0), hash_of(lines[-1])
    return 0, NO_LINE


def link_of(line: bytes) -> tuple[int, str] | None:
    """A line's number and the hash of the previous line; None if it is not whole."""
    try:
        told = json.loads(line)
        return int(told["n"]), str(told["before"])
    except (ValueError, LookupError, TypeError):
        return None


def hash_of(line: bytes) -> str:
    """The hash that the next line contains. A missing newline, as after a power cut, is added by then."""
    return sha256(line.removesuffix(b"\n") + b"\n").hexdigest()
