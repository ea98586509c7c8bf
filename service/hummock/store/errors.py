"""Why a data directory cannot be opened or written to."""

from __future__ import annotations

from pathlib import Path

from hummock.core.errors import HummockError, StartError, StorageFull


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


class SpaceDiffers(StartError):
    """The directory holds vectors of another embedding space."""

    reason = "EMB_SPACE_MISMATCH"

    def __init__(self, directory: Path, recorded: tuple[str, str], given: tuple[str, str]) -> None:
        """`recorded` and `given` are each a model's name and its emb_space."""
        super().__init__(
            f"data directory {directory} was made with model {recorded[0]} (emb_space {recorded[1]}); this start uses "
            f"model {given[0]} (emb_space {given[1]}); choose model {recorded[0]} as it was then, or another directory"
        )
        self.directory = str(directory)
        self.recorded_model, self.recorded_emb_space = recorded
        self.given_model, self.given_emb_space = given


class AnalyzerTooNew(StartError):
    """The directory holds terms of a later version of the analyzer."""

    reason = "ANALYZER_TOO_NEW"

    def __init__(self, directory: Path, recorded: int, known: int) -> None:
        super().__init__(
            f"data directory {directory} has the terms of analyzer version {recorded}; this version of Hummock has "
            f"analyzer version {known}, whose words would not find its memories; start it with the version of Hummock "
            "that wrote it, or a later one"
        )
        self.directory = str(directory)
        self.recorded = recorded
        self.known = known


class SchemaTooNew(StartError):
    """A newer Hummock wrote the directory."""

    reason = "SCHEMA_TOO_NEW"

    def __init__(self, directory: Path, schema: int, known: int) -> None:
        super().__init__(
            f"data directory {directory} has schema {schema}; this version knows schemas up to {known}; "
            "start it with the version of Hummock that wrote it, or a newer one"
        )
        self.directory = str(directory)
        self.schema = schema
        self.known = known


class DiskFull(StorageFull):
    """The disk takes no more, whatever the quota says."""

    def __init__(self, why: str, used_bytes: int, quota_bytes: int) -> None:
        HummockError.__init__(
            self, f"the disk takes no more ({why}; the store uses {used_bytes} bytes); make room on the disk"
        )
        self.why = why
        self.used_bytes = used_bytes
        self.quota_bytes = quota_bytes


class MapFull(StorageFull):
    """The database's map takes no more: it leaves less room than the quota allows."""

    def __init__(self, used_bytes: int, most_bytes: int) -> None:
        HummockError.__init__(
            self,
            f"the store uses {used_bytes} of the {most_bytes} bytes that its map has for memories, and this write does "
            "not fit; delete memories or raise storage.map_bytes",
        )
        self.used_bytes = used_bytes
        self.quota_bytes = most_bytes


class OpenedInOtherProcess(HummockError):
    """The store was opened before this process was forked."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"the store was opened by process {pid}; open it after forking")
        self.pid = pid


class RecordDamaged(HummockError):
    """Parts of one record do not fit together."""

    def __init__(self, project: int, what: str) -> None:
        super().__init__(f"project number {project}: {what}")
        self.project = project
        self.what = what
