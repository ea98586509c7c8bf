"""The four tools: each is one call of the service."""

from __future__ import annotations

import uuid
from typing import Annotated, Literal

from mcp.types import CallToolResult, TextContent
from pydantic import Field

from hummock.mcp.failure import calls_to
from hummock.mcp.results import MemoryInFull, Remembered, SearchResults, TaskContext
from hummock.v1 import context_service_pb2 as pb
from hummock.v1 import memory_pb2 as memory_pb
from hummock.v1 import recall_pb2 as recall_pb
from hummock_client import AsyncClient

__all__ = ["Tools"]

_NOTHING_KNOWN = "Nothing is known yet that bears on this task."

Query = Annotated[
    str, Field(description="搜索内容，自然语言或代码名称。What to look for: words, a question, or a name.")
]
Scope = Annotated[
    Literal["code", "knowledge", "both"],
    Field(description="搜索范围：code 只搜代码，knowledge 只搜领域知识，both 两者都搜。What to look through."),
]
Limit = Annotated[int, Field(ge=1, le=200, description="返回结果的最大数量。How many results at most.")]
MemoryId = Annotated[str, Field(description="记忆的 ID，与结果中的写法一致。The id, as a result gave it.")]
Text = Annotated[str, Field(description="要记住的内容。What to remember.")]
Title = Annotated[str, Field(description="标题，可省略。A name for people; the first line if left out.")]
Tags = Annotated[tuple[str, ...], Field(description='标签，可省略。Labels, for example "checkout".')]
Task = Annotated[str, Field(description="任务，最好是用户的原话。The task, best in the user's own words.")]
BudgetTokens = Annotated[
    int | None, Field(ge=1, le=1_000_000, description="token 上限，默认 4000。Upper bound on tokens; 4000 if left out.")
]


class Tools:
    """What a model can do with the memories of one project. Its searches are one conversation."""

    def __init__(self, client: AsyncClient, project: str) -> None:
        self._client = client
        self._project = project
        self._session_id = f"mcp-{uuid.uuid4()}"

    async def search(self, query: Query, scope: Scope = "both", limit: Limit = 10) -> SearchResults:
        """Code and knowledge in one list. Raises: what calls_to raises, as every tool."""
        with calls_to(self._client.target):
            value = pb.SearchScope.Value(f"SEARCH_SCOPE_{scope.upper()}")
            found = await self._client.search(
                self._project, query, scope=value, top_k=limit, session_id=self._session_id
            )
            return SearchResults.of(found)

    async def read_memory(self, id: MemoryId) -> MemoryInFull:
        """One memory in full."""
        with calls_to(self._client.target):
            return MemoryInFull.of(await self._client.get(self._project, id))

    async def remember(self, text: Text, title: Title = "", tags: Tags = ()) -> Remembered:
        """Stores a note."""
        memory = memory_pb.MemoryInput(
            kind=memory_pb.MEMORY_KIND_NOTE,
            # MANUAL would say that a person wrote it, and no chat recalls AI_OUTPUT.
            origin=memory_pb.ORIGIN_SUMMARY,
            index=memory_pb.MemoryIndex(title=title, tags=tags),
            payload=memory_pb.MemoryPayload(content=text),
        )
        with calls_to(self._client.target):
            return Remembered.of((await self._client.learn(self._project, [memory])).results[0])

    async def recall_context(
        self, task: Task, budget_tokens: BudgetTokens = None
    ) -> Annotated[CallToolResult, TaskContext]:
        """The context section of the CODE preset: as Markdown, and with what is known about it."""
        recall = recall_pb.RecallRequest(query_text=task, preset=recall_pb.PRESET_CODE)
        request = pb.RenderRequest(
            project=self._project, recall=recall, form=pb.RENDER_FORM_CONTEXT, budget_tokens=budget_tokens
        )
        with calls_to(self._client.target):
            context = TaskContext.of(await self._client.send(request))
        return CallToolResult(
            content=[TextContent(type="text", text=context.text or _NOTHING_KNOWN)],
            structured_content=context.model_dump(mode="json"),
        )
