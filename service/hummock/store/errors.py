"""Errors of opening, writing and copying a store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hummock.core.errors import DataLoss, HummockError, NotReady, StartError, StorageFull, Unavailable
from hummock.ports.store import Outdated

_NAMED_PROJECTS = 5


def _named(place: Path | str) -> str:
    """A data directory or a database, as named in messages."""
    return f"data directory {place}" if isinstance(place, Path) else place


class DirectoryInUse(StartError):
    """Another process has the directory."""

    reason = "DATA_DIRECTORY_IN_USE"

    def __init__(self, directory: Path, pid: str) -> None:
        super().__init__(
            f"data directory {directory} is in use by process {pid}; stop that process or choose another directory"
        )
        self.pid = pid


class DirectoryUnusable(StartError):
    """The directory cannot be made, read or written."""

    reason = "DATA_DIRECTORY_UNUSABLE"

    def __init__(self, directory: Path, why: str, fix: str) -> None:
        super().__init__(f"data directory {directory} cannot be used: {why}; {fix}")


class BackupDamaged(StartError):
    """A backup is damaged or missing."""

    reason = "BACKUP_DAMAGED"

    def __init__(self, directory: Path, what: str) -> None:
        super().__init__(f"backup in {directory}: {what}; restore another one (`hummock restore {directory} --list`)")


class DataFileCut(Unavailable):
    """The data file has lost its end while it was used."""

    reason = "DATA_FILE_CUT_SHORT"

    def __init__(self, directory: Path, size_bytes: int, before_bytes: int) -> None:
        super().__init__(
            f"the data file in {directory} was cut short while it was used: it has {size_bytes} of {before_bytes} "
            "bytes; stop the service and restore the directory from a backup"
        )
        self.directory = str(directory)
        self.size_bytes = size_bytes
        self.before_bytes = before_bytes


class DirectoryReplaced(NotReady):
    """A file of the directory was replaced while it was open, so that further writes would be lost."""

    reason = "DATA_DIRECTORY_REPLACED"

    def __init__(self, directory: Path, file: str) -> None:
        super().__init__(
            f"{directory}/{file} was moved, removed or replaced while it was used; nothing is written until it is "
            "back; put it back, or restart the service to use what is there now"
        )
        self.directory = str(directory)
        self.file = file


class SpaceDiffers(StartError):
    """The directory holds vectors of another embedding space."""

    reason = "EMB_SPACE_MISMATCH"

    def __init__(self, place: Path | str, recorded: tuple[str, str], given: tuple[str, str]) -> None:
        """`recorded` and `given` are each (model name, emb_space)."""
        super().__init__(
            f"{_named(place)} was made with model {recorded[0]} (emb_space {recorded[1]}); this start uses "
            f"model {given[0]} (emb_space {given[1]}); choose model {recorded[0]} as it was then, or another directory"
        )


class AnalyzerTooNew(StartError):
    """The directory holds terms of a later version of the analyzer."""

    reason = "ANALYZER_TOO_NEW"

    def __init__(self, place: Path | str, recorded: int, known: int) -> None:
        super().__init__(
            f"{_named(place)} has the terms of analyzer version {recorded}; this version of Hummock has "
            f"analyzer version {known}, whose words would not find its memories; start it with the version of Hummock "
            "that wrote it, or a later one"
        )
        self.recorded = recorded
        self.known = known


class SchemaTooNew(StartError):
    """A newer Hummock wrote the directory."""

    reason = "SCHEMA_TOO_NEW"

    def __init__(self, place: Path | str, schema: int, known: int) -> None:
        super().__init__(
            f"{_named(place)} has schema {schema}; this version knows schemas up to {known}; "
            "start it with the version of Hummock that wrote it, or a newer one"
        )


class DiskFull(StorageFull):
    """The disk is full, whatever the quota says."""

    def __init__(self, why: str, used_bytes: int) -> None:
        HummockError.__init__(
            self, f"the disk takes no more: {why} (the store uses {used_bytes} bytes); make room on the disk"
        )
        self.why = why
        self.used_bytes = used_bytes


class DiskReserveReached(DiskFull):
    """The disk has only its reserve left, which is kept for deleting."""

    def __init__(self, free_bytes: int, reserve_bytes: int, used_bytes: int) -> None:
        super().__init__(
            f"{free_bytes} bytes are free, and the last {reserve_bytes} are kept so that deleting works", used_bytes
        )


class DiskFault(Unavailable):
    """The disk refuses writes for another reason than space."""

    reason = "DISK_FAULT"

    def __init__(self, directory: Path, code: str, why: str, remedy: str) -> None:
        """`code` is the system's name of the error, such as "EIO"."""
        super().__init__(f"nothing can be written to {directory}: {why} ({code}); {remedy}")
        self.directory = str(directory)
        self.code = code


class MapFull(StorageFull):
    """The database's map is full: it has less room than the quota allows."""

    def __init__(self, used_bytes: int, most_bytes: int, reserve_bytes: int) -> None:
        HummockError.__init__(
            self,
            f"the store uses {used_bytes} of the {most_bytes} bytes that its map has for memories, besides the "
            f"{reserve_bytes} that are kept so that deleting works, and this write does not fit; delete memories or "
            "raise storage.map_bytes",
        )
        self.used_bytes = used_bytes
        self.quota_bytes = most_bytes


