"""Files of other programs: read with care, changed in one place, replaced in one step."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from hummock_tools.setup import jsonc


class Unchangeable(Exception):
    """A file that is better left alone; the message names it and says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file's text before and after a change; None where there is no file."""

    path: Path
    before: str | None
    after: str | None

    @property
    def is_needed(self) -> bool:
        """True if the file's content changes."""
        return self.before != self.after

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        before, after = (self.before or "").splitlines(), (self.after or "").splitlines()
        return "\n".join(unified_diff(before, after, "as it is", "as it will be", lineterm=""))

    def check(self) -> None:
        """Raises: Unchangeable, if the file is not what it was: agents write their files whenever they like."""
        if text_of(self.path) != self.before:
            raise Unchangeable(f"{self.path} has changed in the meantime, and was not written; run this again")

    def write(self) -> None:
        """Replace the file atomically, keeping its mode, or remove it. Raises: Unchangeable."""
        self.check()
        # Who keeps such files in a repository of their own links to them.
        path = self.path.resolve()
        try:
            if self.after is None:
                self.path.unlink(missing_ok=True)
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, self.after)
        except OSError as error:
            raise Unchangeable(f"{self.path}: {error.strerror or error}") from error


def text_of(path: Path) -> str | None:
    """The text of a file; None if there is none. Raises: Unchangeable."""
    try:
        return path.read_bytes().decode() if path.exists() else None
    except UnicodeDecodeError as error:
        raise Unchangeable(f"{path} is not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}") from error
    except OSError as error:
        raise Unchangeable(f"{path}: {error.strerror or error}") from error


def edited(path: Path, text: str, edits: Iterable[Callable[[str], str]]) -> str:
    """A file's text after edits, one after the other. Raises: Unchangeable, where one cannot be made without harm."""
    # Editors of Windows begin a file with it, and want it back.
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(mark)
    try:
        for edit in edits:
            text = edit(text)
    except jsonc.NotReadable as error:
        raise Unchangeable(f"{path} {error}") from error
    return mark + text


def replace(path: Path, text: str) -> None:
    """Write a file of this text, keeping the mode of the one before. Raises: OSError."""
    mask = os.umask(0o077)
    os.umask(mask)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~mask
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
