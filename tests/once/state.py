"""State of a project as the service reports it, in a form that lets two runs be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256

from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.v1 import learning_service_pb2 as learning
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import project_service_pb2 as projects
from hummock_client.v1 import recall_pb2 as recall
from hummock_client.v1 import session_service_pb2 as sessions
from tests.service.running import Stubs

_MADE = re.compile(r"(?<![0-9a-f-])[0-9a-f]{32}(?![0-9a-f-])")
"""An id that the server made, and a digest of ids."""

_OF_THE_MOMENT = (Timestamp.DESCRIPTOR, Duration.DESCRIPTOR, recall.Receipt.DESCRIPTOR)

_QUESTIONS = ("tide harbour lamp", "还款 潮汐 日期", "parseDate ledger")


def lines(stubs: Stubs, project: str) -> list[str]:
    """One line a record, without times; ids that the server made are numbered as they come."""
    numbers: dict[str, str] = {}

    def numbered(found: re.Match[str]) -> str:
        return numbers.setdefault(found[0], f"made{len(numbers)}")

    return [_MADE.sub(numbered, line) for message in _messages(stubs, project) for line in [bare(message)]]


def digest(said: Iterable[str]) -> str:
    """SHA-256 of lines as `lines` gives them, in hex."""
    return sha256("\n".join(said).encode()).hexdigest()


def bare(message: Message) -> str:
    """A message as text, without times, durations and receipts."""
    kept = type(message)()
    kept.CopyFrom(message)
    _clear(kept)
    return f"{message.DESCRIPTOR.name} {MessageToJson(kept, indent=None, sort_keys=True)}"


def _clear(message: Message) -> None:
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type in _OF_THE_MOMENT:
            message.ClearField(field.name)
        elif field.message_type.GetOptions().map_entry:
            continue
        elif field.is_repeated:
            for one in value:
                _clear(one)
        else:
            _clear(value)


def _messages(stubs: Stubs, project: str) -> Iterator[Message]:
    # Events first: they are in the order in which things happened.
    events = list(_events(stubs, project))
    yield from events
    for exported in stubs.project.ExportProject(projects.ExportProjectRequest(project=project)):
        yield from exported.records
    details = stubs.project.GetProject(projects.GetProjectRequest(project=project))
    yield details
    yield stubs.project.GetProjectSettings(projects.GetProjectSettingsRequest(project=project))
    listed = stubs.session.ListSessions(sessions.ListSessionsRequest(project=project, page_size=1000)).sessions
    # Sessions that moved within a millisecond are listed in either order.
    yield from sorted(listed, key=lambda one: one.id)
    for scope in ["", *sorted(one.id for one in listed)]:
        request = learning.GetLearningStateRequest(project=project, scope=scope, page_size=1000)
        yield stubs.learning.GetLearningState(request)
    replayed = stubs.learning.ReplayLearning(learning.ReplayLearningRequest(project=project))
    assert replayed.matches, "the log of events does not give the state"
    for text in _QUESTIONS:
        asked = recall.RecallRequest(project=project, query_text=text, preset=recall.PRESET_AGENT)
        for hit in stubs.context.Recall(asked).hits:
            yield recall.Hit(memory=memory_pb2.Memory(id=hit.memory.id), score=round(hit.score, 6))


def _events(stubs: Stubs, project: str) -> Iterator[Message]:
    token = ""
    while True:
        request = learning.ListLearningEventsRequest(project=project, page_size=1000, page_token=token)
        page = stubs.learning.ListLearningEvents(request)
        yield from page.events
        token = page.next_page_token
        if not token:
            return
