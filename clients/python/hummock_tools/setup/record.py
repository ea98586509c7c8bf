"""What was written into files of agents, with the texts of before, so that it can be taken out again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hummock_tools.setup.agents import Machine
from hummock_tools.setup.config_files import Change, Unchangeable, replace, text_of


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
