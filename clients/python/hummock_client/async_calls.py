"""The part of the client for asyncio that keeps memories and projects."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from typing import Unpack

from google.protobuf.field_mask_pb2 import FieldMask

from hummock_client import prompts, requests
from hummock_client.prompts import Message
from hummock_client.sending import AsyncSend
from hummock_client.streaming import AsyncStream
from hummock_client.time_zone import named_zone
from hummock_client.v1 import admin_service_pb2 as admin_pb
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import explain_pb2, memory_pb2, recall_pb2, settings_pb2, transfer_pb2
from hummock_client.v1 import memory_service_pb2 as memories_pb
from hummock_client.v1 import project_service_pb2 as projects_pb


class AsyncCalls:
    """Memories, projects and the state of the service. Every call raises HummockCallError when it fails."""

    def __init__(self, send: AsyncSend, stream: AsyncStream) -> None:
        self.send = send
        self._stream = stream

    async def recall(
        self, project: str, text: str, *, timeout_s: float | None = None, **options: Unpack[requests.RecallOptions]
    ) -> recall_pb2.RecallResponse:
        """Finds the memories that bear on a text; none in a project that does not exist, unless told otherwise."""
        return await self.send(requests.recall(project, text, options), timeout_s=timeout_s)

    async def render(
        self,
        project: str,
        source: str | Sequence[str] | recall_pb2.RecallRequest,
        *,
        timeout_s: float | None = None,
        **options: Unpack[requests.RenderOptions],
    ) -> context_pb.RenderResponse:
        """Writes the prompt section for what a text recalls, for a recall, or for the memories with these ids."""
        return await self.send(requests.render(project, source, options), timeout_s=timeout_s)

    async def render_turn(
        self,
        project: str,
        source: str | recall_pb2.RecallRequest,
        *,
        turn: int,
        scope: str = "",
        request_id: str | None = None,
        timeout_s: float | None = None,
        **options: Unpack[requests.RenderOptions],
    ) -> context_pb.RenderTurnResponse:
        """Writes a turn's prompt and counts it once; `scope` is a session's id, or empty for the project itself."""
        request = context_pb.RenderTurnRequest(
            render=requests.render(project, source, options),
            scope=scope,
            turn=turn,
            request_id=requests.id_or_new(request_id),
        )
        return await self.send(request, timeout_s=timeout_s)

    async def with_memory(
        self,
        project: str,
        messages: Sequence[Message],
        *,
        budget_s: float = 0.3,
        preset: recall_pb2.Preset.ValueType = recall_pb2.PRESET_UNSPECIFIED,
        form: context_pb.RenderForm.ValueType = context_pb.RENDER_FORM_MEMORIES,
        budget_tokens: int | None = None,
    ) -> Sequence[Message]:
        """The messages, with what the project knows about the user's last one in their system prompt.

        Messages are as chat models take them: {"role": "user", "content": "…"}, and so on. Memory fails open: where
        nothing is known, the service does not answer within the budget, or anything else goes wrong, these very
        messages come back, and the log of "hummock_client" says why. The first call takes longest: `warm_up` early.
        """
        try:
            if not (query := prompts.query_of(messages)):
                return messages
            system = prompts.system_of(messages)
            request = prompts.request(project, query, system, form, preset, budget_tokens)
            return prompts.with_section(messages, await self.send(request, timeout_s=budget_s))
        except Exception as error:  # whatever it is, no prompt is to fail for want of memory
            prompts.went_wrong(error)
            return messages

    async def learn(
        self,
        project: str,
        memories: Iterable[memory_pb2.Memory],
        *,
        request_id: str | None = None,
        embedding: context_pb.EmbeddingMode.ValueType = context_pb.EMBEDDING_MODE_INLINE,
        timeout_s: float | None = None,
    ) -> context_pb.LearnResponse:
        """Stores memories, all or none. Give a request_id of your own, a UUID, to be able to repeat the call.

        With EMBEDDING_MODE_DEFERRED it answers sooner: they are found by words at once, by meaning a little later.
        """
        request = context_pb.LearnRequest(
            project=project, memories=memories, request_id=requests.id_or_new(request_id), embedding=embedding
        )
        return await self.send(request, timeout_s=timeout_s)

    async def note(
        self,
        project: str,
        text: str,
        tags: Iterable[str] = (),
        *,
        pinned: bool = False,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> context_pb.LearnResponse:
        """Stores one sentence; a pinned one is in every prompt. A request_id is a UUID, as in `learn`."""
        memory = requests.note(text, tags, pinned=pinned)
        return await self.learn(project, [memory], request_id=request_id, timeout_s=timeout_s)

    async def search(
        self, project: str, text: str, *, timeout_s: float | None = None, **options: Unpack[requests.SearchOptions]
    ) -> context_pb.SearchResponse:
        """Searches code and knowledge together."""
        options = {"allow_missing": True, "time_zone": named_zone(), **options}
        request = context_pb.SearchRequest(project=project, query_text=text, **options)
        return await self.send(request, timeout_s=timeout_s)

    async def explain(
        self,
        project: str,
        text: str,
        memory_id: str,
        *,
        timeout_s: float | None = None,
        **options: Unpack[requests.RecallOptions],
    ) -> explain_pb2.ExplainResponse:
        """Says why recalling for a text brings back a memory, or loses it, and what would bring it back."""
        recall = requests.recall(project, text, {"allow_missing": False, **options})
        return await self.send(explain_pb2.ExplainRequest(recall=recall, memory_id=memory_id), timeout_s=timeout_s)

    async def feedback(
        self,
        project: str,
        verdicts: Mapping[str, context_pb.Judgement.ValueType],
        *,
        request_id: str | None = None,
        timeout_s: float | None = None,
        **options: Unpack[requests.FeedbackOptions],
    ) -> context_pb.FeedbackResponse:
        """Says by memory id what was of use for a query, for example {"m1": JUDGEMENT_HELPFUL}."""
        each = [
            context_pb.FeedbackVerdict(memory_id=memory_id, judgement=judgement)
            for memory_id, judgement in verdicts.items()
        ]
        request = context_pb.FeedbackRequest(
            project=project, verdicts=each, request_id=requests.id_or_new(request_id), **options
        )
        return await self.send(request, timeout_s=timeout_s)

    async def get(
        self, project: str, memory_id: str, *, timeout_s: float | None = None, **options: Unpack[requests.ReadOptions]
    ) -> memory_pb2.Memory:
        """One memory."""
        request = memories_pb.GetMemoryRequest(project=project, id=memory_id, **options)
        return (await self.send(request, timeout_s=timeout_s)).memory

    async def batch_get(
        self,
        project: str,
        ids: Iterable[str],
        *,
        max_reply_bytes: int = 0,
        timeout_s: float | None = None,
        **options: Unpack[requests.ReadOptions],
    ) -> memories_pb.BatchGetMemoriesResponse:
        """Several memories, the ids that do not exist, and those that a reply (0: of 4 MiB) had no room for."""
        request = memories_pb.BatchGetMemoriesRequest(
            project=project, ids=ids, max_reply_bytes=max_reply_bytes, **options
        )
        return await self.send(request, timeout_s=timeout_s)

    async def list_memories(
        self,
        project: str,
        where: memory_pb2.MemoryFilter | None = None,
        *,
        view: memory_pb2.MemoryView.ValueType = memory_pb2.MEMORY_VIEW_INDEX,
        order: memories_pb.ListOrder.ValueType = memories_pb.LIST_ORDER_UNSPECIFIED,
        contains: str = "",
        page_size: int = 0,
        allow_missing: bool = False,
        timeout_s: float | None = None,
    ) -> AsyncIterator[memory_pb2.Memory]:
        """All memories that pass the filter and hold the string, oldest write first; pages are fetched when needed.

        Their `content` and `text` are empty in the INDEX view, the default; compare titles or ask for MEMORY_VIEW_FULL.
        """
        request = memories_pb.ListMemoriesRequest(
            project=project,
            filter=where,
            view=view,
            page_size=page_size,
            order=order,
            contains=contains,
            allow_missing=allow_missing,
        )
        while True:
            page = await self.send(request, timeout_s=timeout_s)
            for memory in page.memories:
                yield memory
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def watch_memories(
        self,
        project: str,
        where: memory_pb2.MemoryFilter | None = None,
        *,
        after_seq: int | None = None,
        view: memory_pb2.MemoryView.ValueType = memory_pb2.MEMORY_VIEW_INDEX,
        allow_missing: bool = True,
        timeout_s: float | None = None,
    ) -> AsyncGenerator[memories_pb.WatchMemoriesResponse, None]:
        """Follows a project's memories without end: first a start message, then events, or a reset.

        Close the iterator (`aclosing`) to hang up. When it raises, watch again with the seq of the last message as
        after_seq. No deadline unless `timeout_s` sets one.
        """
        request = memories_pb.WatchMemoriesRequest(
            project=project, filter=where, after_seq=after_seq, view=view, allow_missing=allow_missing
        )
        return self._stream(request, timeout_s)

    def map_memories(
        self, project: str, ids: Iterable[str] = (), *, allow_missing: bool = False, timeout_s: float | None = None
    ) -> AsyncGenerator[memories_pb.MapMemoriesResponse, None]:
        """All memories, or those with these ids, as points of a plane: first a message that counts them, then columns.

        Close the iterator (`aclosing`) to hang up. No deadline unless `timeout_s` sets one.
        """
        request = memories_pb.MapMemoriesRequest(project=project, ids=ids, allow_missing=allow_missing)
        return self._stream(request, timeout_s)

    async def update(
        self,
        project: str,
        memory: memory_pb2.Memory,
        paths: Iterable[str],
        *,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> memories_pb.UpdateMemoryResponse:
        """Gives the named fields of the memory with this id the values in `memory`, for example "title"."""
        request = memories_pb.UpdateMemoryRequest(
            project=project,
            memory=memory,
            update_mask=FieldMask(paths=paths),
            request_id=requests.id_or_new(request_id),
        )
        return await self.send(request, timeout_s=timeout_s)

    async def delete(
        self, project: str, ids: Iterable[str], *, request_id: str | None = None, timeout_s: float | None = None
    ) -> memories_pb.DeleteMemoriesResponse:
        """Removes memories, all in one write."""
        request = memories_pb.DeleteMemoriesRequest(project=project, ids=ids, request_id=requests.id_or_new(request_id))
        return await self.send(request, timeout_s=timeout_s)

    async def delete_where(
        self, project: str, where: memory_pb2.MemoryFilter, *, dry_run: bool = False, timeout_s: float | None = None
    ) -> int:
        """Removes all memories that pass a filter, a few hundred a call, and says how many; or only counts them."""
        removed = 0
        while True:
            request = memories_pb.DeleteMemoriesRequest(
                project=project, filter=where, dry_run=dry_run, request_id=requests.id_or_new(None)
            )
            reply = await self.send(request, timeout_s=timeout_s)
            removed += reply.deleted_count
            if not reply.remaining_count:
                return removed

    async def project(self, name: str, *, timeout_s: float | None = None) -> projects_pb.ProjectDetails:
        """One project, with the number of memories of each kind."""
        request = projects_pb.GetProjectRequest(project=name)
        return (await self.send(request, timeout_s=timeout_s)).project

    async def projects(
        self, *, page_size: int = 0, timeout_s: float | None = None
    ) -> AsyncIterator[projects_pb.ProjectDetails]:
        """All projects by name; pages are fetched as they are needed."""
        request = projects_pb.ListProjectsRequest(page_size=page_size)
        while True:
            page = await self.send(request, timeout_s=timeout_s)
            for project in page.projects:
                yield project
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def export_project(
        self, name: str, *, with_vectors: bool = False, timeout_s: float | None = None
    ) -> AsyncIterator[transfer_pb2.TransferRecord]:
        """All of a project as records, in the order in which they make it again. No deadline unless one is given."""
        request = projects_pb.ExportProjectRequest(project=name, with_vectors=with_vectors)
        async for message in self._stream(request, timeout_s):
            for record in message.records:
                yield record

    async def update_project(
        self,
        name: str,
        *,
        tech_stack: Sequence[str] | None = None,
        path: str | None = None,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> projects_pb.ProjectDetails:
        """Changes what is not None of a project's information; creates the project."""
        request = projects_pb.UpdateProjectRequest(
            project=name,
            info=projects_pb.ProjectInfo(tech_stack=tech_stack or (), path=path or ""),
            update_mask=requests.mask_of({"tech_stack": tech_stack, "path": path}),
            request_id=requests.id_or_new(request_id),
        )
        return (await self.send(request, timeout_s=timeout_s)).project

    async def delete_project(
        self, name: str, *, request_id: str | None = None, timeout_s: float | None = None
    ) -> projects_pb.DeleteProjectResponse:
        """Removes a project with all that it has; the answer counts it."""
        request = projects_pb.DeleteProjectRequest(project=name, request_id=requests.id_or_new(request_id))
        return await self.send(request, timeout_s=timeout_s)

    async def settings(self, project: str, *, timeout_s: float | None = None) -> projects_pb.GetProjectSettingsResponse:
        """Settings of a project, and the values that apply if a request does not set them."""
        return await self.send(projects_pb.GetProjectSettingsRequest(project=project), timeout_s=timeout_s)

    async def update_settings(
        self,
        project: str,
        settings: settings_pb2.ProjectSettings,
        paths: Iterable[str],
        *,
        request_id: str | None = None,
        timeout_s: float | None = None,
    ) -> projects_pb.UpdateProjectSettingsResponse:
        """Gives the named settings, for example "chat.top_k", the values in `settings`; unset ones their defaults."""
        request = projects_pb.UpdateProjectSettingsRequest(
            project=project,
            settings=settings,
            update_mask=FieldMask(paths=paths),
            request_id=requests.id_or_new(request_id),
        )
        return await self.send(request, timeout_s=timeout_s)

    async def status(self, *, timeout_s: float | None = None) -> admin_pb.GetStatusResponse:
        """Status of the service: versions, models, load and size of the store."""
        return await self.send(admin_pb.GetStatusRequest(), timeout_s=timeout_s)