class OpenedInOtherProcess(HummockError):
    """The store was opened before this process was forked."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"the store was opened by process {pid}; open it after forking")
        self.pid = pid


class MemoryDamaged(DataLoss):
    """A stored memory is damaged: it differs from what was written."""

    def __init__(self, memory_id: str, doc: int) -> None:
        """`memory_id` is empty if unknown; `doc` is the document number."""
        super().__init__(
            f"memory {memory_id or f'number {doc}'} is damaged on the disk: what is stored is not what was written; "
            "ask without it, and restore it from a backup or an export"
        )
        self.memory_id = memory_id
        self.doc = doc


class EntryDamaged(DataLoss):
    """A stored entry of a session or of the learning is damaged: it differs from what was written."""

    def __init__(self, what: str) -> None:
        """`what` names the entry in the message."""
        super().__init__(
            f"{what} is damaged on the disk: what is stored is not what was written; ask without it, and restore it "
            "from a backup"
        )
        self.what = what


class DatabaseDamaged(DataLoss):
    """Pages of the database itself are damaged, so that entries below them cannot be found."""

    def __init__(self, directory: Path, why: str) -> None:
        super().__init__(
            f"the database in {directory} is damaged ({why}); stop the service and restore the directory from a backup"
        )
        self.directory = str(directory)
        self.why = why


class DamageMet(Outdated):
    """A memory in a view is damaged: the view must be loaded again without it."""


class ProjectGone(Outdated):
    """The project was removed; a project of the same name may be a new one."""


class RecordDamaged(HummockError):
    """Parts of one record do not fit together."""

    def __init__(self, project: int, what: str) -> None:
        super().__init__(f"project number {project}: {what}")
        self.project = project
        self.what = what


class NothingToCopy(StartError):
    """The source of a copy contains no store."""

    reason = "STORE_EMPTY"

    def __init__(self, place: str) -> None:
        super().__init__(
            f"{place} holds nothing to copy; name the directory that the service has as HUMMOCK_DATA, or the database "
            "that it has as HUMMOCK_STORE"
        )


class CopiedOntoItself(StartError):
    """Source and target of a copy are the same store."""

    reason = "STORE_COPIED_ONTO_ITSELF"

    def __init__(self, place: str) -> None:
        super().__init__(f"{place} would be copied onto itself; name another directory or database to copy to")


class NotADatabase(StartError):
    """A connection string cannot be parsed. The message leaves it out, as it may contain a password."""

    reason = "STORE_DSN_UNREADABLE"

    def __init__(self, which: str) -> None:
        """`which` of the two ends: "FROM" or "TO"."""
        super().__init__(
            f"{which} is no connection string that PostgreSQL can read; write it as "
            "postgresql://USER@HOST:PORT/DATABASE, with % before the code of what is special in a name"
        )


class WordsOutdated(StartError):
    """The terms of memories were made by an earlier version, or are being updated."""

    reason = "STORE_OUTDATED"

    def __init__(self, place: str) -> None:
        super().__init__(
            f"{place} was last served by an earlier version of Hummock; start the service of this version on it once, "
            "wait for its `serving on`, and copy again"
        )


class SpacesDiffer(StartError):
    """The target has vectors of another embedding space."""

    reason = "EMB_SPACE_MISMATCH"

    def __init__(self, source: tuple[str, str, str], target: tuple[str, str, str]) -> None:
        """`source` and `target` are each (place, model name, emb_space)."""
        super().__init__(
            f"{source[0]} has vectors of model {source[1]} (emb_space {source[2]}), and {target[0]} of model "
            f"{target[1]} (emb_space {target[2]}); vectors are copied as they are: copy to an empty store, or have "
            "them made anew with `hummock save project` and `hummock import`"
        )


class OtherHistory(StartError):
    """The target has projects of these names that are not copies, or were written to since they were copied."""

    reason = "PROJECT_HAS_OTHER_HISTORY"

    def __init__(self, place: str, projects: Sequence[str]) -> None:
        super().__init__(
            f"{place} has {_listed(projects)} already, with a history of its own: it is no copy, or was written to "
            "since it was copied; nothing of it was changed: --replace puts what is copied in its place, or name "
            "another store"
        )
        self.projects = tuple(projects)


class ProjectDamaged(StartError):
    """A project of the source store is damaged."""

    reason = "PROJECT_DAMAGED"

    def __init__(self, project: str, what: str) -> None:
        super().__init__(
            f"project {project} is damaged: {what}; it was not copied. `hummock fsck` says what else is: remove what "
            "is damaged, or restore a backup, and copy again"
        )


class CopyDisturbed(StartError):
    """Another process changed or removed copied entries during the copy."""

    reason = "COPY_DISTURBED"

    def __init__(self, place: str, project: str) -> None:
        super().__init__(
            f"{place}: somebody else has changed project {project} while it was copied; nothing has its name that is "
            "not whole: copy again"
        )


class DatabaseUnusable(StartError):
    """The database cannot be opened."""

    reason = "STORE_UNUSABLE"

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place} cannot be used: {why}")


class DatabaseIsCopiedInto(StartError):
    """Another process is copying projects into the database."""

    reason = "STORE_IS_COPIED_INTO"

    def __init__(self, place: str) -> None:
        super().__init__(f"{place}: another `hummock save copy` writes into it; wait for its end, or stop it")


def _listed(projects: Sequence[str]) -> str:
    named = ", ".join(projects[:_NAMED_PROJECTS])
    more = len(projects) - _NAMED_PROJECTS
    noun = "project" if len(projects) == 1 else "projects"
    return f"{noun} {named}" + (f" and {more} more" if more > 0 else "")
