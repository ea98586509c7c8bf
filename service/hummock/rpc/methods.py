"""The table: every method of the contract, the lane of its calls, and the servicer's method that answers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message_factory import GetMessageClass

from hummock.core.activity import Activity
from hummock.core.errors import Unavailable
from hummock.rpc.admin_service import AdminServicer
from hummock.rpc.admission import InFlight, Load
from hummock.rpc.context_service import ContextServicer, RecallServicer
from hummock.rpc.dispatch import Call, Handler, Method, Then, handler
from hummock.rpc.gate import Gate
from hummock.rpc.lanes import Lane, Lanes
from hummock.rpc.learning_service import LearningServicer
from hummock.rpc.listening import SERVICES
from hummock.rpc.memory_service import MemoryServicer
from hummock.rpc.project_service import ProjectServicer
from hummock.rpc.session_service import SessionServicer
from hummock.rpc.streams import Feed
from hummock.rpc.use_cases import UseCases
from hummock.rpc.validation import compile_rules
from hummock.rpc.verbs import VERBS, name_of, need_of

INLINE, READ, WRITE = Lane.INLINE, Lane.READ, Lane.WRITE
READ_STREAM, WRITE_STREAM, MESSAGES, BATCHES = Lane.READ_STREAM, Lane.WRITE_STREAM, Lane.MESSAGES, Lane.BATCHES


def methods(
    use_cases: UseCases, load: Callable[[], Load], activity: Callable[[], Activity] | None = None
) -> Mapping[str, Mapping[str, Method]]:
    """All methods by their services' names and their own.

    Args:
        use_cases: What answers in the end.
        load: How busy the lanes are.
        activity: What the service has done; None where nobody counts it.
    """
    recall, context = RecallServicer(use_cases.recall, use_cases.from_memory), ContextServicer(use_cases)
    require = use_cases.projects.stored
    memory = MemoryServicer(use_cases.garden, use_cases.forget, use_cases.review, require)
    session = SessionServicer(use_cases.sessions, use_cases.messages, require)
    project, admin = ProjectServicer(use_cases), AdminServicer(use_cases.status, load, activity)
    learning = LearningServicer(use_cases.learning, use_cases.observe, use_cases.scan, require)
    return {
        "ContextService": {
            "Recall": Method(INLINE, recall.Recall, takes_deadline=True, then=Then(READ, recall.on_worker)),
            "Render": Method(READ, context.Render, takes_deadline=True),
            "RenderTurn": Method(READ, context.RenderTurn, takes_deadline=True, then=Then(WRITE, context.counted)),
            "Learn": Method(WRITE, context.Learn, takes_patience=True, takes_caller=True),
            "LearnTurn": Method(WRITE, context.LearnTurn, takes_patience=True, takes_caller=True),
            "LearnStream": Method(BATCHES, context.LearnStream, takes_caller=True),
            "Search": Method(READ, context.Search, takes_deadline=True),
            "Explain": Method(READ, context.Explain, takes_deadline=True),
            "Feedback": Method(WRITE, context.Feedback),
        },
        "MemoryService": {
            "GetMemory": Method(READ, memory.GetMemory),
            "BatchGetMemories": Method(READ, memory.BatchGetMemories, takes_patience=True),
            "ListMemories": Method(READ, memory.ListMemories),
            "UpdateMemory": Method(WRITE, memory.UpdateMemory, takes_caller=True),
            "DeleteMemories": Method(WRITE, memory.DeleteMemories, takes_patience=True),
            "Forget": Method(WRITE, memory.Forget, takes_patience=True),
            "ListReview": Method(READ, memory.ListReview),
            "ApproveReview": Method(WRITE, memory.ApproveReview),
            "RejectReview": Method(WRITE, memory.RejectReview),
            "WatchMemories": Method(READ_STREAM, memory.WatchMemories),
            "MapMemories": Method(READ_STREAM, memory.MapMemories),
        },
        "SessionService": {
            "GetOrCreateActiveSession": Method(WRITE, session.GetOrCreateActiveSession),
            "CreateSession": Method(WRITE, session.CreateSession),
            "GetSession": Method(READ, session.GetSession),
            "ListSessions": Method(READ, session.ListSessions),
            "UpdateSession": Method(WRITE, session.UpdateSession),
            "DeleteSession": Method(WRITE, session.DeleteSession),
            "AppendMessage": Method(WRITE, session.AppendMessage),
            "UpdateMessage": Method(WRITE, session.UpdateMessage, takes_patience=True, takes_caller=True),
            "DeleteMessage": Method(WRITE, session.DeleteMessage),
            "ListMessages": Method(READ, session.ListMessages),
            "WatchMessages": Method(READ_STREAM, session.WatchMessages),
        },
        "ProjectService": {
            "GetProject": Method(READ, project.GetProject),
            "ListProjects": Method(READ, project.ListProjects),
            "UpdateProject": Method(WRITE, project.UpdateProject),
            "DeleteProject": Method(WRITE, project.DeleteProject),
            "GetProjectSettings": Method(READ, project.GetProjectSettings),
            "UpdateProjectSettings": Method(WRITE, project.UpdateProjectSettings),
            "WatchProject": Method(READ_STREAM, project.WatchProject),
            "ExportProject": Method(READ_STREAM, project.ExportProject),
            "ImportProject": Method(MESSAGES, project.ImportProject),
        },
        "LearningService": {
            "GetLearningState": Method(READ, learning.GetLearningState),
            "WatchLearningState": Method(READ_STREAM, learning.WatchLearningState),
            "UpdateLearningSettings": Method(WRITE, learning.UpdateLearningSettings),
            "ObserveTurn": Method(WRITE, learning.ObserveTurn),
            "LearnKeywords": Method(WRITE_STREAM, learning.LearnKeywords),
            "ReplayLearning": Method(READ, learning.ReplayLearning, takes_patience=True),
            "ListLearningEvents": Method(READ, learning.ListLearningEvents),
        },
        "AdminService": {
            "GetStatus": Method(READ, admin.GetStatus),
        },
    }


def handlers(
    use_cases: UseCases,
    lanes: Lanes,
    in_flight: InFlight,
    feed: Feed,
    gate: Gate,
    activity: Callable[[], Activity] | None = None,
) -> list[grpc.GenericRpcHandler]:
    """A handler of all methods; every request's rules are compiled. Raises: ValueError where the table is wrong."""
    table = methods(use_cases, lanes.load, activity)
    check_table(table)
    compile_rules(GetMessageClass(method.input_type) for service in SERVICES for method in service.methods)
    answering = {
        name_of(descriptor): handler(descriptor, table[service.name][descriptor.name], lanes, in_flight, feed, gate)
        for service in SERVICES
        for descriptor in service.methods
    }
    refusing: dict[str, Handler] = {
        name_of(descriptor): grpc.stream_unary_rpc_method_handler(
            Call(need_of(descriptor), _refuse, in_flight, gate).answer
        )
        for service in SERVICES
        for descriptor in service.methods
    }
    return [_TokenFirst(gate, answering, refusing)]


