"""Messages of a prompt section, parsed and presented."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from hummock.core.errors import InvalidRequest
from hummock.core.recall import RecallQuery
from hummock.core.render import (
    READ_TOOLS,
    Locale,
    PartialQuotas,
    RenderCommit,
    Rendered,
    RenderForm,
    RenderQuery,
    StablePrefix,
    TailPlacement,
)
from hummock.core.session import HistoryQuery, PromptMessage, PromptRole, PromptTarget, PromptTemplate
from hummock.core.tools import ToolDefinition
from hummock.rpc import values
from hummock.rpc.conversion import message_of, value_of
from hummock.rpc.learning_messages import decision_values
from hummock.rpc.message_tables import encode, table_of
from hummock.rpc.recall_messages import degradations, intent, recall_query, receipt
from hummock.rpc.status import Spliced
from hummock.rpc.tokens import prefix_state, prefix_token
from hummock.rpc.validation import check, placed
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import memory_pb2, recall_pb2
from hummock_kernels.messages import written

_READ_TOOL: Final = {
    pb.READ_TOOL_UNSPECIFIED: READ_TOOLS[0],
    **{pb.ReadTool.Value(f"READ_TOOL_{name.upper()}"): name for name in READ_TOOLS},
}

_TURN: Final = table_of(pb.RenderTurnResponse.DESCRIPTOR)


def turn_query(request: pb.RenderTurnRequest, until_s: float | None = None) -> RenderQuery:
    """A turn's rendering. Args as for `render_query`. Raises: InvalidRequest."""
    commit = RenderCommit(
        scope=values.identifier("scope", request.scope),
        turn=request.turn,
        request_id=request.request_id.lower(),
        fingerprint=values.fingerprint(request),
    )
    try:
        return render_query(request.render, until_s, commit)
    except InvalidRequest as error:
        raise placed(error, "render.") from error


def render_query(
    request: pb.RenderRequest, until_s: float | None = None, commit: RenderCommit | None = None
) -> RenderQuery:
    """Parse a rendering. Its recall takes the outer project, is checked like a RecallRequest, and is full.

    Args:
        request: Checked against the rules.
        until_s: As in `recall_query`.
        commit: Makes it the rendering of a turn, which is counted.

    Raises: InvalidRequest.
    """
    project = values.project_name("project", request.project)
    return RenderQuery(
        project=project,
        recall=_parse_recall(request, until_s) if request.HasField("recall") else None,
        memory_ids=values.identifiers("memories.ids", ids) if (ids := request.memories.ids) else (),
        form=RenderForm(request.form or RenderForm.CONTEXT),
        budget_tokens=request.budget_tokens if request.HasField("budget_tokens") else None,
        locale=_parse_locale(request.locale) if request.locale else None,
        prompt=request.prompt if request.HasField("prompt") else None,
        template=PromptTemplate(request.template) if request.template else None,
        target=PromptTarget(request.target) if request.target else None,
        history=tuple([_parse_message(f"history[{index}]", sent) for index, sent in enumerate(request.history)]),
        current=_parse_message("current", request.current) if request.HasField("current") else None,
        read_ids=values.identifiers("read_ids", request.read_ids) if request.read_ids else (),
        quotas=value_of(PartialQuotas, request.quotas) if request.HasField("quotas") else PartialQuotas(),
        tail=_parse_tail(project, request),
        as_of=values.time("as_of", request, "as_of"),
        utc_offset_minutes=request.utc_offset_minutes,
        read_tool=_READ_TOOL[request.read_tool],
        session=_parse_session(request.session) if request.HasField("session") else None,
        commit=commit,
        must_exist=not request.allow_missing,
    )


