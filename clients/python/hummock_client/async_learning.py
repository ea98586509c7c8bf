"""The part of the client for asyncio that shows and changes how projects learn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping

from hummock_client import requests
from hummock_client.sending import AsyncSend
from hummock_client.streaming import AsyncStream
from hummock_client.v1 import learning_pb2
from hummock_client.v1 import learning_service_pb2 as pb


class AsyncLearning:
    """The learning loop; `AsyncClient.learning`. Every call raises HummockCallError when it fails."""

    def __init__(self, send: AsyncSend, stream: AsyncStream) -> None:
        self._send = send
        self._stream = stream

    async def state(self, project: str, *, timeout_s: float | None = None) -> pb.LearningState:
        """Learning state of the whole project: the switch, the counts, and the progress."""
        request = pb.GetLearningStateRequest(project=project, page_size=1)
        return (await self._send(request, timeout_s=timeout_s)).state

    async def entries(
        self,
        project: str,
        scope: str = "",
        *,
        turn: int | None = None,
        page_size: int = 0,
        timeout_s: float | None = None,
    ) -> AsyncIterator[pb.EntryState]:
        """All entries as a turn of the scope would inject them, the one after its newest unless said otherwise.

        Pages are fetched as they are needed.
        """
        request = pb.GetLearningStateRequest(project=project, scope=scope, turn=turn, page_size=page_size)
        while True:
            page = await self._send(request, timeout_s=timeout_s)
            for entry in page.entries:
                yield entry
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def watch(
        self, project: str, scope: str = "", *, state_token: str = "", timeout_s: float | None = None
    ) -> AsyncGenerator[pb.WatchLearningStateResponse, None]:
        """The state with all entries, then what changes, without end.

        Close the iterator to hang up. When it raises, watch again with the newest state_token: it begins with
        everything only where something has changed. No deadline unless `timeout_s` sets one.
        """
        return self._stream(
            pb.WatchLearningStateRequest(project=project, scope=scope, state_token=state_token), timeout_s
        )

    async def update(
        self,
        project: str,
        *,
        enabled: bool | None = None,
        settings: learning_pb2.LearningSettings | None = None,
        keywords: Mapping[str, Iterable[str]] | None = None,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> pb.UpdateLearningSettingsResponse:
        """Changes what is not None; `keywords` by memory id replace those that an entry has."""
        request = pb.UpdateLearningSettingsRequest(
            project=project,
            enabled=enabled,
            settings=settings,
            keywords=(pb.EntryKeywords(memory_id=id_, keywords=several) for id_, several in (keywords or {}).items()),
            request_id=requests.id_or_new(request_id),
        )
        return await self._send(request, timeout_s=timeout_s)

    async def observe_turn(
        self,
        project: str,
        user_text: str,
        assistant_text: str = "",
        *,
        turn: int,
        scope: str = "",
        used_ids: Iterable[str] = (),
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> pb.ObserveTurnResponse:
        """Writes down that a turn is over, and has keywords learnt from it; it does not wait for those."""
        request = pb.ObserveTurnRequest(
            project=project,
            scope=scope,
            turn=turn,
            user_text=user_text,
            assistant_text=assistant_text,
            used_memory_ids=used_ids,
            request_id=requests.id_or_new(request_id),
        )
        return await self._send(request, timeout_s=timeout_s)

    def learn_keywords(
        self,
        project: str,
        memory_ids: Iterable[str] = (),
        *,
        scope: pb.ScanScope.ValueType = pb.SCAN_SCOPE_UNSPECIFIED,
        timeout_s: float | None = None,
    ) -> AsyncGenerator[pb.LearnKeywordsResponse, None]:
        """Has entries read for keywords, those without any unless said otherwise, and yields what became of each.

        It goes on when the iterator is closed; asking again joins it. No deadline unless `timeout_s` sets one.
        """
        request = pb.LearnKeywordsRequest(project=project, scope=scope, memory_ids=memory_ids)
        return self._stream(request, timeout_s)

    async def replay(
        self, project: str, *, fork: learning_pb2.LearningSettings | None = None, timeout_s: float | None = None
    ) -> pb.ReplayLearningResponse:
        """Folds the log again and compares; with a fork, says what its numbers would have injected."""
        return await self._send(pb.ReplayLearningRequest(project=project, fork=fork), timeout_s=timeout_s)

    async def events(
        self, project: str, *, newest_first: bool = False, page_size: int = 0, timeout_s: float | None = None
    ) -> AsyncIterator[pb.LearningEvent]:
        """The log, oldest first unless said otherwise; pages are fetched as they are needed."""
        request = pb.ListLearningEventsRequest(project=project, newest_first=newest_first, page_size=page_size)
        while True:
            page = await self._send(request, timeout_s=timeout_s)
            for event in page.events:
                yield event
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token
