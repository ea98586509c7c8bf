"""Backups: a directory of blocks by their SHA-256, and a manifest for each backup.

    DEST/blocks/1f/1f3a…   a piece of a data file
    DEST/manifests/20261123T152001Z-9ab4….json   contents of a backup; the name ends in the SHA-256 of the file

LMDB copies the data file with all pages in place: unchanged parts have the same bytes in each copy, and a block of an
earlier backup is not stored again. A backup exists once its manifest has its name: an interrupted one leaves unused
blocks, which the next backup removes or uses.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import msgspec

from hummock.store.errors import AnalyzerTooNew, BackupDamaged, DirectoryUnusable, SchemaTooNew
from hummock.store.lmdb.environment import sync_folder
from hummock.store.lmdb.files import DATA_FILE, LOCK_FILE, DirectoryLock
from hummock.store.tables import record_codec
from hummock.store.upkeep.moment import DirectoryMoment, ProjectDigest, copy_file, digests, inspected
from hummock.text.analyzer import ANALYZER_VERSION

BLOCK_BYTES = 64 * 1024
FORMAT = 1
PART = ".part"  # Suffix of a file that is being written; the rest of an interrupted one may be removed.
_DATA_PART = DATA_FILE + PART
_NOTES = "backups.json"
_MAY_BE_THERE = {LOCK_FILE, _DATA_PART, "models"}
"""Names allowed in the target: a lock that is not held, the rest of an interrupted restore, and models."""
_NAME_DIGITS = 16
_NAME = re.compile(rf"\d{{8}}T\d{{6}}(?:\.\d+)?Z-[0-9a-f]{{{_NAME_DIGITS}}}")
_BLOCK = re.compile(rf"[0-9a-f]{{64}}(?:{re.escape(PART)})?")  # Names of a backup's files; other files are left alone.
Progress = Callable[[int, int], None]  # Callback for the bytes done and their total.


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of a backup: the blocks of the data file at one moment, and what was in it."""

    format: int  # Format version of backups.
    time: float  # Creation time, Unix seconds.
    version: str  # Version of Hummock that made it.
    schema: int  # Schema of the directory; `analyzer` is the version of its terms.
    analyzer: int
    model: str  # Name of the model of its vectors; `emb_space` is their space.
    emb_space: str
    size_bytes: int  # Size of the data file; `block_bytes` is that of each block but the last.
    block_bytes: int
    blocks: tuple[str, ...]  # SHA-256 of each block, in hexadecimal, in order.
    projects: tuple[ProjectDigest, ...]  # Digest of each project.