def render_response(project: str, rendered: Rendered) -> pb.RenderResponse:
    """A prompt section of this project."""
    reply = pb.RenderResponse(
        text=rendered.text,
        token_count=rendered.token_count,
        budget_tokens=rendered.budget_tokens,
        over_budget=rendered.over_budget,
        tools=map(_tool, rendered.tools),
        missing_ids=rendered.missing_ids,
        intent=None if rendered.intent is None else intent(rendered.intent),
        receipt=None if rendered.receipt is None else receipt(rendered.receipt),
        degraded=degradations(rendered.degraded),
        render_elapsed=values.duration(rendered.render_elapsed_s),
        seq=rendered.seq,
        messages=map(_prompt_message, rendered.messages),
        instructions=rendered.instructions,
        prefix=None if rendered.prefix is None else _prefix(project, rendered.prefix),
        counter=rendered.counter,
        nothing_known=message_of(recall_pb2.NothingKnown, rendered.nothing_known) if rendered.nothing_known else None,
    )
    for one in rendered.memories:
        reply.memories.add(
            memory_id=one.memory_id,
            kind=memory_pb2.MemoryKind.ValueType(one.kind),
            tier=pb.Tier.ValueType(one.tier),
            token_count=one.token_count,
            reason=one.reason,
            score=one.score,
            trust=one.trust,
            origin=memory_pb2.Origin.ValueType(one.origin),
            marks=[pb.MemoryMark.ValueType(mark) for mark in one.marks],
        )
    return reply


def turn_response(project: str, rendered: Rendered) -> Spliced:
    """A turn's prompt of this project, counted."""
    decision = rendered.decision and decision_values(rendered.decision)
    rest = pb.RenderTurnResponse(rendering=render_response(project, rendered))
    sent, _ = written(encode((None, decision)), _TURN)
    return Spliced(sent, rest)


def _parse_recall(request: pb.RenderRequest, until_s: float | None) -> RecallQuery:
    recall = recall_pb2.RecallRequest()
    recall.CopyFrom(request.recall)
    if recall.project not in ("", request.project):
        raise InvalidRequest("recall.project", "differs from project; leave it out")
    if recall.include_superseded:
        raise InvalidRequest("recall.include_superseded", "is not for prompts, which hold what counts now; recall them")
    recall.project = request.project
    recall.ClearField("view")
    recall.session_id = recall.session_id or request.session.session_id
    check(recall, "recall.")
    return recall_query(recall, until_s, "recall.")


def _parse_locale(tag: str) -> Locale:
    """The language of headings that a BCP 47 tag asks for: there are Chinese and English ones."""
    return Locale.ZH if tag.partition("-")[0].lower() == "zh" else Locale.EN


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _parse_message(field: str, sent: pb.PromptMessage) -> PromptMessage:
    return value_of(
        PromptMessage, sent, f"{field}.", id=values.identifier(f"{field}.id", sent.id), role=PromptRole(sent.role)
    )


def _parse_session(sent: pb.SessionHistory) -> HistoryQuery:
    return value_of(HistoryQuery, sent.limits, session_id=values.identifier("session.session_id", sent.session_id))


def _parse_tail(project: str, request: pb.RenderRequest) -> TailPlacement | None:
    if request.placement == pb.PLACEMENT_TAIL:
        return TailPlacement(state=prefix_state(project, request.prefix_token), rebase=request.rebase)
    if request.prefix_token or request.rebase:
        raise InvalidRequest("prefix_token" if request.prefix_token else "rebase", "is for placement TAIL")
    return None


def _tool(tool: ToolDefinition) -> pb.ToolDefinition:
    return pb.ToolDefinition(
        name=tool.name,
        description=tool.description,
        input_schema_json=_json(tool.input_schema),
        openai_json=_json(tool.openai()),
        anthropic_json=_json(tool.anthropic()),
        mcp_json=_json(tool.mcp()),
    )


def _prompt_message(message: PromptMessage) -> pb.PromptMessage:
    return pb.PromptMessage(
        id=message.id,
        role=pb.PromptRole.ValueType(message.role),
        content=message.content,
        send_time=None if message.send_time is None else values.timestamp(message.send_time),
    )


def _prefix(project: str, prefix: StablePrefix) -> pb.StablePrefix:
    return message_of(
        pb.StablePrefix,
        prefix,
        sha256=sha256(prefix.text.encode()).hexdigest(),
        token=prefix_token(project, prefix.state),
    )
