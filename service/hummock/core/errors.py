"""Errors as values, and the parts of them that may be logged."""

from __future__ import annotations

import traceback
from pathlib import PurePath


class HummockError(Exception):
    """Base of all errors that Hummock raises on purpose."""

    reason = "INTERNAL"

    @property
    def metadata(self) -> dict[str, str]:
        """The facts of the message by name."""
        return {name: str(value) for name, value in vars(self).items() if not name.startswith("_")}


class InvalidRequest(HummockError):
    """A field of the request breaks a rule."""

    reason = "INVALID_REQUEST"

    def __init__(self, field: str, rule: str) -> None:
        """Args are the field's path in the request ("" for the whole request) and the rule that it breaks."""
        super().__init__(f"{field}: {rule}" if field else rule)
        self.field = field
        self.rule = rule

    def move_into(self, prefix: str) -> None:
        """Puts the place of a part of the request, with a dot at its end, before the field."""
        self.field = prefix + self.field
        self.args = (f"{self.field}: {self.rule}",)


class AlreadyExists(InvalidRequest):
    """The request would create something that exists already and differs."""


class WrongState(InvalidRequest):
    """A field of the request does not fit the state of the service."""


class RequestIdReused(AlreadyExists):
    """A request_id was used for a different request before."""

    reason = "REQUEST_ID_REUSED"

    def __init__(self, request_id: str) -> None:
        super().__init__("request_id", f"{request_id} was used for a different request; make a new one")
        self.request_id = request_id


class SessionExists(AlreadyExists):
    """A session with this id exists already."""

    reason = "SESSION_EXISTS"

    def __init__(self, session_id: str) -> None:
        super().__init__("id", f"session {session_id} exists already; use it, or choose another id")
        self.session_id = session_id


class MessageIdTaken(AlreadyExists):
    """A message of the session has this id and says something else."""

    reason = "MESSAGE_ID_TAKEN"

    def __init__(self, field: str, message_id: str) -> None:
        super().__init__(field, f"{message_id} is the id of another message of this session; make a new one")
        self.message_id = message_id


class EmbSpaceMismatch(WrongState):
    """A vector of one embedding space was sent to a project of another."""

    reason = "EMB_SPACE_MISMATCH"

    def __init__(self, field: str, given: str, expected: str) -> None:
        super().__init__(field, f"the vector's emb_space is {given}; the service's is {expected}")
        self.given = given
        self.expected = expected


class NotFound(HummockError):
    """The named object does not exist."""

    reason = "NOT_FOUND"


class MemoryNotFound(NotFound):
    """No memory of the project has this id."""

    reason = "MEMORY_NOT_FOUND"

    def __init__(self, memory_id: str) -> None:
        super().__init__(f"memory {memory_id} does not exist in this project")
        self.memory_id = memory_id


class ProjectNotFound(NotFound):
    """No project has this name."""

    reason = "PROJECT_NOT_FOUND"

    def __init__(self, project: str) -> None:
        super().__init__(f"project {project} does not exist; the first Learn creates it")
        self.project = project


class SessionNotFound(NotFound):
    """No session of the project has this id."""

    reason = "SESSION_NOT_FOUND"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id} does not exist in this project")
        self.session_id = session_id


class MessageNotFound(NotFound):
    """The session has no message of this id, or had one that was deleted."""

    reason = "MESSAGE_NOT_FOUND"

    def __init__(self, message_id: str) -> None:
        super().__init__(f"message {message_id} does not exist in this session")
        self.message_id = message_id


class NotReady(HummockError):
    """The state of the service does not allow it."""

    reason = "NOT_READY"


class SeqNotReached(NotReady):
    """A read asked for a write that has not happened."""

    reason = "SEQ_NOT_REACHED"

    def __init__(self, min_seq: int, seq: int) -> None:
        super().__init__(f"min_seq is {min_seq}; the project has accepted {seq} writes")
        self.min_seq = min_seq
        self.seq = seq


class Exhausted(HummockError):
    """A limit of the service is reached."""

    reason = "EXHAUSTED"


class Overloaded(Exhausted):
    """Too many calls are waiting, or a call would wait too long (`wait_s`)."""

    reason = "OVERLOADED"

    def __init__(self, waiting: int, limit: int, retry_after_s: float, wait_s: float | None = None) -> None:
        why = f"the limit is {limit}" if wait_s is None else f"this one would wait {wait_s:g} s, which is too long"
        super().__init__(f"{waiting} calls are waiting; {why}; try again in {retry_after_s:g} s")
        self.waiting = waiting
        self.limit = limit
        self.retry_after_s = retry_after_s
        if wait_s is not None:
            self.wait_s = wait_s


class StorageFull(Exhausted):
    """The data directory has reached its quota, or the disk is full."""

    reason = "STORAGE_FULL"

    def __init__(self, used_bytes: int, quota_bytes: int) -> None:
        super().__init__(
            f"the store uses {used_bytes} of {quota_bytes} bytes; delete memories or raise storage.quota_bytes"
        )
        self.used_bytes = used_bytes
        self.quota_bytes = quota_bytes


class DataLoss(HummockError):
    """The requested data is stored but damaged."""

    reason = "RECORD_DAMAGED"


class EventDamaged(DataLoss):
    """An event of a project's learning log is damaged."""

    def __init__(self, number: int) -> None:
        super().__init__(
            f"event {number} of the learning log is damaged on the disk: what is stored is not what was written; "
            "restore it from a backup"
        )
        self.number = number


class Unavailable(HummockError):
    """The service is starting or stopping; try again."""

    reason = "UNAVAILABLE"


class StoreUnreachable(Unavailable):
    """The store of the memories does not answer; try again."""

    reason = "STORE_UNREACHABLE"


class DeadlinePassed(HummockError):
    """The caller's deadline passed before its work was done, or begun."""

    reason = "DEADLINE_EXCEEDED"

    def __init__(self) -> None:
        super().__init__("the deadline passed before the work was done; nothing was stored")


class StartError(HummockError):
    """The service or a tool cannot start. The message names the fault and its remedy."""

    reason = "START_ERROR"


def places_of(error: BaseException) -> list[str]:
    """Return the places in the code that the error passed through, the outermost first.

    Without its message, which could contain a caller's text.
    """
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
