"""Backups: a directory of blocks by their SHA-256, and a manifest for each backup.

    DEST/blocks/1f/1f3a…   a piece of a data file
    DEST/manifests/20261123T152001Z-9ab4….json   what a backup is made of; the name ends in the SHA-256 of the file

A block that an earlier backup has is not written again. A backup is there from the moment its manifest has its name:
what was cut off before leaves blocks that nobody names, and the next backup removes or uses them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import msgspec

from hummock.store.errors import BackupDamaged, DirectoryUnusable
from hummock.store.upkeep import durable
from hummock.store.upkeep.digest import ProjectDigest, digests
from hummock.store.upkeep.inspection import DATA_FILE, Snapshot, inspected
from hummock.store.upkeep.known_backups import KnownBackup, forget_backups, note_backup
from hummock.store.upkeep.pages import FilePages, Overtaken, pages_of

BLOCK_BYTES = 64 * 1024
FORMAT = 1
_ATTEMPTS = 64
_NAME_DIGITS = 16
_NAME = re.compile(rf"\d{{8}}T\d{{6}}(?:\.\d+)?Z-[0-9a-f]{{{_NAME_DIGITS}}}")
_BLOCK = re.compile(rf"[0-9a-f]{{64}}(?:{re.escape(durable.PART)})?")
"""Names of a backup's files; other files are left alone."""

