"""The tools: what a model is told of each, what each takes, asks of the service and gives.

Arguments that do not fit are refused in words for the model.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar

import grpc
from anyio.lowlevel import checkpoint_if_cancelled
from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hummock.core.tools import MAX_SEARCH_TOP_K, SEARCH_TOP_K, ToolDefinition, read_tool, search_tool
from hummock_client import AsyncClient
from hummock_client.errors import HummockCallError, describe
from hummock_client.time_zone import own_zone
from hummock_client.v1 import context_service_pb2, memory_pb2, recall_pb2
from hummock_tools.mcp.results import Forgotten, MemoryInFull, Remembered, SearchResults, TaskContext
from hummock_tools.mcp.server import Reach, Refused, UnknownMemory

Answer = TypeVar("Answer")

_ENDING_S: Final = 1.0
"""Seconds for which a stopping service may still accept connections."""

_READY_S: Final = 20.0
"""Longest wait for a started service that listens to answer."""

MAX_FORGOTTEN: Final = 100
"""Memories that one call of `forget` removes at most: a slip of a model costs no more."""

REMEMBER: Final = """\
记住一条以后用得着的知识。
Stores one fact, decision or finding for later sessions; it is found from the next search on. Write it so that it is \
understood without this conversation. The same again, word for word, is not stored twice."""

FORGET: Final = """\
按 ID 删除记忆，无法恢复。
Removes memories for good, by their ids. Only for what is wrong or out of date, or when the user asks for it; to \
correct a memory, remember the right text first, then forget the old one."""

RECALL_CONTEXT: Final = """\
为一个任务取回背景：项目信息、领域知识、学习记录和相关代码。
Gives what is known that bears on a task, as one section for the prompt inside a token budget: the project, domain \
knowledge, learning records, code. Call it once, before the work begins."""

_NOTHING_KNOWN: Final = "Nothing is known yet that bears on this task."
_MAX_SHOWN_CHARACTERS: Final = 80
_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_REMOVES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)


class ProjectCalls:
    """Calls to the service about the memories of one project."""

    def __init__(self, client: AsyncClient, project: str, reach: Reach | None) -> None:
        """`reach` starts the service where it is away; None leaves that to others."""
        self.project = project
        self._client = client
        self._reach = reach
        self._is_reached = False

    async def memory(self, id: str) -> MemoryInFull:
        """One memory in full. Raises: UnknownMemory, Refused."""
        return MemoryInFull.of(await self.answer(lambda client: client.get(self.project, id)))

    async def answer(self, call: Callable[[AsyncClient], Awaitable[Answer]]) -> Answer:
        """Return the service's answer; starts or restarts the service if necessary. Raises: Refused.

        A write is repeated only when it found nobody: remembering twice is one memory, forgetting twice as once.
        """
        try:
            if not self._is_reached:
                await self._reached()
                self._is_reached = True
            try:
                return await call(self._client)
            except HummockCallError as error:
                if error.reason != grpc.StatusCode.UNAVAILABLE.name or not await self._reached_again():
                    raise
                return await call(self._client)
        except asyncio.CancelledError:
            # gRPC raises one of its own, by which the scope that cancelled does not know its cancellation again: the
            # server's loop would end with the call. This raises the scope's.
            await checkpoint_if_cancelled()
            raise
        except HummockCallError as error:
            failure = UnknownMemory if error.code is grpc.StatusCode.NOT_FOUND else Refused
            raise failure(describe(error, self._client.target)) from error

    async def _reached(self) -> bool:
        return self._reach is not None and await self._reach()

    async def _reached_again(self) -> bool:
        """Restarts a service that did not answer; true if it is ready then."""
        if not await self._reached():
            await asyncio.sleep(_ENDING_S)
            if not await self._reached():
                return False
        # A connection that was refused is not tried again at once, unless somebody waits for it.
        await self._client.wait_until_ready(_READY_S)
        return True


class Arguments(BaseModel):
    """Arguments of a tool; unknown arguments are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    async def call(self, calls: ProjectCalls, session_id: str) -> CallToolResult:
        """Runs the tool and returns its answer. Raises: Refused."""
        raise NotImplementedError


class Search(Arguments):
    """Code and knowledge in one list: as text, and with what is known about each."""

    query: str
    topK: int = Field(default=SEARCH_TOP_K, ge=1, le=MAX_SEARCH_TOP_K)  # noqa: N815 - the name in the definition
    type: Literal["code", "knowledge", "both"] = "both"

    async def call(self, calls: ProjectCalls, session_id: str) -> CallToolResult:
        """Searches of one session are one conversation."""
        scope = context_service_pb2.SearchScope.Value(f"SEARCH_SCOPE_{self.type.upper()}")
        found = await calls.answer(
            lambda client: client.search(
                calls.project, self.query, scope=scope, top_k=self.topK, session_id=session_id, time_zone=own_zone()
            )
        )
        return _answer(SearchResults.of(found), found.text)


class ReadMemory(Arguments):
    """One memory in full."""

    id: str

    async def call(self, calls: ProjectCalls, session_id: str) -> CallToolResult:
        """The memory as JSON."""
        return _answer(await calls.memory(self.id))