class _TokenFirst(grpc.GenericRpcHandler):
    """Chooses how a call is answered by its token, before gRPC takes in a message of it.

    What refuses is of a method that takes a stream, for gRPC reads the one message of others before it calls them.
    """

    def __init__(self, gate: Gate, answering: Mapping[str, Handler], refusing: Mapping[str, Handler]) -> None:
        self._gate = gate
        self._answering = answering
        self._refusing = refusing

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        """The handler of a call; None of an unknown method."""
        is_known = self._gate.knows(handler_call_details.invocation_metadata or ())
        return (self._answering if is_known else self._refusing).get(handler_call_details.method)


async def _refuse(*_: object) -> None:
    raise Unavailable("the token was made in this moment; call again")


def check_table(table: Mapping[str, Mapping[str, Method]]) -> None:
    """Compares the table with the contract. Raises: ValueError, where they say different things."""
    contract = {one.name: set(_descriptors(one)) for one in SERVICES}
    for name, rows in (("methods", table), ("verbs", VERBS)):
        if {service: set(names) for service, names in rows.items()} != contract:
            raise ValueError(f"the table of {name} does not name each method of the contract once")
    for service in SERVICES:
        for name, descriptor in _descriptors(service).items():
            method = table[service.name][name]
            lane, last = method.lane, method.then.lane if method.then else method.lane
            said = (_is_read(descriptor), descriptor.client_streaming, descriptor.server_streaming)
            if said != (last.is_read, lane.takes_stream, lane.gives_stream):
                raise ValueError(f"{service.name}/{name} cannot be in lane {lane.name}")


def _descriptors(service: ServiceDescriptor) -> dict[str, MethodDescriptor]:
    return {method.name: method for method in service.methods}


def _is_read(method: MethodDescriptor) -> bool:
    return bool(method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS)
