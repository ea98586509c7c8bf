"""Why a data directory cannot be opened or written to."""

from __future__ import annotations

from pathlib import Path

from hummock.core.errors import DataLoss, HummockError, NotReady, StartError, StorageFull, Unavailable


def _named(place: Path | str) -> str:
    """A data directory, or a database that needs no other word, for people."""
    return f"data directory {place}" if isinstance(place, Path) else place


class DirectoryInUse(StartError):
    """Another process has the directory."""

    reason = "DATA_DIRECTORY_IN_USE"

    def __init__(self, directory: Path, pid: str) -> None:
        super().__init__(
            f"data directory {directory} is in use by process {pid}; stop that process or choose another directory"
        )
        self.directory = str(directory)
        self.pid = pid


class DirectoryUnusable(StartError):
    """The directory cannot be made, read or written."""

    reason = "DATA_DIRECTORY_UNUSABLE"

    def __init__(self, directory: Path, why: str, fix: str) -> None:
        super().__init__(f"data directory {directory} cannot be used: {why}; {fix}")
        self.directory = str(directory)
        self.why = why


class BackupDamaged(StartError):
    """A backup is not what it was, or is not there."""

    reason = "BACKUP_DAMAGED"

    def __init__(self, directory: Path, what: str) -> None:
        super().__init__(f"backup in {directory}: {what}; restore another one (`hummock restore {directory} --list`)")
        self.directory = str(directory)
        self.what = what


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
    """A file of the directory is not the one that is open any more: what is written would not be found again."""

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
        """`recorded` and `given` are each a model's name and its emb_space."""
        super().__init__(
            f"{_named(place)} was made with model {recorded[0]} (emb_space {recorded[1]}); this start uses "
            f"model {given[0]} (emb_space {given[1]}); choose model {recorded[0]} as it was then, or another directory"
        )
        self.directory = str(place)
        self.recorded_model, self.recorded_emb_space = recorded
        self.given_model, self.given_emb_space = given


class AnalyzerTooNew(StartError):
    """The directory holds terms of a later version of the analyzer."""

    reason = "ANALYZER_TOO_NEW"

    def __init__(self, place: Path | str, recorded: int, known: int) -> None:
        super().__init__(
            f"{_named(place)} has the terms of analyzer version {recorded}; this version of Hummock has "
            f"analyzer version {known}, whose words would not find its memories; start it with the version of Hummock "
            "that wrote it, or a later one"
        )
        self.directory = str(place)
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
        self.directory = str(place)
        self.schema = schema
        self.known = known


class DiskFull(StorageFull):
    """The disk takes no more, whatever the quota says."""

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
        self.free_bytes = free_bytes
        self.reserve_bytes = reserve_bytes


class DiskFault(Unavailable):
    """The disk takes no write, for another reason than room."""

    reason = "DISK_FAULT"

    def __init__(self, directory: Path, code: str, why: str, remedy: str) -> None:
        """`code` is the system's name of the error, as "EIO"."""
        super().__init__(f"nothing can be written to {directory}: {why} ({code}); {remedy}")
        self.directory = str(directory)
        self.code = code


class MapFull(StorageFull):
    """The database's map takes no more: it leaves less room than the quota allows."""

    def __init__(self, used_bytes: int, most_bytes: int, reserve_bytes: int) -> None:
        HummockError.__init__(
            self,
            f"the store uses {used_bytes} of the {most_bytes} bytes that its map has for memories, besides the "
            f"{reserve_bytes} that are kept so that deleting works, and this write does not fit; delete memories or "
            "raise storage.map_bytes",
        )
        self.used_bytes = used_bytes
        self.quota_bytes = most_bytes
        self.reserve_bytes = reserve_bytes


class OpenedInOtherProcess(HummockError):
    """The store was opened before this process was forked."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"the store was opened by process {pid}; open it after forking")
        self.pid = pid


class MemoryDamaged(DataLoss):
    """A stored memory is damaged: it differs from what was written."""

    def __init__(self, memory_id: str, doc: int) -> None:
        """`memory_id` is empty where it is not known; `doc` is the store's number."""
        super().__init__(
            f"memory {memory_id or f'number {doc}'} is damaged on the disk: what is stored is not what was written; "
            "ask without it, and restore it from a backup or an export"
        )
        self.memory_id = memory_id
        self.doc = doc


class EntryDamaged(DataLoss):
    """A stored entry of a session or of the learning is damaged: it differs from what was written."""

    def __init__(self, what: str) -> None:
        """`what` it is, for people."""
        super().__init__(
            f"{what} is damaged on the disk: what is stored is not what was written; ask without it, and restore it "
            "from a backup"
        )
        self.what = what


class DatabaseDamaged(DataLoss):
    """Pages of the database itself are damaged, so that what they lead to cannot be found."""

    def __init__(self, directory: Path, why: str) -> None:
        super().__init__(
            f"the database in {directory} is damaged ({why}); stop the service and restore the directory from a backup"
        )
        self.directory = str(directory)
        self.why = why


class RecordDamaged(HummockError):
    """Parts of one record do not fit together."""

    def __init__(self, project: int, what: str) -> None:
        super().__init__(f"project number {project}: {what}")
        self.project = project
        self.what = what
