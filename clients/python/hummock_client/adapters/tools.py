"""A project's memory as tools of a chat model, as the APIs of OpenAI and Anthropic take them; needs nothing more."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from hummock_client.client import AsyncClient, Client
from hummock_client.errors import HummockCallError, describe
from hummock_client.requests import new_request_id
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import memory_service_pb2 as memories_pb

_SCOPES = {
    "code": context_pb.SEARCH_SCOPE_CODE,
    "knowledge": context_pb.SEARCH_SCOPE_KNOWLEDGE,
    "both": context_pb.SEARCH_SCOPE_BOTH,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool that a model is offered; `input_schema` is JSON schema."""

    name: str
    description: str
    input_schema: Mapping[str, Any]

    def openai(self) -> dict[str, Any]:
        """The definition as an element of `tools` in OpenAI's chat completions."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.input_schema)}
        return {"type": "function", "function": function}

    def anthropic(self) -> dict[str, Any]:
        """The definition as an element of `tools` in Anthropic's messages."""
        return {"name": self.name, "description": self.description, "input_schema": dict(self.input_schema)}


def _schema(required: str, **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "object", "properties": properties, "required": [required], "additionalProperties": False}


SEARCH = ToolDefinition(
    name="search",
    description="统一搜索工具，同时搜索代码和领域知识\nSearches code and domain knowledge together.",
    input_schema=_schema(
        "query",
        query={"type": "string", "description": "搜索查询\nWhat to look for (required)"},
        topK={
            "type": "integer",
            "minimum": 1,
            "maximum": 200,
            "default": 10,
            "description": "返回结果数量（默认 10）\nHow many results to return (default 10)",
        },
        type={
            "type": "string",
            "enum": list(_SCOPES),
            "default": "both",
            "description": "搜索类型：code/knowledge/both（默认 both）\n"
            "What to look through: code, knowledge or both (default both)",
        },
    ),
)
READ_MEMORY = ToolDefinition(
    name="read_memory",
    description="读取一条记忆的全文。摘要不够用时调用它，不要猜测内容。\n"
    "Reads the full content of a memory. Call it when a summary is not enough, instead of guessing.",
    input_schema=_schema(
        "id",
        id={
            "type": "string",
            "description": "记忆的 ID，与 `[ID: …]` 里的写法一致。\nThe id of the memory, as it stands in `[ID: …]`.",
        },
    ),
)
REMEMBER = ToolDefinition(
    name="remember",
    description="记住一条以后用得着的知识。\n"
    "Stores one fact, decision or finding for later. Write it so that it is understood without this conversation.",
    input_schema=_schema("text", text={"type": "string", "description": "要记住的内容。\nWhat to remember."}),
)


class MemoryTools:
    """Tools that let a model use the memories of one project. The searches of one object are one conversation."""

    def __init__(self, project: str) -> None:
        self._project = project
        self._session_id = f"tools-{uuid.uuid4()}"
        self.definitions = (SEARCH, READ_MEMORY, REMEMBER)

    def openai(self) -> list[dict[str, Any]]:
        """`tools` of OpenAI's chat completions."""
        return [definition.openai() for definition in self.definitions]

    def anthropic(self) -> list[dict[str, Any]]:
        """`tools` of Anthropic's messages."""
        return [definition.anthropic() for definition in self.definitions]

    def call(self, client: Client, name: str, arguments: str | Mapping[str, Any]) -> str:
        """Runs a tool, arguments as JSON or parsed; returns the text for the model. Errors are returned, not raised."""
        try:
            return _said(client.send(self._request(name, arguments)))  # type: ignore[call-overload] # one of three
        except (HummockCallError, ValueError, TypeError) as error:
            return _failure(error, client.target)

    async def call_async(self, client: AsyncClient, name: str, arguments: str | Mapping[str, Any]) -> str:
        """Like `call`, with the client for asyncio."""
        try:
            return _said(await client.send(self._request(name, arguments)))  # type: ignore[call-overload] # one of three
        except (HummockCallError, ValueError, TypeError) as error:
            return _failure(error, client.target)

    def _request(self, name: str, arguments: str | Mapping[str, Any]) -> Message:
        given = dict(json.loads(arguments) if isinstance(arguments, str) else arguments)
        definition = next((one for one in self.definitions if one.name == name), None)
        if definition is None:
            raise ValueError(f"there is no tool {name}")
        known, required = definition.input_schema["properties"], definition.input_schema["required"]
        if wrong := [*sorted(given.keys() - known), *(one for one in required if one not in given)]:
            raise ValueError(f"{name} takes {', '.join(known)}, and needs {required[0]}; wrong or missing: {wrong}")
        if definition is SEARCH:
            return self._search(**given)
        return self._read(**given) if definition is READ_MEMORY else self._remember(**given)

    def _search(self, query: str, topK: int = 10, type: str = "both") -> Message:  # noqa: N803 # the model's names
        if type not in _SCOPES:
            raise ValueError(f"type is {type}; it is one of {', '.join(_SCOPES)}")
        return context_pb.SearchRequest(
            project=self._project,
            query_text=query,
            top_k=topK,
            scope=_SCOPES[type],
            session_id=self._session_id,
            allow_missing=True,
        )

    def _read(self, id: str) -> Message:
        return memories_pb.GetMemoryRequest(project=self._project, id=id)

    def _remember(self, text: str) -> Message:
        # MANUAL would say that a person wrote it, and no chat recalls AI_OUTPUT.
        note = memory_pb2.Memory(kind=memory_pb2.MEMORY_KIND_NOTE, origin=memory_pb2.ORIGIN_SUMMARY, content=text)
        return context_pb.LearnRequest(project=self._project, memories=[note], request_id=new_request_id())


def _said(reply: Message) -> str:
    if isinstance(reply, context_pb.SearchResponse):
        return reply.text
    if isinstance(reply, memories_pb.GetMemoryResponse):
        return f"{reply.memory.title}\n\n{reply.memory.text}"
    assert isinstance(reply, context_pb.LearnResponse)  # noqa: S101 # the third of three requests
    return f"stored as {reply.results[0].id}"


def _failure(error: Exception, target: str) -> str:
    said = describe(error, target) if isinstance(error, HummockCallError) else str(error)
    return f"error: {said}"