_decode_manifest = msgspec.json.Decoder(Manifest).decode


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a backup: its name and statistics."""

    name: str
    manifest: Manifest
    new_bytes: int
    dropped: tuple[str, ...]


class Backups:
    """The backups in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._blocks = directory / "blocks"
        self._manifests = directory / "manifests"

    def names(self) -> list[str]:
        """Names of all backups, the oldest first."""
        return sorted(path.stem for path in self._manifests.glob("*.json") if _NAME.fullmatch(path.stem))

    def manifest(self, name: str) -> Manifest:
        """The manifest of a backup. Raises: BackupDamaged."""
        path = self._manifests / f"{name}.json"
        try:
            content = path.read_bytes()
        except OSError as error:
            raise BackupDamaged(self.directory, f"there is no backup {name}") from error
        if not name.endswith(sha256(content).hexdigest()[:_NAME_DIGITS]):
            raise BackupDamaged(self.directory, f"the manifest of {name} was altered")
        return _decode_manifest(content)

    def block(self, digest: str) -> bytes:
        """A block. Raises: BackupDamaged: it is missing or changed."""
        try:
            content = self._path(digest).read_bytes()
        except OSError as error:
            raise BackupDamaged(self.directory, f"block {digest} cannot be read") from error
        if sha256(content).hexdigest() != digest:
            raise BackupDamaged(self.directory, f"block {digest} was altered")
        return content

    def make(self, data: Path, now: float, version: str, keep: int | None, progress: Progress) -> Made:
        """Back up a data directory as it is at this moment, also while a service writes it.

        `now` is in Unix seconds, `version` that of this Hummock. `keep` backups of this directory stay, this one
        included; None keeps all. Raises: DirectoryUnusable, OSError.
        """
        if self.directory.resolve().is_relative_to(data.resolve()):
            what = "the backup would lie in what it is a backup of"
            raise DirectoryUnusable(data, what, "choose another destination")
        for folder in (self.directory, self._blocks, self._manifests):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        copy = self.directory / _DATA_PART
        with _alone(self.directory):
            try:
                copy.unlink(missing_ok=True)
                copy_file(data, copy)
                stored = [self._store(block) for block in _blocks(copy, progress)]
                with inspected(copy) as moment:
                    manifest = _manifest(moment, copy, now, version, [digest for digest, _ in stored])
            finally:
                copy.unlink(missing_ok=True)
            name = self._publish(data, manifest)
            dropped = self._drop(data, name, keep)
        return Made(name=name, manifest=manifest, new_bytes=sum(size for _, size in stored), dropped=dropped)

    def _store(self, block: bytes) -> tuple[str, int]:
        """Store a block; returns its name, and the bytes written, 0 if it existed."""
        digest = sha256(block).hexdigest()
        path = self._path(digest)
        if path.is_file() and path.stat().st_size == len(block):
            return digest, 0
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _write(path, block)
        return digest, len(block)

    def _publish(self, data: Path, manifest: Manifest) -> str:
        """Give the backup its name, once all its blocks are durable."""
        for folder in {self._path(digest).parent for digest in manifest.blocks}:
            sync_folder(folder)
        sync_folder(self._blocks)
        content = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        made = datetime.fromtimestamp(manifest.time, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        name = f"{made}-{sha256(content).hexdigest()[:_NAME_DIGITS]}"
        # Recorded first: a purge would not name a backup that the directory has no record of.
        note_backup(data, KnownBackup(directory=str(self.directory.resolve()), name=name, time=manifest.time))
        _write(self._manifests / f"{name}.json", content)
        sync_folder(self._manifests)
        return name

    def _drop(self, data: Path, made: str, keep: int | None) -> tuple[str, ...]:
        """Remove the oldest backups above `keep`, but not the one just made, and all unused blocks."""
        earlier = [name for name in self.names() if name != made]
        dropped = earlier[: max(len(earlier) + 1 - keep, 0)] if keep is not None else []
        for name in dropped:
            (self._manifests / f"{name}.json").unlink()
        sync_folder(self._manifests)
        forget_backups(data, str(self.directory.resolve()), dropped)
        wanted = {digest for name in self.names() for digest in self.manifest(name).blocks}
        # A link may lead to the blocks of other backups.
        folders = () if self._blocks.is_symlink() else self._blocks.iterdir()
        for path in (path for folder in folders if not folder.is_symlink() for path in folder.glob("*")):
            is_ours = _BLOCK.fullmatch(path.name) and path.parent.name == path.name[:2]
            if is_ours and path.name not in wanted:
                path.unlink()
        return tuple(dropped)

    def _path(self, digest: str) -> Path:
        return self._blocks / digest[:2] / digest


def _blocks(copy: Path, progress: Progress) -> Iterator[bytes]:
    done, size_bytes = 0, copy.stat().st_size
    with copy.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            yield block
            done += len(block)
            progress(done, size_bytes)


def _manifest(moment: DirectoryMoment, copy: Path, now: float, version: str, blocks: Sequence[str]) -> Manifest:
    space = moment.space()
    return Manifest(
        format=FORMAT,
        time=now,
        version=version,
        schema=moment.directory.schema,
        analyzer=moment.directory.analyzer,
        model=space.model,
        emb_space=space.id,
        size_bytes=copy.stat().st_size,
        block_bytes=BLOCK_BYTES,
        blocks=tuple(blocks),
        projects=digests(moment),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBackup:
    """A backup: its directory, its name there, and its creation time (Unix seconds)."""

    directory: str
    name: str
    time: float

    @property
    def may_exist(self) -> bool:
        """False if its directory can be read and does not contain it."""
        manifests = Path(self.directory) / "manifests"
        return not manifests.is_dir() or (manifests / f"{self.name}.json").is_file()


_decode_notes = msgspec.json.Decoder(tuple[KnownBackup, ...]).decode


def known_backups(data: Path) -> tuple[KnownBackup, ...]:
    """Recorded backups that may still exist, the oldest first."""
    return tuple(known for known in _read(data) if known.may_exist)


def note_backup(data: Path, made: KnownBackup) -> None:
    """Record a backup that is about to be published."""
    with _alone(data):
        _note(data, (*(known for known in _read(data) if known.may_exist), made))


def forget_backups(data: Path, directory: str, names: Collection[str]) -> None:
    """Remove the records of dropped backups of a directory."""
    with _alone(data):
        kept = tuple(known for known in _read(data) if known.directory != directory or known.name not in names)
        _note(data, kept)


def _read(data: Path) -> tuple[KnownBackup, ...]:
    try:
        return _decode_notes((data / _NOTES).read_bytes())
    except FileNotFoundError:
        return ()


def _note(data: Path, known: tuple[KnownBackup, ...]) -> None:
    _write(data / _NOTES, msgspec.json.format(msgspec.json.encode(known)))
    sync_folder(data)


def restore(backups: Backups, data: Path, name: str | None, progress: Progress) -> tuple[str, Manifest]:
    """Restore a data directory from a backup, None for the newest; returns its name and its manifest.

    The directory must contain no data, and is created if missing.

    Raises: BackupDamaged, DirectoryUnusable, DirectoryInUse, SchemaTooNew, AnalyzerTooNew, OSError.
    """
    names = backups.names()
    if not names:
        raise DirectoryUnusable(
            backups.directory, "it holds no backup", "name a directory that `hummock save backup` made"
        )
    name = name or names[-1]
    manifest = backups.manifest(name)
    _require_known(backups.directory, manifest)
    _require_unused(data)
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = DirectoryLock(data)
    try:
        part = data / _DATA_PART
        _join(backups, manifest, part, progress)
        _require_equal(backups.directory, manifest, part)
        part.replace(data / DATA_FILE)
        sync_folder(data)
        sync_folder(data.absolute().parent)
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


def _join(backups: Backups, manifest: Manifest, part: Path, progress: Progress) -> None:
    done = 0
    with _created(part) as file:
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
    with inspected(part) as moment:
        found = {one.name: one for one in digests(moment)}
    expected = {one.name: one for one in manifest.projects}
    if found != expected:
        differing = sum(found.get(name) != one for name, one in expected.items())
        raise BackupDamaged(directory, f"{differing} projects are not what they were")


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically; its content is durable, its name not yet."""
    part = path.with_name(path.name + PART)
    try:
        with _created(part) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Hold a lock on the directory, after waiting for other holders."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _created(path: Path) -> BinaryIO:
    """Create an empty file for its owner only, replacing an earlier one. A link is replaced, not followed."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
