"""Requests for a prompt section."""

from __future__ import annotations

from hummock.core.errors import InvalidRequest
from hummock.core.prompt import PromptMessage, PromptRole, PromptTarget, PromptTemplate
from hummock.core.recall import RecallQuery
from hummock.core.render import (
    READ_TOOLS,
    Locale,
    PartialQuotas,
    RenderCommit,
    RenderForm,
    RenderQuery,
    TailPlacement,
)
from hummock.core.session import HistoryQuery
from hummock.rpc.parse import values
from hummock.rpc.parse.recall import recall_query
from hummock.rpc.parse.request import check
from hummock.rpc.prefix_token import prefix_state
from hummock.v1 import context_service_pb2 as pb
from hummock.v1 import recall_pb2


def render_query(request: pb.RenderRequest) -> RenderQuery:
    """A rendering. The recall inside takes the outer project, is checked like one that came alone, and is full."""
    project = values.project_name("project", request.project)
    return RenderQuery(
        project=project,
        recall=_inner_recall(request) if request.HasField("recall") else None,
        memory_ids=values.identifiers("memories.ids", request.memories.ids),
        form=RenderForm(request.form or RenderForm.CONTEXT),
        budget_tokens=request.budget_tokens if request.HasField("budget_tokens") else None,
        locale=Locale(request.locale) if request.locale else None,
        prompt=request.prompt if request.HasField("prompt") else None,
        template=PromptTemplate(request.template) if request.template else None,
        target=PromptTarget(request.target) if request.target else None,
        history=tuple(_message(f"history[{index}]", sent) for index, sent in enumerate(request.history)),
        current=_message("current", request.current) if request.HasField("current") else None,
        read_ids=values.identifiers("read_ids", request.read_ids),
        quotas=_quotas(request.quotas),
        tail=_tail(project, request),
        as_of=values.time("as_of", request, "as_of"),
        utc_offset_minutes=request.utc_offset_minutes,
        read_tool=request.read_tool or READ_TOOLS[0],
        session=_session(request.session) if request.HasField("session") else None,
        commit=_commit(request) if request.HasField("commit") else None,
    )


def _inner_recall(request: pb.RenderRequest) -> RecallQuery:
    recall = recall_pb2.RecallRequest()
    recall.CopyFrom(request.recall)
    if recall.project not in ("", request.project):
        raise InvalidRequest("recall.project", "differs from project; leave it out")
    recall.project = request.project
    recall.ClearField("view")
    recall.session_id = recall.session_id or request.session.session_id
    check(recall, "recall.")
    return recall_query(recall, "recall.")


def _commit(request: pb.RenderRequest) -> RenderCommit:
    bare = pb.RenderRequest()
    bare.CopyFrom(request)
    bare.commit.ClearField("request_id")
    return RenderCommit(
        scope=values.identifier("commit.scope", request.commit.scope),
        turn=request.commit.turn,
        request_id=values.request_id(request.commit.request_id),
        fingerprint=values.hashed(bare),
    )


def _message(field: str, sent: pb.PromptMessage) -> PromptMessage:
    return PromptMessage(
        id=values.identifier(f"{field}.id", sent.id),
        role=PromptRole(sent.role),
        content=sent.content,
        send_time=values.time(f"{field}.send_time", sent, "send_time"),
    )


def _session(sent: pb.SessionHistory) -> HistoryQuery:
    return HistoryQuery(
        session_id=values.identifier("session.session_id", sent.session_id),
        max_messages=sent.max_messages if sent.HasField("max_messages") else None,
        max_characters=sent.max_characters if sent.HasField("max_characters") else None,
    )


def _quotas(sent: pb.SectionQuotas) -> PartialQuotas:
    return PartialQuotas(
        domains=sent.domains if sent.HasField("domains") else None,
        learning_records=sent.learning_records if sent.HasField("learning_records") else None,
        code_fragments=sent.code_fragments if sent.HasField("code_fragments") else None,
    )


def _tail(project: str, request: pb.RenderRequest) -> TailPlacement | None:
    if request.placement == pb.PLACEMENT_TAIL:
        return TailPlacement(state=prefix_state(project, request.prefix_token), rebase=request.rebase)
    if request.prefix_token or request.rebase:
        raise InvalidRequest("prefix_token" if request.prefix_token else "rebase", "is for placement TAIL")
    return None
