"""Script of one client in one project: it follows from a seed, and each step is repeated until it is answered."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import learning_pb2
from hummock_client.v1 import learning_service_pb2 as learning
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import project_service_pb2 as projects
from hummock_client.v1 import recall_pb2 as recall
from hummock_client.v1 import session_service_pb2 as sessions
from tests.service.running import Stubs

_WORDS = [
    "tide",
    "lamp",
    "harbour",
    "还款",
    "潮汐",
    "parseDate",
    "pier",
    "ledger",
    "灯塔",
    "storm",
    "anchor",
    "keel",
    "日期",
    "cargo",
    "crane",
]
_MOST_ATTEMPTS = 60
_LEAST_ENTRIES = 6

AFTER = ("LearnTurn", "ObserveTurn", "Feedback")
"""Calls after which the background learner works."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A call: the stub's service, the method, and its request."""

    service: str
    method: str
    request: Message


def answered(stubs: Stubs, step: Step) -> Message:
    """The reply to a call that is repeated, the same to the last byte, until somebody answers it."""
    call = getattr(getattr(stubs, step.service), step.method)
    why = ""
    for _ in range(_MOST_ATTEMPTS):
        try:
            reply: Message = call(step.request)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
            why = error.details() or ""
        else:
            return reply
    raise AssertionError(f"{step.method} was lost {_MOST_ATTEMPTS} times; the last time: {why}")


def settle(direct: Stubs, project: str) -> None:
    """Returns when the background learner has nothing left to do for a project.

    A write waits for the note that a turn was seen, and a scan for what is learnt from that turn.
    """
    request = memory.DeleteMemoriesRequest(project=project, request_id=str(uuid.UUID(int=0)), ids=["nobody"])
    direct.memory.DeleteMemories(request)
    for _ in direct.learning.LearnKeywords(learning.LearnKeywordsRequest(project=project, memory_ids=["nobody"])):
        pass