class Remember(Arguments):
    """A note."""

    text: Annotated[str, Field(description="要记住的内容。What to remember.")]
    title: Annotated[str, Field(description="标题，可省略。A name for people; the first line if left out.")] = ""
    tags: Annotated[tuple[str, ...], Field(description='标签，可省略。Labels, for example "checkout".')] = ()

    async def call(self, calls: ProjectCalls, session_id: str) -> CallToolResult:
        """Remembers the text and returns the outcome."""
        memory = memory_pb2.Memory(
            kind=memory_pb2.MEMORY_KIND_NOTE,
            # MANUAL would say that a person wrote it, and no chat recalls AI_OUTPUT.
            origin=memory_pb2.ORIGIN_SUMMARY,
            title=self.title,
            tags=self.tags,
            content=self.text,
            time_zone=own_zone(),
        )
        learnt = await calls.answer(lambda client: client.learn(calls.project, [memory]))
        return _answer(Remembered.of(learnt.results[0]))


class Forget(Arguments):
    """Memories that are to go."""

    ids: Annotated[
        tuple[str, ...],
        Field(
            min_length=1,
            max_length=MAX_FORGOTTEN,
            description="要删除的记忆的 ID。Ids of the memories, as a search or `[ID: …]` gives them.",
        ),
    ]

    async def call(self, calls: ProjectCalls, session_id: str) -> CallToolResult:
        """Forgets the memories, all in one write, and returns the outcome."""
        removed = await calls.answer(lambda client: client.delete(calls.project, self.ids))
        return _answer(Forgotten(forgotten=removed.deleted_count, missing_ids=list(removed.missing_ids)))


class RecallContext(Arguments):
    """A task."""

    task: Annotated[str, Field(description="任务，最好是用户的原话。The task, best in the user's own words.")]
    budget_tokens: Annotated[
        int | None,
        Field(ge=1, le=1_000_000, description="token 上限，默认 4000。Upper bound on tokens; 4000 if left out."),
    ] = None

    async def call(self, calls: ProjectCalls, session_id: str) -> CallToolResult:
        """The section of the CODE preset as Markdown, and with what is known about it; nothing is counted as used."""
        request = context_service_pb2.RenderRequest(
            project=calls.project,
            recall=recall_pb2.RecallRequest(query_text=self.task, preset=recall_pb2.PRESET_CODE, time_zone=own_zone()),
            form=context_service_pb2.RENDER_FORM_CONTEXT,
            budget_tokens=self.budget_tokens,
            # Nothing has been learnt where an agent begins.
            allow_missing=True,
        )
        context = TaskContext.of(await calls.answer(lambda client: client.send(request)))
        return _answer(context, context.text or _NOTHING_KNOWN)


class Offered(NamedTuple):
    """A tool that models are offered."""

    definition: ToolDefinition
    title: str
    arguments: type[Arguments]
    answer: type[BaseModel]
    hints: ToolAnnotations

    def listed(self) -> Tool:
        """The tool as `tools/list` returns it."""
        return Tool(
            name=self.definition.name,
            title=self.title,
            description=self.definition.description,
            input_schema=dict(self.definition.input_schema),
            output_schema=self.answer.model_json_schema(mode="serialization"),
            annotations=self.hints,
        )

    def read(self, arguments: Mapping[str, Any] | None) -> Arguments:
        """The arguments of a call. Raises: Refused."""
        try:
            return self.arguments.model_validate(dict(arguments or {}))
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False)
            said = "; ".join(_problem(".".join(map(str, each["loc"])), each) for each in problems)
            takes = ", ".join(self.arguments.model_fields)
            raise Refused(f"{said}. {self.definition.name} takes: {takes}") from error


def _problem(name: str, problem: Any) -> str:
    if problem["type"] == "extra_forbidden":
        return f"there is no argument {name}"
    if problem["type"] == "missing":
        return f"{name} is missing"
    # The library's own words for a bound or a type are plain: "Input should be less than or equal to 200".
    _, _, should = problem["msg"].replace(" after validation", "").partition(" should ")
    given = json.dumps(problem["input"], ensure_ascii=False, default=str)
    shown = given if len(given) <= _MAX_SHOWN_CHARACTERS else f"{given[: _MAX_SHOWN_CHARACTERS - 1]}…"
    return f"{name} is {shown}, and should {should or problem['msg']}"


def _answer(answer: BaseModel, text: str | None = None) -> CallToolResult:
    """An answer as data and, for clients that show text alone, as text."""
    data = answer.model_dump(mode="json")
    return CallToolResult(
        content=[TextContent(type="text", text=text or json.dumps(data, ensure_ascii=False, indent=2))],
        structured_content=data,
    )


def _described(name: str, description: str, arguments: type[Arguments]) -> ToolDefinition:
    """A definition whose schema is that of the arguments, without our docstrings, which are no help to a model."""
    schema = {key: value for key, value in arguments.model_json_schema().items() if key not in {"title", "description"}}
    return ToolDefinition(name=name, description=description, input_schema=schema)


_CONTEXT = _described("recall_context", RECALL_CONTEXT, RecallContext)
_TOOLS: Final = (
    Offered(search_tool("zh", "en"), "Search memories", Search, SearchResults, _READS),
    Offered(read_tool("read_memory", "zh", "en"), "Read a memory", ReadMemory, MemoryInFull, _READS),
    Offered(_CONTEXT, "Recall for a task", RecallContext, TaskContext, _READS),
    Offered(_described("remember", REMEMBER, Remember), "Remember", Remember, Remembered, _ADDS),
    Offered(_described("forget", FORGET, Forget), "Forget", Forget, Forgotten, _REMOVES),
)
OFFERED: Final[Mapping[str, Offered]] = {each.definition.name: each for each in _TOOLS}
"""The tools by name, those that read first."""
