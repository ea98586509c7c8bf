"""The tools: what a model is told of each, what each takes and gives, and how arguments that do not fit are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hummock.core.tools import MAX_SEARCH_TOP_K, SEARCH_TOP_K, ToolDefinition, read_tool, search_tool
from hummock_tools.mcp.calls import ProjectCalls
from hummock_tools.mcp.reach import Refused
from hummock_tools.mcp.results import Forgotten, MemoryInFull, Remembered, SearchResults, TaskContext

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
        text, results = await calls.search(self.query, self.topK, self.type, session_id)
        return _answer(results, text)


class ReadMemory(Arguments):
    """One memory in full."""

    id: str

    async def call(self, calls: ProjectCalls, session_id: str) -> CallToolResult:
        """The memory as JSON."""
        return _answer(await calls.read(self.id))


class Remember(Arguments):
    """A note."""

    text: Annotated[str, Field(description="要记住的内容。What to remember.")]
    title: Annotated[str, Field(description="标题，可省略。A name for people; the first line if left out.")] = ""
    tags: Annotated[tuple[str, ...], Field(description='标签，可省略。Labels, for example "checkout".')] = ()

    async def call(self, calls: ProjectCalls, session_id: str) -> CallToolResult:
        """Remembers the text and returns the outcome."""
        return _answer(await calls.remember(self.text, self.title, self.tags))


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
        """Forgets the memories and returns the outcome."""
        return _answer(await calls.forget(self.ids))


class RecallContext(Arguments):
    """A task."""

    task: Annotated[str, Field(description="任务，最好是用户的原话。The task, best in the user's own words.")]
    budget_tokens: Annotated[
        int | None,
        Field(ge=1, le=1_000_000, description="token 上限，默认 4000。Upper bound on tokens; 4000 if left out."),
    ] = None

    async def call(self, calls: ProjectCalls, session_id: str) -> CallToolResult:
        """The section as Markdown, and with what is known about it."""
        context = await calls.recall_context(self.task, self.budget_tokens)
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
