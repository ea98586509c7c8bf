"""ContextService: recall, render, learn, search, explain, feedback; the messages of the last two."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

from hummock.core.deadline import then
from hummock.core.errors import InvalidRequest, ProjectNotFound
from hummock.core.explain import Explained, ExplainQuery, Remedy
from hummock.core.learning import Judgement, Verdict
from hummock.core.learning_requests import FeedbackCommand
from hummock.core.memory import LearnCommand
from hummock.core.recall import RecallQuery
from hummock.rpc import memory_messages, session_service, values
from hummock.rpc.call import CallContext, SecondHalf, inside, project_read
from hummock.rpc.conversion import message_of
from hummock.rpc.recall_messages import GROUPS, degradations, recall_query, search_query, search_response
from hummock.rpc.recall_reply import recall_reply
from hummock.rpc.render_messages import render_query, render_response, turn_query, turn_response
from hummock.rpc.status import Spliced
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import explain_pb2, memory_pb2, recall_pb2

if TYPE_CHECKING:  # a reader has nothing but its recall, and loads nothing else
    from hummock.recall.cache import Answer, CachedRecall
    from hummock.rpc.methods import UseCases

_FILTER = "filter."
_TUNING = "tuning."

Batch = pb.LearnRequest | pb.LearnTurnRequest


class RecallServicer:
    """Recall alone, which a reader answers as well."""

    def __init__(self, recall: CachedRecall) -> None:
        self._recall = recall

    def Recall(self, request: recall_pb2.RecallRequest, call: CallContext) -> SecondHalf[Spliced]:
        """Finds the memories that bear on a query: at once where that takes a moment, else on a worker."""
        query = recall_query(request, call.deadline.until_s)
        answer = self._recall.inline(query)
        return partial(self._on_worker, request, query) if answer is None else _reply(request, answer)

    def _on_worker(self, request: recall_pb2.RecallRequest, query: RecallQuery) -> Spliced:
        return _reply(request, self._recall.answer(query))


def _reply(request: recall_pb2.RecallRequest, answer: Answer) -> Spliced:
    # What there is has been written to.
    if answer.seq == 0 and not request.allow_missing:
        raise ProjectNotFound(request.project)
    return recall_reply(answer, with_raw=request.view == memory_pb2.MEMORY_VIEW_RAW)


class ContextServicer(RecallServicer):
    """Each method is a call of one use case."""

    def __init__(self, use_cases: UseCases) -> None:
        super().__init__(use_cases.recall)
        self._use_cases = use_cases
        self._require = use_cases.projects.require

    def Render(self, request: pb.RenderRequest, call: CallContext) -> pb.RenderResponse:
        """Writes a prompt section."""
        query = render_query(request, call.deadline.until_s)
        return render_response(query.project, self._use_cases.render(query))

    def RenderTurn(self, request: pb.RenderTurnRequest, call: CallContext) -> SecondHalf[Spliced]:
        """Writes a turn's prompt; what counts it waits for the disk."""
        query = turn_query(request, call.deadline.until_s)
        count = self._use_cases.render.prepare(query)
        return lambda: turn_response(query.project, count())

    def Learn(self, request: pb.LearnRequest, call: CallContext) -> Future[pb.LearnResponse]:
        """Stores memories; no worker waits while they are written."""
        return self._learn(memory_messages.learn_command(request, call.deadline, call.caller.writer))

    def LearnTurn(self, request: pb.LearnTurnRequest, call: CallContext) -> pb.LearnTurnResponse:
        """Stores a turn."""
        command = session_service.turn_command(request, call.deadline, call.caller.writer)
        with inside(request.project, self._require):
            return session_service.turn_response(self._use_cases.learn_turn(command))

    def LearnStream(self, batch: Batch, call: CallContext) -> pb.LearnTurnResponse | Future[pb.LearnResponse]:
        """Stores a batch as Learn and LearnTurn do; its memories get their vectors later, unless it says otherwise."""
        if isinstance(batch, pb.LearnTurnRequest):
            return self.LearnTurn(batch, call)
        return self._learn(memory_messages.learn_command(batch, call.deadline, call.caller.writer, is_batch=True))

    def _learn(self, command: LearnCommand) -> Future[pb.LearnResponse]:
        return then(self._use_cases.learn(command), memory_messages.learn_response)

    def Search(self, request: pb.SearchRequest, call: CallContext) -> pb.SearchResponse:
        """Searches code and knowledge together."""
        query = search_query(request, call.deadline.until_s)
        project_read(request, partial(self._require, allow_stale=request.allow_stale))
        return search_response(self._use_cases.search(query))

    def Explain(self, request: explain_pb2.ExplainRequest, call: CallContext) -> explain_pb2.ExplainResponse:
        """Explains why a recall returns a memory or not."""
        query = explain_query(request, call.deadline.until_s)
        if not request.recall.allow_missing:
            self._require(query.recall.project)
        return explain_response(request.recall, self._use_cases.explain(query))

    def Feedback(self, request: pb.FeedbackRequest, call: CallContext) -> pb.FeedbackResponse:
        """Records which memories were useful."""
        noted = self._use_cases.feedback(feedback_command(request))
        return pb.FeedbackResponse(seq=noted.seq, recorded_count=noted.recorded, unknown_ids=noted.unknown_ids)


