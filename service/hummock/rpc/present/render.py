"""Replies that carry a prompt section."""

from __future__ import annotations

from hashlib import sha256

from hummock.core.prompt import PromptMessage
from hummock.core.render import Rendered, RenderedMemory, StablePrefix, ToolDefinition
from hummock.rpc.prefix_token import prefix_token
from hummock.rpc.present import values
from hummock.rpc.present.learning import turn_decision
from hummock.rpc.present.recall import degradations, intent, receipt
from hummock.v1 import context_service_pb2 as pb
from hummock.v1 import memory_pb2


def render_response(project: str, rendered: Rendered) -> pb.RenderResponse:
    """A prompt section of this project."""
    return pb.RenderResponse(
        text=rendered.text,
        token_count=rendered.token_count,
        budget_tokens=rendered.budget_tokens,
        over_budget=rendered.over_budget,
        memories=map(_memory, rendered.memories),
        tools=map(_tool, rendered.tools),
        missing_ids=rendered.missing_ids,
        intent=None if rendered.intent is None else intent(rendered.intent),
        receipt=None if rendered.receipt is None else receipt(rendered.receipt),
        degraded=degradations(rendered.degraded),
        render_elapsed=values.duration(rendered.render_elapsed_s),
        seq=rendered.seq,
        messages=map(_message, rendered.messages),
        instructions=rendered.instructions,
        prefix=None if rendered.prefix is None else _prefix(project, rendered.prefix),
        counter=rendered.counter,
        decision=None if rendered.decision is None else turn_decision(rendered.decision),
    )


def _memory(rendered: RenderedMemory) -> pb.RenderedMemory:
    return pb.RenderedMemory(
        memory_id=rendered.memory_id,
        kind=memory_pb2.MemoryKind.ValueType(rendered.kind),
        tier=pb.Tier.ValueType(rendered.tier),
        token_count=rendered.token_count,
        reason=rendered.reason,
        score=rendered.score,
        trust=rendered.trust,
        origin=memory_pb2.Origin.ValueType(rendered.origin),
        marks=[pb.MemoryMark.ValueType(mark) for mark in rendered.marks],
    )


def _tool(tool: ToolDefinition) -> pb.ToolDefinition:
    return pb.ToolDefinition(
        name=tool.name,
        description=tool.description,
        input_schema=values.struct(tool.input_schema),
        openai=values.struct(tool.openai()),
        anthropic=values.struct(tool.anthropic()),
        mcp=values.struct(tool.mcp()),
    )


def _message(message: PromptMessage) -> pb.PromptMessage:
    return pb.PromptMessage(
        id=message.id,
        role=pb.PromptRole.ValueType(message.role),
        content=message.content,
        send_time=None if message.send_time is None else values.timestamp(message.send_time),
    )


def _prefix(project: str, prefix: StablePrefix) -> pb.StablePrefix:
    return pb.StablePrefix(
        text=prefix.text,
        sha256=sha256(prefix.text.encode()).hexdigest(),
        token_count=prefix.token_count,
        token=prefix_token(project, prefix.state),
        rebase_advised=prefix.rebase_advised,
    )
