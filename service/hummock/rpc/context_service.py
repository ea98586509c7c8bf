"""ContextService: recall, render, learn, search, explain, feedback."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from hummock.core.errors import InvalidRequest
from hummock.core.explain import Explained, ExplainQuery, Numbers, Remedy
from hummock.core.later import Later
from hummock.core.learning import Judgement, Verdict
from hummock.core.learning_requests import FeedbackCommand
from hummock.core.recall import RecallQuery
from hummock.rpc import memory_messages, recall_messages, render_messages, session_service, values
from hummock.rpc.dispatch import Rest, recall_response
from hummock.rpc.recall_messages import degradations, recall_query
from hummock.rpc.use_cases import UseCases
from hummock.rpc.values import set_timestamp
from hummock.v1 import context_service_pb2, explain_pb2, memory_pb2, recall_pb2


def explain_query(request: explain_pb2.ExplainRequest) -> ExplainQuery:
    """A recall, checked like one that came alone, and a memory."""
    return ExplainQuery(
        recall=recall_query(request.recall, "recall."),
        memory_id=values.identifier("memory_id", request.memory_id),
    )


def feedback_command(request: context_service_pb2.FeedbackRequest) -> FeedbackCommand:
    """Feedback. Raises: InvalidRequest."""
    if not request.verdicts and not request.note.strip():
        raise InvalidRequest("verdicts", "is empty, and so is note; say one of them")
    judged: set[str] = set()
    for place, verdict in enumerate(request.verdicts):
        if verdict.memory_id in judged:
            raise InvalidRequest(f"verdicts[{place}].memory_id", "has a verdict already")
        judged.add(values.identifier(f"verdicts[{place}].memory_id", verdict.memory_id))
    return FeedbackCommand(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        query_text=request.query_text,
        verdicts=tuple(
            Verdict(memory_id=one.memory_id, judgement=Judgement(one.judgement)) for one in request.verdicts
        ),
        note=request.note,
        session_id=values.identifier("session_id", request.session_id),
        fingerprint=values.fingerprint(request),
    )


_FILTER = "filter."


def explain_response(request: recall_pb2.RecallRequest, explained: Explained) -> explain_pb2.ExplainResponse:
    """The answer; the changed recall is the request with the changes, and what it left to the preset stays so."""
    verdict, remedy = explained.verdict, explained.remedy
    if verdict is None:
        return explain_pb2.ExplainResponse(
            outcome=explain_pb2.EXPLAIN_OUTCOME_NOT_FOUND,
            sentence=explained.sentence,
            project_settings=explained.project_settings,
        )
    reply = explain_pb2.ExplainResponse(
        outcome=explain_pb2.EXPLAIN_OUTCOME_RECALLED if verdict.stage is None else explain_pb2.EXPLAIN_OUTCOME_LOST,
        group=verdict.group,
        rank=int(verdict.value) if verdict.stage is None else 0,
        stage=explain_pb2.LossStage.ValueType(verdict.stage or explain_pb2.LOSS_STAGE_UNSPECIFIED),
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
        reply.changes.extend(
            explain_pb2.RecallChange(field=change.field, value=change.value) for change in remedy.changes
        )
        reply.changed_recall.CopyFrom(_changed(request, remedy))
        reply.changed_rank = remedy.rank
    return reply


def _numbers(numbers: Numbers) -> explain_pb2.ExplainNumbers:
    named: dict[str, Any] = {field.name: getattr(numbers, field.name) for field in fields(Numbers)}
    return explain_pb2.ExplainNumbers(**named)


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


class ContextServicer:
    """Each method is a call of one use case. LearnStream answers one batch; the server runs the stream."""

    def __init__(self, use_cases: UseCases) -> None:
        self._use_cases = use_cases

    def Recall(self, request: recall_pb2.RecallRequest) -> recall_pb2.RecallResponse | Rest:
        """Finds the memories that bear on a query."""
        return recall_response(self._use_cases.recall, request)

    def Render(self, request: context_service_pb2.RenderRequest) -> context_service_pb2.RenderResponse | Rest:
        """Writes a prompt section."""
        query = render_messages.render_query(request)
        if query.commit is None:
            return render_messages.render_response(request.project, self._use_cases.render(query))
        count = self._use_cases.render_turn(query)
        return Rest(lambda: render_messages.render_response(request.project, count()))

    def Search(self, request: context_service_pb2.SearchRequest) -> context_service_pb2.SearchResponse:
        """Searches code and knowledge together."""
        return recall_messages.search_response(self._use_cases.search(recall_messages.search_query(request)))

    def Feedback(self, request: context_service_pb2.FeedbackRequest) -> context_service_pb2.FeedbackResponse:
        """Takes down what was of use."""
        noted = self._use_cases.feedback(feedback_command(request))
        return context_service_pb2.FeedbackResponse(
            seq=noted.seq, recorded_count=noted.recorded, unknown_ids=noted.unknown_ids
        )

    def Explain(self, request: explain_pb2.ExplainRequest) -> explain_pb2.ExplainResponse:
        """Says why a recall brings back a memory, or does not."""
        explained = self._use_cases.explain(explain_query(request))
        return explain_response(request.recall, explained)

    def Learn(
        self, request: context_service_pb2.LearnRequest
    ) -> context_service_pb2.LearnResponse | Later[context_service_pb2.LearnResponse]:
        """Stores memories, or a turn."""
        if request.HasField("turn"):
            return session_service.turn_response(self._use_cases.learn_turn(session_service.turn_command(request)))
        return self._use_cases.learn(memory_messages.learn_command(request)).then(memory_messages.learn_response)