def explain_query(request: explain_pb2.ExplainRequest, until_s: float | None = None) -> ExplainQuery:
    """Parse a recall, checked like a RecallRequest, and the memory to explain.

    Args:
        request: Checked against the rules.
        until_s: As in `recall_query`.

    Raises: InvalidRequest.
    """
    return ExplainQuery(
        recall=recall_query(request.recall, until_s, "recall."),
        memory_id=values.identifier("memory_id", request.memory_id),
    )


def feedback_command(request: pb.FeedbackRequest) -> FeedbackCommand:
    """Feedback. Raises: InvalidRequest."""
    if not request.verdicts and not request.note.strip():
        raise InvalidRequest("verdicts", "is empty, and so is note; say one of them")
    judged: set[str] = set()
    for place, verdict in enumerate(request.verdicts):
        if verdict.memory_id in judged:
            raise InvalidRequest(f"verdicts[{place}].memory_id", "has a verdict already")
        judged.add(values.identifier(f"verdicts[{place}].memory_id", verdict.memory_id))
    return FeedbackCommand(
        **values.write(request),
        query_text=request.query_text,
        verdicts=tuple(
            Verdict(memory_id=one.memory_id, judgement=Judgement(one.judgement)) for one in request.verdicts
        ),
        note=request.note,
        session_id=values.identifier("session_id", request.session_id),
    )


def explain_response(request: recall_pb2.RecallRequest, explained: Explained) -> explain_pb2.ExplainResponse:
    """Build the reply. Its changed recall is the request with the remedy applied; unset fields stay unset."""
    verdict, remedy = explained.verdict, explained.remedy
    if verdict is None:
        return explain_pb2.ExplainResponse(
            outcome=explain_pb2.EXPLAIN_OUTCOME_NOT_FOUND,
            sentence=explained.sentence,
            project_settings=explained.project_settings,
        )
    reply = explain_pb2.ExplainResponse(
        outcome=explain_pb2.EXPLAIN_OUTCOME_RECALLED if verdict.stage is None else explain_pb2.EXPLAIN_OUTCOME_LOST,
        group=GROUPS[verdict.group],
        rank=int(verdict.value) if verdict.stage is None else 0,
        stage=explain_pb2.LossStage.ValueType(verdict.stage or explain_pb2.LOSS_STAGE_UNSPECIFIED),
        failed_conditions=verdict.failed,
        other_id=verdict.others[0] if verdict.others else "",
        value=verdict.value,
        threshold=verdict.threshold,
        numbers=message_of(explain_pb2.ExplainNumbers, verdict.numbers) if verdict.numbers else None,
        sentence=explained.sentence,
        degraded=degradations(verdict.degraded),
        project_settings=explained.project_settings,
        graph_recall=verdict.graph_recall,
    )
    if remedy is not None:
        reply.changes.extend(message_of(explain_pb2.RecallChange, change) for change in remedy.changes)
        reply.changed_recall.CopyFrom(_changed(request, remedy))
        reply.changed_rank = remedy.rank
    return reply


def _changed(request: recall_pb2.RecallRequest, remedy: Remedy) -> recall_pb2.RecallRequest:
    recall = recall_pb2.RecallRequest()
    recall.CopyFrom(request)
    for change in remedy.changes:
        if change.field.startswith(_FILTER):
            _set_condition(recall.filter, change.field.removeprefix(_FILTER), remedy.recall)
        else:
            _set_field(recall, change.field, remedy.recall)
    return recall


def _set_condition(where: memory_pb2.MemoryFilter, name: str, changed: RecallQuery) -> None:
    value = getattr(changed.filter, name)
    where.ClearField(name)  # type: ignore[arg-type] # a field of MemoryFilter has the same name in core
    if isinstance(value, float):
        getattr(where, name).CopyFrom(values.timestamp(value))
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
        case "include_superseded":
            recall.include_superseded = changed.include_superseded
        case _:
            name = path.removeprefix(_TUNING)
            setattr(recall.tuning, name, getattr(changed, name))
