"""Files of other programs: read with care, changed in one place, replaced in one step.

What was written is on record with the texts of before, so that it can be taken out again.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from hummock_tools.setup import documents
from hummock_tools.setup.agents import Machine


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
    except documents.NotReadable as error:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A file that was written.

    Attributes:
        digest: SHA-256 of the text that was written.
        backup: Name of the file with the text without our parts; empty where there was no file.
        folders: Those that were made for the file, the innermost first.
    """

    digest: str
    backup: str
    folders: tuple[str, ...]


class Record:
    """The files that were written, by path; kept below `hummock/setup` of the user's state directory."""

    def __init__(self, folder: Path, files: Mapping[Path, Written]) -> None:
        self.folder = folder
        self._files = dict(files)

    @property
    def paths(self) -> list[Path]:
        """The files that were written, first to last."""
        return list(self._files)

    def base(self, path: Path) -> str | None:
        """The text that the file had before; None if there was no file. Raises: KeyError, Unchangeable."""
        backup = self._files[path].backup
        return text_of(self.folder / backup) if backup else None

    def is_as_written(self, path: Path, current: str | None) -> bool:
        """Whether the file has just the text that was written."""
        known = self._files.get(path)
        return known is not None and current is not None and known.digest == _digest(current)

    def write(self, change: Change, base: str | None) -> None:
        """Make a change, with what is needed to undo it stored before. Raises: Unchangeable."""
        change.check()
        known = self._files.get(change.path)
        folders = known.folders if known else tuple(str(each) for each in change.path.parents if not each.exists())
        backup = f"{_digest(str(change.path))[:16]}-{change.path.name}" if base is not None else ""
        self._files[change.path] = Written(digest=_digest(change.after or ""), backup=backup, folders=folders)
        self._save({backup: base} if base is not None else {})
        change.write()

    def undo(self, change: Change) -> None:
        """Make the change that takes our parts out, and forget the file. Raises: Unchangeable."""
        known = self._files[change.path]
        if change.is_needed:
            change.write()
        if change.after is None:
            _remove_empty(known.folders)
        del self._files[change.path]
        self._save({})
        if known.backup:
            (self.folder / known.backup).unlink(missing_ok=True)

    def _save(self, backups: Mapping[str, str]) -> None:
        """Raises: Unchangeable."""
        files = {
            str(path): {"digest": each.digest, "backup": each.backup, "folders": each.folders}
            for path, each in self._files.items()
        }
        try:
            # Files of agents may hold tokens.
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name, text in backups.items():
                replace(self.folder / name, text)
                (self.folder / name).chmod(0o600)
            replace(self.folder / _NAME, json.dumps({"version": 1, "files": files}, indent=2) + "\n")
        except OSError as error:
            raise Unchangeable(f"{self.folder}: {error.strerror or error}; nothing was written") from error


_NAME = "written.json"


def read_record(machine: Machine) -> Record:
    """The user's record; empty if nothing was written. Raises: Unchangeable, where it cannot be read."""
    state = Path(machine.environ.get("XDG_STATE_HOME", ""))
    folder = (state if state.is_absolute() else machine.home / ".local" / "state") / "hummock" / "setup"
    text = text_of(folder / _NAME)
    if text is None:
        return Record(folder, {})
    try:
        files = {
            Path(path): Written(digest=each["digest"], backup=Path(each["backup"]).name, folders=tuple(each["folders"]))
            for path, each in json.loads(text)["files"].items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Unchangeable(
            f"{folder / _NAME} is damaged; move it away, then set up again (texts of before lie beside it)"
        ) from error
    return Record(folder, files)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _remove_empty(folders: tuple[str, ...]) -> None:
    for each in folders:
        try:
            Path(each).rmdir()
        except OSError:
            return  # something else lies in it now
