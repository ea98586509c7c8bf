"""Handlers of all methods of the contract: each servicer's method under the policy of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message_factory import GetMessageClass

from hummock.core.activity import Activity
from hummock.core.errors import Unavailable
from hummock.rpc.admin_service import AdminServicer
from hummock.rpc.admission import InFlight, Load
from hummock.rpc.context_service import ContextServicer
from hummock.rpc.dispatch import Call, Handler, handler
from hummock.rpc.interceptor import Interceptor
from hummock.rpc.lanes import Lanes
from hummock.rpc.learning_service import LearningServicer
from hummock.rpc.listening import SERVICES
from hummock.rpc.memory_service import MemoryServicer
from hummock.rpc.policy import POLICIES, MethodPolicy, policy_of
from hummock.rpc.project_service import ProjectServicer
from hummock.rpc.session_service import SessionServicer
from hummock.rpc.streams import Feed
from hummock.rpc.use_cases import UseCases
from hummock.rpc.validation import compile_rules


def servicers(
    use_cases: UseCases, load: Callable[[], Load], activity: Callable[[], Activity] | None = None
) -> Mapping[str, object]:
    """The servicers by service name; their methods have the names of the contract.

    Args:
        use_cases: The functions that answer.
        load: Load of the lanes.
        activity: Counters of the service; None if no calls are counted.
    """
    require = use_cases.projects.stored
    return {
        "ContextService": ContextServicer(use_cases),
        "MemoryService": MemoryServicer(use_cases.garden, use_cases.forget, use_cases.review, require),
        "SessionService": SessionServicer(use_cases.sessions, use_cases.messages, require),
        "ProjectService": ProjectServicer(use_cases),
        "LearningService": LearningServicer(use_cases.learning, use_cases.observe, use_cases.scan, require),
        "AdminService": AdminServicer(use_cases.status, load, activity),
    }


def handlers(
    use_cases: UseCases,
    lanes: Lanes,
    in_flight: InFlight,
    feed: Feed,
    interceptor: Interceptor,
    activity: Callable[[], Activity] | None = None,
) -> list[grpc.GenericRpcHandler]:
    """A handler of all methods; every request's rules are compiled. Raises: ValueError where the table is wrong."""
    check_table(POLICIES)
    compile_rules(GetMessageClass(method.input_type) for service in SERVICES for method in service.methods)
    answers = servicers(use_cases, lanes.load, activity)
    answering: dict[str, Handler] = {}
    refusing: dict[str, Handler] = {}
    for service in SERVICES:
        for descriptor in service.methods:
            policy, answer = policy_of(descriptor), getattr(answers[service.name], descriptor.name)
            answering[policy.method] = handler(descriptor, answer, lanes, in_flight, feed, interceptor)
            refusing[policy.method] = grpc.stream_unary_rpc_method_handler(
                Call(policy, _refuse, in_flight, interceptor).answer
            )
    return [_TokenFirst(interceptor, answering, refusing)]


class _TokenFirst(grpc.GenericRpcHandler):
    """Chooses how a call is answered by its token, before gRPC takes in a message of it.

    What refuses is of a method that takes a stream, for gRPC reads the one message of others before it calls them.
    """

    def __init__(
        self, interceptor: Interceptor, answering: Mapping[str, Handler], refusing: Mapping[str, Handler]
    ) -> None:
        self._interceptor = interceptor
        self._answering = answering
        self._refusing = refusing

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        """The handler of a call; None of an unknown method."""
        is_known = self._interceptor.knows(handler_call_details.invocation_metadata or ())
        return (self._answering if is_known else self._refusing).get(handler_call_details.method)


async def _refuse(*_: object) -> None:
    raise Unavailable("the token was made in this moment; call again")


def check_table(table: Mapping[str, Mapping[str, MethodPolicy]]) -> None:
    """Compares the table with the contract. Raises: ValueError, where they say different things."""
    contract = {one.name: {method.name for method in one.methods} for one in SERVICES}
    if {service: set(names) for service, names in table.items()} != contract:
        raise ValueError("the table of methods does not name each method of the contract once")
    for service in SERVICES:
        for descriptor in service.methods:
            policy = table[service.name][descriptor.name]
            lane, last = policy.lane, policy.then or policy.lane
            said = (_is_read(descriptor), descriptor.client_streaming, descriptor.server_streaming)
            if said != (last.is_read, lane.takes_stream, lane.gives_stream):
                raise ValueError(f"{service.name}/{descriptor.name} cannot be in lane {lane.name}")


def _is_read(method: MethodDescriptor) -> bool:
    return bool(method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS)
