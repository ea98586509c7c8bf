"""Brings what readers find to the service: what is there already is not sent, so that a run can be repeated.

A memory is known by its id and source_hash, a message by its id in its session. A message that is there without the
memory of this import was stored by `hummock-hook`, is held for review, or its memory was removed: it is left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import grpc
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.errors import call_error, describe
from hummock_client.requests import new_request_id
from hummock_client.streaming import IMPORT, Connection, exchange, import_messages
from hummock_client.time_zone import own_zone
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import memory_pb2, memory_service_pb2, project_service_pb2, session_service_pb2
from hummock_client.v1.context_service_pb2_grpc import ContextServiceStub
from hummock_client.v1.memory_service_pb2_grpc import MemoryServiceStub
from hummock_client.v1.session_service_pb2_grpc import SessionServiceStub
from hummock_client.v1.transfer_pb2 import TransferMessage, TransferRecord, TransferSession
from hummock_tools.importing.conversations import Finding, Found, LeftOut, Wrong, project_of

_BATCH_MEMORIES = 64
_BATCH_BYTES = 1 << 20
_PAGE_MESSAGES = 1000
_KNOWN_SESSIONS = 16
_TIMEOUT_S = 60.0
_MOST_NAMED = 100
"""Wrong lines and refused memories that are named; all are counted."""

_NO_PROJECT = "memories of no known folder (--project names one)"


@dataclass(slots=True, kw_only=True)
class SessionCounts:
    """Memories of a session by what becomes of them: "new", "changed", "unchanged" or "elsewhere".

    The last ones were stored by `hummock-hook`, are held for review or were removed. "" is the session of memories that
    have none.
    """

    title: str = ""
    outcomes: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True, kw_only=True)
class Report:
    """What an import did, or would do. `secrets` are counted by kind, and whether they were replaced."""

    projects: dict[str, dict[str, SessionCounts]] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    wrong: list[Wrong] = field(default_factory=list)
    wrong_count: int = 0
    refused: list[Wrong] = field(default_factory=list)
    refused_count: int = 0
    held: int = 0
    messages: int = 0
    secrets: Counter[tuple[str, bool]] = field(default_factory=Counter)

    def total(self, name: str) -> int:
        """Memories of all sessions for which this becomes of them."""
        return sum(counts.outcomes[name] for sessions in self.projects.values() for counts in sessions.values())

    def note_wrong(self, wrong: Wrong) -> None:
        """Counts a wrong line, and keeps the first ones."""
        self.wrong_count += 1
        if len(self.wrong) < _MOST_NAMED:
            self.wrong.append(wrong)

    def refuse(self, memory_id: str, reason: str) -> None:
        """Counts a memory that the service refused, and keeps the first ones."""
        self.refused_count += 1
        if len(self.refused) < _MOST_NAMED:
            self.refused.append(Wrong(where=memory_id, reason=reason))


class Storing:
    """Stores what readers find, batch by batch. What a finished batch has brought stays, whatever ends the run."""

    def __init__(
        self, connection: Connection[grpc.Channel], *, project: str, dry_run: bool, on_progress: Callable[[int], None]
    ) -> None:
        """Sends nothing yet.

        Args:
            connection: The service.
            project: Where all is stored; empty for the project of each memory's folder.
            dry_run: Only asks what is there, and counts.
            on_progress: Called with the number of memories that were dealt with so far.
        """
        self.report = Report()
        self._connection = connection
        self._contexts = ContextServiceStub(connection.channel)
        self._memories = MemoryServiceStub(connection.channel)
        self._sessions = SessionServiceStub(connection.channel)
        self._project = project
        self._dry_run = dry_run
        # Whoever said it is taken to have sat here.
        self._time_zone = own_zone()
        self._on_progress = on_progress
        self._waiting: dict[str, dict[str, Found]] = {}
        self._names: dict[str, str] = {}
        self._messages: dict[tuple[str, str], set[str]] = {}
        self._counted: set[int] = set()
        self._done = 0

    def take(self, parts: Iterable[Finding]) -> None:
        """Stores all parts. Raises: HummockCallError, grpc.RpcError."""
        for part in parts:
            match part:
                case LeftOut(reason=reason, count=count):
                    self.report.left_out[reason] += count
                case Wrong():
                    self.report.note_wrong(part)
                case Found():
                    self._add(part)
        for project in list(self._waiting):
            self._flush(project)

    def _add(self, found: Found) -> None:
        project = self._project or found.project or self._project_of(found.folder)
        if not project:
            self.report.left_out[_NO_PROJECT] += 1
            return
        waiting = self._waiting.setdefault(project, {})
        size = sum(one.memory.ByteSize() for one in waiting.values())
        is_full = len(waiting) == _BATCH_MEMORIES or size + found.memory.ByteSize() > _BATCH_BYTES
        # A fork of a session begins with the turns of the first one; whether those are there is asked again then.
        if waiting and (is_full or found.memory.id in waiting):
            self._flush(project)
        self._waiting.setdefault(project, {})[found.memory.id] = found

    def _project_of(self, folder: str) -> str:
        if folder not in self._names:
            self._names[folder] = project_of(folder)
        return self._names[folder]

    def _flush(self, project: str) -> None:
        batch = list(self._waiting.pop(project).values())
        known = self._known(project, batch)
        learnt: list[Found] = []
        changed: list[Found] = []
        for found in batch:
            outcome = self._outcome(project, found, known)
            self._count(project, found, outcome)
            if outcome in ("new", "changed"):
                if found.message_id:
                    found.memory.time_zone = self._time_zone
                learnt.append(found)
            if outcome == "changed" and self._has_message(project, found):
                changed.append(found)
        refused = set() if self._dry_run else self._learn(project, [found.memory for found in learnt])
        missing = [
            found
            for found in batch
            # A message without a time would be one of today.
            if found.message_id and found.memory.HasField("create_time") and found.memory.id not in refused
            if not self._has_message(project, found)
        ]
        self.report.messages += len(missing)
        if not self._dry_run:
            self._append(project, missing)
            for found in changed:
                self._update(project, found)
        for found in missing:
            self._there(project, found.memory.session_id).add(found.message_id)
        self._done += len(batch)
        self._on_progress(self._done)

    def _known(self, project: str, batch: Sequence[Found]) -> dict[str, str]:
        """The source hashes of the memories that are there, by id."""
        request = memory_service_pb2.BatchGetMemoriesRequest(
            project=project,
            ids=[found.memory.id for found in batch],
            view=memory_pb2.MEMORY_VIEW_INDEX,
            allow_missing=True,
        )
        reply = self._memories.BatchGetMemories(request, timeout=_TIMEOUT_S)
        return {memory.id: memory.source_hash for memory in reply.memories}

    def _outcome(self, project: str, found: Found, known: dict[str, str]) -> str:
        memory = found.memory
        if memory.id in known:
            return "unchanged" if known[memory.id] == memory.source_hash else "changed"
        if self._dry_run and hash((project, memory.id)) in self._counted:
            return "unchanged"
        return "elsewhere" if found.message_id and self._has_message(project, found) else "new"

    def _count(self, project: str, found: Found, outcome: str) -> None:
        sessions = self.report.projects.setdefault(project, {})
        counts = sessions.setdefault(found.memory.session_id, SessionCounts(title=found.title))
        counts.outcomes[outcome] += 1
        if outcome in ("new", "changed"):
            kind = memory_pb2.MemoryKind.Name(found.memory.kind)
            self.report.kinds[kind.removeprefix("MEMORY_KIND_").lower()] += 1
        if self._dry_run:
            self._counted.add(hash((project, found.memory.id)))

    def _has_message(self, project: str, found: Found) -> bool:
        return found.message_id in self._there(project, found.memory.session_id)

    def _there(self, project: str, session: str) -> set[str]:
        """The ids of a session's messages; those of the last few sessions are remembered."""
        if (project, session) not in self._messages:
            if len(self._messages) == _KNOWN_SESSIONS:
                del self._messages[next(iter(self._messages))]
            self._messages[project, session] = set(self._listed(project, session)) if session else set()
        return self._messages[project, session]

    def _listed(self, project: str, session: str) -> Iterator[str]:
        request = session_service_pb2.ListMessagesRequest(project=project, session_id=session, page_size=_PAGE_MESSAGES)
        while True:
            try:
                page = self._sessions.ListMessages(request, timeout=_TIMEOUT_S)
            except grpc.RpcError as error:
                if isinstance(error, grpc.Call) and error.code() is grpc.StatusCode.NOT_FOUND:
                    return
                raise
            yield from (message.id for message in page.messages)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def _learn(self, project: str, memories: Sequence[memory_pb2.Memory]) -> set[str]:
        """Learns the memories; where the service refuses them together, one by one. Returns ids of refused ones."""
        if not memories:
            return set()
        request = context_pb.LearnRequest(
            project=project,
            request_id=new_request_id(),
            memories=memories,
            embedding=context_pb.EMBEDDING_MODE_DEFERRED,
        )
        try:
            reply = self._contexts.Learn(request, timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            if not isinstance(error, grpc.Call) or error.code() is not grpc.StatusCode.INVALID_ARGUMENT:
                raise
            if len(memories) > 1:
                return set().union(*(self._learn(project, [memory]) for memory in memories))
            self.report.refuse(memories[0].id, describe(call_error(error, self._connection.target), ""))
            return {memories[0].id}
        for result in reply.results:
            self.report.held += result.status == context_pb.LEARN_STATUS_HELD
            for secret in result.secrets:
                self.report.secrets[secret.kind, secret.redacted] += secret.count
        return set()

    def _append(self, project: str, missing: Sequence[Found]) -> None:
        """Appends messages, with the times at which they were sent, to their sessions, which it creates."""
        if not missing:
            return
        begun = {found.memory.session_id: found for found in reversed(missing)}
        records = [
            *(_session(found, found.memory.create_time) for found in begun.values()),
            *(_message(found) for found in missing),
        ]
        messages = import_messages(project, enumerate(records))
        for reply in exchange(
            self._connection, IMPORT, project_service_pb2.ImportProjectResponse, messages, _TIMEOUT_S
        ):
            for failure in reply.failures:
                place = failure.number - len(begun)
                named = missing[place].memory.id if place >= 0 else list(begun)[failure.number]
                self.report.refuse(named, failure.status.message)

    def _update(self, project: str, found: Found) -> None:
        """Has a message say what its memory says now."""
        request = session_service_pb2.UpdateMessageRequest(
            project=project,
            request_id=new_request_id(),
            session_id=found.memory.session_id,
            message=session_service_pb2.MessageUpdate(id=found.message_id, content=found.memory.content),
            update_mask=FieldMask(paths=["content"]),
        )
        self._sessions.UpdateMessage(request, timeout=_TIMEOUT_S)


def _session(found: Found, time: Timestamp) -> TransferRecord:
    return TransferRecord(session=TransferSession(id=found.memory.session_id, title=found.title, create_time=time))


def _message(found: Found) -> TransferRecord:
    memory = found.memory
    is_user = memory.origin == memory_pb2.ORIGIN_USER_INPUT
    return TransferRecord(
        message=TransferMessage(
            session_id=memory.session_id,
            id=found.message_id,
            role=context_pb.PROMPT_ROLE_USER if is_user else context_pb.PROMPT_ROLE_ASSISTANT,
            content=memory.content,
            send_time=memory.create_time,
            memory_id=memory.id,
        )
    )
