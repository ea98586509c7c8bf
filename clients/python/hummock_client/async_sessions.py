"""The part of the client for asyncio that keeps conversations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable

from hummock_client import requests
from hummock_client.sending import AsyncSend
from hummock_client.streaming import AsyncStream
from hummock_client.time_zone import named_zone
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import session_pb2
from hummock_client.v1 import session_service_pb2 as pb


class AsyncSessions:
    """Chat sessions and their messages; `AsyncClient.sessions`. Every call raises HummockCallError when it fails."""

    def __init__(self, send: AsyncSend, stream: AsyncStream) -> None:
        self._send = send
        self._stream = stream

    async def active(self, project: str, *, timeout_s: float | None = None) -> session_pb2.ChatSession:
        """The session that is not archived and was written to last; a new one where there is none."""
        request = pb.GetOrCreateActiveSessionRequest(project=project)
        return (await self._send(request, timeout_s=timeout_s)).session

    async def create(
        self,
        project: str,
        session_id: str = "",
        *,
        title: str = "",
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> session_pb2.ChatSession:
        """A new session, which is then the active one; without an id the service makes one."""
        request = pb.CreateSessionRequest(
            project=project, id=session_id, title=title, request_id=requests.id_or_new(request_id)
        )
        return (await self._send(request, timeout_s=timeout_s)).session

    async def get(self, project: str, session_id: str, *, timeout_s: float | None = None) -> session_pb2.ChatSession:
        """One session."""
        request = pb.GetSessionRequest(project=project, id=session_id)
        return (await self._send(request, timeout_s=timeout_s)).session

    async def list(
        self,
        project: str,
        *,
        archived: bool = False,
        page_size: int = 0,
        allow_missing: bool = False,
        timeout_s: float | None = None,
    ) -> AsyncIterator[session_pb2.ChatSession]:
        """All sessions, the active one first, or all archived ones; pages are fetched as they are needed."""
        request = pb.ListSessionsRequest(
            project=project, archived=archived, page_size=page_size, allow_missing=allow_missing
        )
        while True:
            page = await self._send(request, timeout_s=timeout_s)
            for session in page.sessions:
                yield session
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def update(
        self,
        project: str,
        session_id: str,
        *,
        title: str | None = None,
        archived: bool | None = None,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> session_pb2.ChatSession:
        """Changes what is not None."""
        request = pb.UpdateSessionRequest(
            project=project,
            session=pb.SessionUpdate(id=session_id, title=title or "", archived=archived or False),
            update_mask=requests.mask_of({"title": title, "archived": archived}),
            request_id=requests.id_or_new(request_id),
        )
        return (await self._send(request, timeout_s=timeout_s)).session

    async def delete(
        self, project: str, session_id: str, *, request_id: str | None = None, timeout_s: float | None = None
    ) -> pb.DeleteSessionResponse:
        """Removes a session and its messages; memories stay."""
        request = pb.DeleteSessionRequest(project=project, id=session_id, request_id=requests.id_or_new(request_id))
        return await self._send(request, timeout_s=timeout_s)

    async def append(
        self,
        project: str,
        session_id: str,
        content: str,
        *,
        role: context_pb.PromptRole.ValueType = context_pb.PROMPT_ROLE_USER,
        raw: str = "",
        message_id: str = "",
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> pb.AppendMessageResponse:
        """Appends a message, the user's unless said otherwise."""
        request = pb.AppendMessageRequest(
            project=project,
            session_id=session_id,
            id=message_id,
            role=role,
            content=content,
            raw=raw,
            request_id=requests.id_or_new(request_id),
        )
        return await self._send(request, timeout_s=timeout_s)

    async def update_message(
        self,
        project: str,
        session_id: str,
        message_id: str,
        *,
        content: str | None = None,
        raw: str | None = None,
        delete_following: bool = False,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> pb.UpdateMessageResponse:
        """Changes what is not None of a message, and its memory; with a new content the old raw goes."""
        request = pb.UpdateMessageRequest(
            project=project,
            session_id=session_id,
            message=pb.MessageUpdate(id=message_id, content=content or "", raw=raw or ""),
            update_mask=requests.mask_of({"content": content, "raw": raw}),
            delete_following=delete_following,
            request_id=requests.id_or_new(request_id),
        )
        return await self._send(request, timeout_s=timeout_s)

    async def delete_message(
        self,
        project: str,
        session_id: str,
        message_id: str,
        *,
        delete_following: bool = False,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> pb.DeleteMessageResponse:
        """Removes a message and the memory that it was learnt as; all messages after it too, if so wanted."""
        request = pb.DeleteMessageRequest(
            project=project,
            session_id=session_id,
            id=message_id,
            delete_following=delete_following,
            request_id=requests.id_or_new(request_id),
        )
        return await self._send(request, timeout_s=timeout_s)

    async def messages(
        self,
        project: str,
        session_id: str,
        *,
        page_size: int = 0,
        max_characters: int = 0,
        timeout_s: float | None = None,
    ) -> AsyncIterator[pb.ListMessagesResponse]:
        """Pages of messages, the newest page first, each in the order of time; fetched as they are needed."""
        request = pb.ListMessagesRequest(
            project=project, session_id=session_id, page_size=page_size, max_characters=max_characters
        )
        while True:
            page = await self._send(request, timeout_s=timeout_s)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def watch(
        self,
        project: str,
        session_id: str,
        *,
        newest: int | None = None,
        after_position: int | None = None,
        after_revision: int | None = None,
        timeout_s: float | None = None,
    ) -> AsyncGenerator[pb.WatchMessagesResponse, None]:
        """The newest messages (20 if unset), or those after a position, then each that comes or changes, without end.

        Close the iterator (`aclosing`) to hang up. When it raises, watch again with the last reply's position and
        revision as after_position and after_revision. No deadline unless `timeout_s` sets one.
        """
        request = pb.WatchMessagesRequest(
            project=project,
            session_id=session_id,
            newest=newest,
            after_position=after_position,
            after_revision=after_revision,
        )
        return self._stream(request, timeout_s)

    async def learn_turn(
        self,
        project: str,
        session_id: str,
        user: str | context_pb.TurnSide,
        assistant: str | context_pb.TurnSide,
        *,
        used_memory_ids: Iterable[str] = (),
        files: Iterable[str] = (),
        time_zone: str = "",
        replace_answer: bool = False,
        embedding: context_pb.EmbeddingMode.ValueType = context_pb.EMBEDDING_MODE_INLINE,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> context_pb.LearnTurnResponse:
        """Stores a finished turn: both sides as memories and as messages, as far as they are not there yet.

        With `replace_answer` the answer takes the place of the one that is there under its message's id. Both sides
        need the ids of their messages then. With EMBEDDING_MODE_DEFERRED it answers sooner: both are found by words at
        once, by meaning a little later. `files` are those that the model changed, as paths below the repository's root.
        `time_zone` is where the user's clock is: what HUMMOCK_TIME_ZONE names, else the project's.
        """
        request = context_pb.LearnTurnRequest(
            project=project,
            request_id=requests.id_or_new(request_id),
            session_id=session_id,
            user=requests.turn_side(user),
            assistant=requests.turn_side(assistant),
            used_memory_ids=used_memory_ids,
            files=files,
            time_zone=time_zone or named_zone(),
            replace_answer=replace_answer,
            embedding=embedding,
        )
        return await self._send(request, timeout_s=timeout_s)
