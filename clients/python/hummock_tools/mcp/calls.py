"""The calls to the service behind the tools: only here the contract's messages become answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import grpc
from anyio.lowlevel import checkpoint_if_cancelled

from hummock_client import AsyncClient
from hummock_client.errors import HummockCallError, describe
from hummock_client.time_zone import own_zone
from hummock_client.v1 import context_service_pb2, memory_pb2, recall_pb2
from hummock_tools.mcp.reach import Reach, Refused, UnknownMemory
from hummock_tools.mcp.results import Forgotten, MemoryInFull, Remembered, SearchResults, TaskContext

Answer = TypeVar("Answer")

_ENDING_S = 1.0
"""Seconds for which a stopping service may still accept connections."""

_READY_S = 20.0
"""Longest wait for a started service that listens to answer."""


class ProjectCalls:
    """The memories of one project. Every call raises Refused if it fails."""

    def __init__(self, client: AsyncClient, project: str, reach: Reach) -> None:
        self._client = client
        self._project = project
        self._reach = reach
        self._is_reached = False

    async def search(self, query: str, top_k: int, type: str, session_id: str) -> tuple[str, SearchResults]:
        """Search code and knowledge in one list, as text and as data. A session remembers the results shown in it."""
        scope = context_service_pb2.SearchScope.Value(f"SEARCH_SCOPE_{type.upper()}")
        found = await self._answered(
            lambda: self._client.search(
                self._project, query, scope=scope, top_k=top_k, session_id=session_id, time_zone=own_zone()
            )
        )
        return found.text, SearchResults.of(found)

    async def read(self, id: str) -> MemoryInFull:
        """One memory in full. Raises: UnknownMemory."""
        return MemoryInFull.of(await self._answered(lambda: self._client.get(self._project, id)))

    async def remember(self, text: str, title: str, tags: Sequence[str]) -> Remembered:
        """Stores a note."""
        memory = memory_pb2.Memory(
            kind=memory_pb2.MEMORY_KIND_NOTE,
            # MANUAL would say that a person wrote it, and no chat recalls AI_OUTPUT.
            origin=memory_pb2.ORIGIN_SUMMARY,
            title=title,
            tags=tags,
            content=text,
        )
        learnt = await self._answered(lambda: self._client.learn(self._project, [memory]))
        return Remembered.of(learnt.results[0])

    async def forget(self, ids: Sequence[str]) -> Forgotten:
        """Removes memories, all in one write."""
        removed = await self._answered(lambda: self._client.delete(self._project, ids))
        return Forgotten(forgotten=removed.deleted_count, missing_ids=list(removed.missing_ids))

    async def recall_context(self, task: str, budget_tokens: int | None) -> TaskContext:
        """The context section of the CODE preset; nothing is counted as used."""
        recall = recall_pb2.RecallRequest(query_text=task, preset=recall_pb2.PRESET_CODE, time_zone=own_zone())
        request = context_service_pb2.RenderRequest(
            project=self._project,
            recall=recall,
            form=context_service_pb2.RENDER_FORM_CONTEXT,
            budget_tokens=budget_tokens,
            # Nothing has been learnt where an agent begins.
            allow_missing=True,
        )
        return TaskContext.of(await self._answered(lambda: self._client.send(request)))

    async def _answered(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the service's answer; starts or restarts the service if necessary.

        A write is repeated only when it found nobody: remembering twice is one memory, forgetting twice as once.
        """
        try:
            if not self._is_reached:
                await self._reach()
                self._is_reached = True
            try:
                return await call()
            except HummockCallError as error:
                if error.reason != grpc.StatusCode.UNAVAILABLE.name or not await self._reached_again():
                    raise
                return await call()
        except asyncio.CancelledError:
            # gRPC raises one of its own, by which the scope that cancelled does not know its cancellation again: the
            # server's loop would end with the call. This raises the scope's.
            await checkpoint_if_cancelled()
            raise
        except HummockCallError as error:
            failure = UnknownMemory if error.code is grpc.StatusCode.NOT_FOUND else Refused
            raise failure(describe(error, self._client.target)) from error

    async def _reached_again(self) -> bool:
        """Restarts a service that did not answer; true if it is ready then."""
        if not await self._reach():
            await asyncio.sleep(_ENDING_S)
            if not await self._reach():
                return False
        # A connection that was refused is not tried again at once, unless somebody waits for it.
        await self._client.wait_until_ready(_READY_S)
        return True
