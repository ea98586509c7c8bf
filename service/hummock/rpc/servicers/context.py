"""ContextService: recall, render, learn, search, explain."""

from __future__ import annotations

from hummock.core.later import Later
from hummock.rpc.parse import explain as parse_explain
from hummock.rpc.parse import feedback as parse_feedback
from hummock.rpc.parse import memory as parse_memory
from hummock.rpc.parse import recall as parse_recall
from hummock.rpc.parse import render as parse_render
from hummock.rpc.parse import session as parse_session
from hummock.rpc.present import explain as present_explain
from hummock.rpc.present import memory as present_memory
from hummock.rpc.present import recall as present_recall
from hummock.rpc.present import render as present_render
from hummock.rpc.present import session as present_session
from hummock.rpc.rest import Rest
from hummock.rpc.servicers.recall import recall_response
from hummock.rpc.use_cases import UseCases
from hummock.v1 import context_service_pb2, explain_pb2, recall_pb2


class ContextServicer:
    """Each method is a call of one use case. LearnStream answers one batch; the server runs the stream."""

    def __init__(self, use_cases: UseCases) -> None:
        self._use_cases = use_cases

    def Recall(self, request: recall_pb2.RecallRequest) -> recall_pb2.RecallResponse | Rest:
        """Finds the memories that bear on a query."""
        return recall_response(self._use_cases.recall, request)

    def Render(self, request: context_service_pb2.RenderRequest) -> context_service_pb2.RenderResponse | Rest:
        """Writes a prompt section."""
        query = parse_render.render_query(request)
        if query.commit is None:
            return present_render.render_response(request.project, self._use_cases.render(query))
        count = self._use_cases.render_turn(query)
        return Rest(lambda: present_render.render_response(request.project, count()))

    def Search(self, request: context_service_pb2.SearchRequest) -> context_service_pb2.SearchResponse:
        """Searches code and knowledge together."""
        return present_recall.search_response(self._use_cases.search(parse_recall.search_query(request)))

    def Feedback(self, request: context_service_pb2.FeedbackRequest) -> context_service_pb2.FeedbackResponse:
        """Takes down what was of use."""
        noted = self._use_cases.feedback(parse_feedback.feedback_command(request))
        return context_service_pb2.FeedbackResponse(
            seq=noted.seq, recorded_count=noted.recorded, unknown_ids=noted.unknown_ids
        )

    def Explain(self, request: explain_pb2.ExplainRequest) -> explain_pb2.ExplainResponse:
        """Says why a recall brings back a memory, or does not."""
        explained = self._use_cases.explain(parse_explain.explain_query(request))
        return present_explain.explain_response(request.recall, explained)

    def Learn(
        self, request: context_service_pb2.LearnRequest
    ) -> context_service_pb2.LearnResponse | Later[context_service_pb2.LearnResponse]:
        """Stores memories, or a turn."""
        if request.HasField("turn"):
            return present_session.turn_response(self._use_cases.learn_turn(parse_session.turn_command(request)))
        return self._use_cases.learn(parse_memory.learn_command(request)).then(present_memory.learn_response)
