"""Handlers of all methods of the contract: each servicer's method under the policy of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message_factory import GetMessageClass

from hummock.core.activity import Activity
from hummock.rpc.admin_service import AdminServicer
from hummock.rpc.admission import Load
from hummock.rpc.context_service import ContextServicer
from hummock.rpc.dispatch import Handler, InFlight, Method, method
from hummock.rpc.interceptor import Interceptor
from hummock.rpc.lanes import Lanes
from hummock.rpc.learning_service import LearningServicer
from hummock.rpc.listening import SERVICES
from hummock.rpc.memory_service import MemoryServicer
from hummock.rpc.policy import POLICIES, MethodPolicy
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
    return [
        _Methods(
            method(descriptor, getattr(answers[service.name], descriptor.name), lanes, in_flight, feed, interceptor)
            for service in SERVICES
            for descriptor in service.methods
        )
    ]


class _Methods(grpc.GenericRpcHandler):
    """Chooses how a call is answered, by its method and its token."""

    def __init__(self, methods: Iterable[Method]) -> None:
        self._methods = {each.policy.method: each for each in methods}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        """The handler of a call; None of an unknown method."""
        called = self._methods.get(handler_call_details.method)
        return None if called is None else called.handler(handler_call_details.invocation_metadata or ())


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
