"""Clients that write until the service is killed, and what each of them may then expect to find."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import grpc

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import recall_pb2 as recall
from hummock_client.v1 import session_service_pb2 as sessions
from tests.service.running import Stubs

BATCH = 5
WORD = "lamp"
"""Word in every memory, so that one question finds all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A write, and what it changes once it is answered."""

    service: str
    method: str
    request: Any
    apply: Callable[[Any], None]

    def send(self, stubs: Stubs) -> Any:
        """The reply. Raises: grpc.RpcError."""
        return getattr(getattr(stubs, self.service), self.method)(self.request)


@dataclass(slots=True, kw_only=True)
class Writer:
    """One client: its memories, its session and its scope are its own, and so it knows what must be there.

    Attributes:
        contents: Contents by id of its memories that were acknowledged and not deleted.
        deleted: Ids of those whose removal was acknowledged.
        messages: Messages of its session, in order.
        counted: request_ids of the turns that it rendered.
        answered: Calls that were acknowledged, with their replies.
        in_flight: What it had sent and heard nothing of.
    """

    project: str
    name: str
    seed: str
    contents: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    messages: list[str] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)
    answered: list[tuple[Call, Any]] = field(default_factory=list)
    in_flight: Call | None = None

    def write(self, stubs: Stubs, on_answer: Callable[[], None]) -> None:
        """Writes until a call fails, which stays in flight."""
        random = Random(self.seed)  # noqa: S311 - to be repeated, not to be secret
        while True:
            self.in_flight = self._next(random)
            try:
                self.repeat(stubs)
            except grpc.RpcError as error:
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                    raise
                return
            on_answer()

    def repeat(self, stubs: Stubs) -> None:
        """Sends what is in flight, and notes that it was answered. Raises: grpc.RpcError."""
        call = self.in_flight
        if call is None:
            return
        reply = call.send(stubs)
        call.apply(reply)
        self.answered.append((call, reply))
        self.in_flight = None

    def _next(self, random: Random) -> Call:
        if not self.answered:
            return self._session()
        makers: list[Callable[[Random], Call]]
        makers = [*[self._learn] * 4, *[self._turn] * 2, *[self._message] * 2, self._render]
        if self.contents:
            makers += [self._update, self._delete]
        return random.choice(makers)(random)

    def _call(self, service: str, method: str, request: Any, apply: Callable[[Any], None]) -> Call:
        if "project" in request.DESCRIPTOR.fields_by_name:
            request.project = self.project
        request.request_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.seed}/{len(self.answered)}"))
        return Call(service=service, method=method, request=request, apply=apply)

    def _text(self, what: str) -> str:
        return f"{WORD} {what} of {self.name} at {len(self.answered)}: 码头的灯亮了"

    def _note(self, number: int) -> pb.Memory:
        name = f"{self.name}-{len(self.answered)}-{number}"
        content = self._text(f"note {number}")
        return pb.Memory(
            id=name, kind=pb.MEMORY_KIND_NOTE, origin=pb.ORIGIN_MANUAL, content=content, session_id=self.name
        )

    def _session(self) -> Call:
        return self._call("session", "CreateSession", sessions.CreateSessionRequest(id=self.name), lambda _: None)

    def _learn(self, _: Random) -> Call:
        notes = [self._note(number) for number in range(BATCH)]

        def apply(reply: context.LearnResponse) -> None:
            self.contents |= {note.id: note.content for note in notes}

        return self._call("context", "Learn", context.LearnRequest(memories=notes), apply)

    def _turn(self, _: Random) -> Call:
        said = [self._text("question"), self._text("answer")]
        sides = [context.TurnSide(text=text) for text in said]

        def apply(reply: context.LearnTurnResponse) -> None:
            self.contents |= {reply.user.memory_id: said[0], reply.assistant.memory_id: said[1]}
            self.messages += said

        request = context.LearnTurnRequest(session_id=self.name, user=sides[0], assistant=sides[1])
        return self._call("context", "LearnTurn", request, apply)

    def _message(self, _: Random) -> Call:
        said = self._text("message")
        request = sessions.AppendMessageRequest(session_id=self.name, role=context.PROMPT_ROLE_USER, content=said)
        return self._call("session", "AppendMessage", request, lambda _: self.messages.append(said))

    def _render(self, _: Random) -> Call:
        asked = recall.RecallRequest(query_text=self._text("query"))
        rendering = context.RenderRequest(project=self.project, recall=asked, budget_tokens=200)
        request = context.RenderTurnRequest(render=rendering, scope=self.name, turn=len(self.counted))
        call = self._call("context", "RenderTurn", request, lambda _: self.counted.append(request.request_id))
        return call

    def _update(self, random: Random) -> Call:
        changed = pb.Memory(id=random.choice(sorted(self.contents)), content=self._text("rewritten note"))
        request = memory.UpdateMemoryRequest(memory=changed)
        request.update_mask.paths.append("content")

        def apply(_: memory.UpdateMemoryResponse) -> None:
            self.contents[changed.id] = changed.content

        return self._call("memory", "UpdateMemory", request, apply)

    def _delete(self, random: Random) -> Call:
        gone = random.sample(sorted(self.contents), min(2, len(self.contents)))

        def apply(_: memory.DeleteMemoriesResponse) -> None:
            for one in gone:
                del self.contents[one]
            self.deleted.update(gone)

        return self._call("memory", "DeleteMemories", memory.DeleteMemoriesRequest(ids=gone), apply)
