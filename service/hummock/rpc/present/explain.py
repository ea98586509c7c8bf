"""Replies that explain a recall."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from hummock.core.explain import Explained, Numbers, Remedy
from hummock.core.recall import RecallQuery
from hummock.rpc.present.recall import degradations
from hummock.rpc.present.values import set_timestamp
from hummock.v1 import explain_pb2 as pb
from hummock.v1 import memory_pb2, recall_pb2

_FILTER = "filter."


def explain_response(request: recall_pb2.RecallRequest, explained: Explained) -> pb.ExplainResponse:
    """The answer; the changed recall is the request with the changes, and what it left to the preset stays so."""
    verdict, remedy = explained.verdict, explained.remedy
    if verdict is None:
        return pb.ExplainResponse(
            outcome=pb.EXPLAIN_OUTCOME_NOT_FOUND,
            sentence=explained.sentence,
            project_settings=explained.project_settings,
        )
    reply = pb.ExplainResponse(
        outcome=pb.EXPLAIN_OUTCOME_RECALLED if verdict.stage is None else pb.EXPLAIN_OUTCOME_LOST,
        group=verdict.group,
        rank=int(verdict.value) if verdict.stage is None else 0,
        stage=pb.LossStage.ValueType(verdict.stage or pb.LOSS_STAGE_UNSPECIFIED),
        failed_conditions=verdict.failed,
        other_id=verdict.others[0] if verdict.others else "",
        value=verdict.value,
        threshold=verdict.threshold,
        numbers=_numbers(verdict.numbers) if verdict.numbers else None,
        sentence=explained.sentence,
        degraded=degradations(verdict.degraded),
        project_settings=explained.project_settings,
    )
    if remedy is not None:
        reply.changes.extend(pb.RecallChange(field=change.field, value=change.value) for change in remedy.changes)
        reply.changed_recall.CopyFrom(_changed(request, remedy))
        reply.changed_rank = remedy.rank
    return reply


def _numbers(numbers: Numbers) -> pb.ExplainNumbers:
    named: dict[str, Any] = {field.name: getattr(numbers, field.name) for field in fields(Numbers)}
    return pb.ExplainNumbers(**named)


def _changed(request: recall_pb2.RecallRequest, remedy: Remedy) -> recall_pb2.RecallRequest:
    recall = recall_pb2.RecallRequest()
    recall.CopyFrom(request)
    for change in remedy.changes:
        if change.field.startswith(_FILTER):
            _set_condition(recall.filter, change.field.removeprefix(_FILTER), remedy.recall)
        else:
            _set_field(recall, change.field, remedy.recall)
    return recall


def _set_condition(where: memory_pb2.Filter, name: str, changed: RecallQuery) -> None:
    value = getattr(changed.filter, name)
    where.ClearField(name)  # type: ignore[arg-type] # a field of Filter has the same name in core
    if isinstance(value, float):
        set_timestamp(getattr(where, name), value)
    elif value:
        getattr(where, name).extend(sorted(value) if isinstance(value, frozenset) else value)


def _set_field(recall: recall_pb2.RecallRequest, path: str, changed: RecallQuery) -> None:
    match path:
        case "query_text":
            recall.query_text = changed.text
        case "intent.keywords":
            recall.intent.keywords.extend(changed.intent.keywords if changed.intent else ())
        case "paths":
            recall.ClearField("paths")
        case "decay.mode":
            recall.decay.mode = recall_pb2.DecayMode.ValueType(changed.decay_mode or recall_pb2.DECAY_MODE_UNSPECIFIED)
        case _:
            setattr(recall, path, getattr(changed, path))