Progress = Callable[[int, int], None]
"""Told how many bytes are done, and of how many."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of a backup: the blocks of the data file at one moment, and what was in it.

    Attributes:
        format: Of backups.
        time: When it was made, Unix seconds.
        version: Of Hummock, that made it.
        schema: Of the directory; `analyzer` of its terms.
        model: Name of the model of its vectors; `emb_space` is their space.
        size_bytes: Of the data file; `block_bytes` of each block but the last.
        blocks: SHA-256 of each, in hexadecimal, in order.
        projects: What each held.
    """

    format: int
    time: float
    version: str
    schema: int
    analyzer: int
    model: str
    emb_space: str
    size_bytes: int
    block_bytes: int
    blocks: tuple[str, ...]
    projects: tuple[ProjectDigest, ...]


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A backup that was made: its name, and what it cost."""

    name: str
    manifest: Manifest
    new_blocks: int
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
        """One backup's. Raises: BackupDamaged."""
        path = self._manifests / f"{name}.json"
        try:
            content = path.read_bytes()
        except OSError as error:
            raise BackupDamaged(self.directory, f"there is no backup {name}") from error
        if not name.endswith(sha256(content).hexdigest()[:_NAME_DIGITS]):
            raise BackupDamaged(self.directory, f"the manifest of {name} was altered")
        return msgspec.json.decode(content, type=Manifest)

    def block(self, digest: str) -> bytes:
        """A block. Raises: BackupDamaged: it is not there, or is not what it was."""
        try:
            content = self._path(digest).read_bytes()
        except OSError as error:
            raise BackupDamaged(self.directory, f"block {digest} cannot be read") from error
        if sha256(content).hexdigest() != digest:
            raise BackupDamaged(self.directory, f"block {digest} was altered")
        return content

    def make(self, data: Path, now: float, version: str, keep: int | None, progress: Progress) -> Made:
        """Back up a data directory as it is at this moment, also while a service writes it.

        Args:
            data: The data directory.
            now: Unix seconds.
            version: Of this Hummock.
            keep: How many backups of this directory stay, this one among them; None keeps all.
            progress: Told how far it is.

        Raises: DirectoryUnusable, OSError.
        """
        self._require_elsewhere(data)
        for folder in (self.directory, self._blocks, self._manifests):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with durable.alone(self.directory), _snapshot(data) as (snapshot, pages):
            stored = [self._store(block) for block in _told(pages, progress)]
            manifest = _manifest(snapshot, pages, now, version, [digest for digest, _ in stored])
            name = self._publish(data, manifest)
            dropped = self._drop(data, name, keep)
        new = [size for _, size in stored if size]
        return Made(name=name, manifest=manifest, new_blocks=len(new), new_bytes=sum(new), dropped=dropped)

    def _require_elsewhere(self, data: Path) -> None:
        if self.directory.resolve().is_relative_to(data.resolve()):
            raise DirectoryUnusable(
                data, "the backup would lie in what it is a backup of", "choose another destination"
            )

    def _store(self, block: bytes) -> tuple[str, int]:
        """The block's name, and its bytes where it was not there."""
        digest = sha256(block).hexdigest()
        path = self._path(digest)
        if path.is_file() and path.stat().st_size == len(block):
            return digest, 0
        path.parent.mkdir(mode=0o700, exist_ok=True)
        durable.write(path, block)
        return digest, len(block)

    def _publish(self, data: Path, manifest: Manifest) -> str:
        """Gives the backup its name, once all that it rests on is durable."""
        for folder in {self._path(digest).parent for digest in manifest.blocks}:
            durable.sync(folder)
        durable.sync(self._blocks)
        content = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        made = datetime.fromtimestamp(manifest.time, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        name = f"{made}-{sha256(content).hexdigest()[:_NAME_DIGITS]}"
        # First: a backup that the directory does not know of would be forgotten when it is purged.
        note_backup(data, KnownBackup(directory=str(self.directory.resolve()), name=name, time=manifest.time))
        durable.write(self._manifests / f"{name}.json", content)
        durable.sync(self._manifests)
        return name

    def _drop(self, data: Path, made: str, keep: int | None) -> tuple[str, ...]:
        """Removes the oldest backups but for so many, and all blocks that none has.

        The one just made stays, though a clock that was ahead may have given an earlier one a later name.
        """
        earlier = [name for name in self.names() if name != made]
        dropped = earlier[: max(len(earlier) + 1 - keep, 0)] if keep is not None else []
        for name in dropped:
            (self._manifests / f"{name}.json").unlink()
        durable.sync(self._manifests)
        forget_backups(data, str(self.directory.resolve()), dropped)
        wanted = {digest for name in self.names() for digest in self.manifest(name).blocks}
        # Behind a link may lie the blocks of backups that are nobody's here.
        folders = () if self._blocks.is_symlink() else self._blocks.iterdir()
        for path in (path for folder in folders if not folder.is_symlink() for path in folder.glob("*")):
            is_ours = _BLOCK.fullmatch(path.name) and path.parent.name == path.name[:2]
            if is_ours and path.name not in wanted:
                path.unlink()
        return tuple(dropped)

    def _path(self, digest: str) -> Path:
        return self._blocks / digest[:2] / digest


def _told(pages: FilePages, progress: Progress) -> Iterator[bytes]:
    done = 0
    for block in pages.blocks(BLOCK_BYTES):
        yield block
        done += len(block)
        progress(done, pages.size_bytes)


@contextmanager
def _snapshot(data: Path) -> Iterator[tuple[Snapshot, FilePages]]:
    """The tables and the file at the same moment."""
    for _ in range(_ATTEMPTS):
        with inspected(data) as snapshot:
            descriptor = os.open(data / DATA_FILE, os.O_RDONLY | os.O_CLOEXEC)
            try:
                pages = pages_of(descriptor, snapshot.txn, data)
            except Overtaken:
                continue
            else:
                yield snapshot, pages
                return
            finally:
                os.close(descriptor)
    raise DirectoryUnusable(data, "it is written to all the time", "try again")


def _manifest(snapshot: Snapshot, pages: FilePages, now: float, version: str, blocks: Sequence[str]) -> Manifest:
    space = snapshot.space()
    return Manifest(
        format=FORMAT,
        time=now,
        version=version,
        schema=snapshot.directory.schema,
        analyzer=snapshot.directory.analyzer,
        model=space.model,
        emb_space=space.id,
        size_bytes=pages.size_bytes,
        block_bytes=BLOCK_BYTES,
        blocks=tuple(blocks),
        projects=digests(snapshot),
    )
