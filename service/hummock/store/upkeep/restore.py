"""A data directory made out of a backup."""

from __future__ import annotations

import os
from pathlib import Path

from hummock.store.errors import AnalyzerTooNew, BackupDamaged, DirectoryUnusable, SchemaTooNew
from hummock.store.lmdb.lock import LOCK_FILE, DirectoryLock
from hummock.store.tables import record_codec
from hummock.store.upkeep import durable
from hummock.store.upkeep.backup import FORMAT, Backups, Manifest, Progress
from hummock.store.upkeep.digest import digests
from hummock.store.upkeep.inspection import DATA_FILE, inspected
from hummock.text.analyzer import ANALYZER_VERSION

_PART = DATA_FILE + durable.PART
_MAY_BE_THERE = {LOCK_FILE, _PART, "models"}
"""Names allowed in the target: a lock that is not held, the rest of an interrupted restore, and models."""


def restore(backups: Backups, data: Path, name: str | None, progress: Progress) -> tuple[str, Manifest]:
    """Makes a data directory what it was when a backup was made; the name of the backup, and its manifest.

    Args:
        backups: Where they are.
        data: Made if it is not there; it must hold no data.
        name: Of the backup; None takes the newest.
        progress: Told how far it is.

    Raises: BackupDamaged, DirectoryUnusable, DirectoryInUse, SchemaTooNew, AnalyzerTooNew, OSError.
    """
    names = backups.names()
    if not names:
        raise DirectoryUnusable(backups.directory, "it holds no backup", "name a directory that `hummock backup` made")
    name = name or names[-1]
    manifest = backups.manifest(name)
    _require_known(backups.directory, manifest)
    _require_unused(data)
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = DirectoryLock(data)
    try:
        part = data / _PART
        _write(backups, manifest, part, progress)
        _require_equal(backups.directory, manifest, part)
        part.replace(data / DATA_FILE)
        durable.sync(data)
        durable.sync(data.absolute().parent)
    finally:
        lock.release()
    return name, manifest


def _require_known(directory: Path, manifest: Manifest) -> None:
    if manifest.format > FORMAT or manifest.schema > record_codec.SCHEMA:
        raise SchemaTooNew(directory, manifest.schema, record_codec.SCHEMA)
    if manifest.analyzer > ANALYZER_VERSION:
        raise AnalyzerTooNew(directory, manifest.analyzer, ANALYZER_VERSION)


def _require_unused(data: Path) -> None:
    if not data.exists():
        return
    if not data.is_dir():
        raise DirectoryUnusable(data, "it is not a directory", "choose another directory")
    others = sorted(path.name for path in data.iterdir() if path.name not in _MAY_BE_THERE)
    if others:
        raise DirectoryUnusable(data, f"it holds {others[0]} already", "restore into a new directory")


def _write(backups: Backups, manifest: Manifest, part: Path, progress: Progress) -> None:
    """The data file, under a name that nothing opens."""
    done = 0
    with durable.created(part) as file:
        for digest in manifest.blocks:
            block = backups.block(digest)
            file.write(block)
            done += len(block)
            progress(done, manifest.size_bytes)
        if done != manifest.size_bytes:
            raise BackupDamaged(backups.directory, f"its blocks are {done} bytes instead of {manifest.size_bytes}")
        file.flush()
        os.fsync(file.fileno())


def _require_equal(directory: Path, manifest: Manifest, part: Path) -> None:
    with inspected(part) as snapshot:
        found = {one.name: one for one in digests(snapshot)}
    expected = {one.name: one for one in manifest.projects}
    if found != expected:
        differing = sum(found.get(name) != one for name, one in expected.items())
        raise BackupDamaged(directory, f"{differing} projects are not what they were")
