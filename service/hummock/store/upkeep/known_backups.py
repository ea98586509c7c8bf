"""Notes of a data directory on its backups: whoever purges the directory is reminded of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hummock.store.upkeep import durable

FILE = "backups.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBackup:
    """A backup: the directory that it lies in, its name there, and when it was made (Unix seconds)."""

    directory: str
    name: str
    time: float

    @property
    def may_exist(self) -> bool:
        """False where its directory can be looked at, and it is not there."""
        manifests = Path(self.directory) / "manifests"
        return not manifests.is_dir() or (manifests / f"{self.name}.json").is_file()


def known_backups(data: Path) -> tuple[KnownBackup, ...]:
    """Those that may still exist, the oldest first."""
    return tuple(known for known in _read(data) if known.may_exist)


def note_backup(data: Path, made: KnownBackup) -> None:
    """Notes one that is about to be there."""
    with durable.alone(data):
        _write(data, (*(known for known in _read(data) if known.may_exist), made))


def forget_backups(data: Path, directory: str, names: Collection[str]) -> None:
    """Those of a directory that were dropped are no longer noted."""
    with durable.alone(data):
        kept = tuple(known for known in _read(data) if known.directory != directory or known.name not in names)
        _write(data, kept)


def _read(data: Path) -> tuple[KnownBackup, ...]:
    try:
        return msgspec.json.decode((data / FILE).read_bytes(), type=tuple[KnownBackup, ...])
    except FileNotFoundError:
        return ()


def _write(data: Path, known: tuple[KnownBackup, ...]) -> None:
    durable.write(data / FILE, msgspec.json.format(msgspec.json.encode(known)))
    durable.sync(data)