class Script:
    """The steps of one project, in order. What they say follows from the seed and the number of the step alone."""

    def __init__(self, project: str, seed: str, steps: int) -> None:
        self._project = project
        self._seed = seed
        self._steps = steps
        self._random = Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self._memories: list[str] = []
        self._entries: list[str] = []
        self._sessions: list[str] = []
        self._messages: list[tuple[str, str]] = []
        self._turns = 0
        self._number = 0

    def __iter__(self) -> Iterator[Step]:
        yield self._made("session", "CreateSession", sessions.CreateSessionRequest(id="s0", title="first"))
        self._sessions.append("s0")
        yield self._made("context", "Learn", context.LearnRequest(memories=[self._entry() for _ in range(4)]))
        settings = learning_pb2.LearningSettings(
            high_above=2, mid_above=1, analysis_cooldown_turns=0, cold_start_pause=Duration()
        )
        switched = learning.UpdateLearningSettingsRequest(enabled=True, settings=settings)
        yield self._made("learning", "UpdateLearningSettings", switched)
        kinds: tuple[tuple[Callable[[], Step], int], ...] = (
            (self._learn, 5),
            (self._turn, 6),
            (self._observed, 3),
            (self._render, 5),
            (self._update, 4),
            (self._delete, 2),
            (self._feedback, 3),
            (self._message, 4),
            (self._message_changed, 2),
            (self._message_deleted, 1),
            (self._session, 2),
            (self._retitled, 1),
            (self._session_deleted, 1),
            (self._keywords, 2),
            (self._info, 1),
            (self._settings, 1),
        )
        makers, weights = zip(*kinds, strict=True)
        for make in self._random.choices(makers, weights, k=self._steps):
            yield make()

    def _made(self, service: str, method: str, request: Any) -> Step:
        if "project" in request.DESCRIPTOR.fields_by_name:
            request.project = self._project
        self._number += 1
        request.request_id = self._id(f"request/{self._number}")
        return Step(service=service, method=method, request=request)

    def _id(self, name: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self._seed}/{name}"))

    def _said(self) -> str:
        return " ".join(self._random.choices(_WORDS, k=self._random.randint(3, 9)))

    def _entry(self) -> pb.Memory:
        name = f"entry{self._number}-{len(self._entries)}"
        self._entries.append(name)
        title = f"{self._random.choice(_WORDS)} {name}"
        return pb.Memory(id=name, kind=pb.MEMORY_KIND_ENTRY, title=title, content=self._said())

    def _note(self) -> pb.Memory:
        name = f"m{self._number}-{len(self._memories)}"
        self._memories.append(name)
        return pb.Memory(id=name, kind=pb.MEMORY_KIND_NOTE, origin=pb.ORIGIN_MANUAL, content=f"{name}: {self._said()}")

    def _learn(self) -> Step:
        made = [self._entry() if not self._random.randrange(4) else self._note() for _ in range(3)]
        return self._made("context", "Learn", context.LearnRequest(memories=made))

    def _turn(self) -> Step:
        sides = [context.TurnSide(text=self._said(), message_id=self._id(f"{n}/{self._number}")) for n in range(2)]
        used, session_id = self._random.sample(self._entries, 2), self._random.choice(self._sessions)
        request = context.LearnTurnRequest(
            session_id=session_id, user=sides[0], assistant=sides[1], used_memory_ids=used
        )
        self._messages += [(session_id, side.message_id) for side in sides]
        return self._made("context", "LearnTurn", request)

    def _observed(self) -> Step:
        self._turns += 1
        request = learning.ObserveTurnRequest(
            turn=self._turns, user_text=self._said(), used_memory_ids=self._random.sample(self._entries, 2)
        )
        return self._made("learning", "ObserveTurn", request)

    def _render(self) -> Step:
        self._turns += 1
        scope = self._random.choice(["", *self._sessions])
        asked = recall.RecallRequest(query_text=f"{self._said()} {self._random.choice(self._entries)}")
        rendering = context.RenderRequest(project=self._project, recall=asked, budget_tokens=300)
        request = context.RenderTurnRequest(render=rendering, scope=scope, turn=self._turns)
        return self._made("context", "RenderTurn", request)

    def _update(self) -> Step:
        changed = pb.Memory(id=self._random.choice(self._entries), content=self._said(), summary=self._said())
        request = memory.UpdateMemoryRequest(memory=changed)
        request.update_mask.paths.extend(["content", "summary"])
        return self._made("memory", "UpdateMemory", request)

    def _delete(self) -> Step:
        gone = self._random.sample(self._memories, min(2, len(self._memories)))
        if len(self._entries) > _LEAST_ENTRIES:
            gone.append(self._random.choice(self._entries))
        self._memories = [one for one in self._memories if one not in gone]
        self._entries = [one for one in self._entries if one not in gone]
        return self._made("memory", "DeleteMemories", memory.DeleteMemoriesRequest(ids=[*gone, "nobody"]))

    def _feedback(self) -> Step:
        verdicts = [
            context.FeedbackVerdict(memory_id=one, judgement=self._random.randint(1, 3))  # type: ignore[arg-type]
            for one in self._random.sample(self._entries, 2)
        ]
        request = context.FeedbackRequest(query_text=self._said(), verdicts=verdicts, note="said")
        return self._made("context", "Feedback", request)

    def _message(self) -> Step:
        request = sessions.AppendMessageRequest(
            session_id=self._random.choice(self._sessions), role=context.PROMPT_ROLE_USER, content=self._said()
        )
        return self._made("session", "AppendMessage", request)

    def _message_changed(self) -> Step:
        if not self._messages:
            return self._message()
        session_id, message_id = self._random.choice(self._messages)
        changed = sessions.MessageUpdate(id=message_id, content=self._said())
        request = sessions.UpdateMessageRequest(session_id=session_id, message=changed)
        request.update_mask.paths.append("content")
        return self._made("session", "UpdateMessage", request)

    def _message_deleted(self) -> Step:
        if not self._messages:
            return self._message()
        session_id, message_id = self._messages.pop(self._random.randrange(len(self._messages)))
        request = sessions.DeleteMessageRequest(session_id=session_id, id=message_id)
        return self._made("session", "DeleteMessage", request)

    def _session(self) -> Step:
        name = f"s{self._number}"
        self._sessions.append(name)
        return self._made("session", "CreateSession", sessions.CreateSessionRequest(id=name))

    def _retitled(self) -> Step:
        changed = sessions.SessionUpdate(id=self._random.choice(self._sessions), title=self._said())
        request = sessions.UpdateSessionRequest(session=changed)
        request.update_mask.paths.append("title")
        return self._made("session", "UpdateSession", request)

    def _session_deleted(self) -> Step:
        # "s0" stays, so that there always is one.
        name = self._random.choice(self._sessions)
        if name == "s0":
            return self._message()
        self._sessions.remove(name)
        self._messages = [one for one in self._messages if one[0] != name]
        return self._made("session", "DeleteSession", sessions.DeleteSessionRequest(id=name))

    def _keywords(self) -> Step:
        said = learning.EntryKeywords(
            memory_id=self._random.choice(self._entries), keywords=self._random.sample(_WORDS, 2)
        )
        return self._made("learning", "UpdateLearningSettings", learning.UpdateLearningSettingsRequest(keywords=[said]))

    def _info(self) -> Step:
        request = projects.UpdateProjectRequest(info=projects.ProjectInfo(path=f"/srv/{self._number}"))
        request.update_mask.paths.append("path")
        return self._made("project", "UpdateProject", request)

    def _settings(self) -> Step:
        request = projects.UpdateProjectSettingsRequest()
        request.settings.agent.top_k = 5 + self._random.randrange(20)
        request.update_mask.paths.append("agent.top_k")
        return self._made("project", "UpdateProjectSettings", request)
