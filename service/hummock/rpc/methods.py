"""The use cases, and handlers of all methods of the contract: each servicer's method under its policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import grpc
from google.protobuf.message_factory import GetMessageClass

from hummock.core.activity import Activity, ProcessLoad
from hummock.core.learning_requests import ScanScope
from hummock.core.project import EmbeddingStatus, ServiceStatus
from hummock.learning.background import Scan
from hummock.learning.observe import Feedback, Observe
from hummock.learning.state import Learning
from hummock.memories.forget import Forget
from hummock.memories.garden import Garden, Review
from hummock.memories.learn import Learn
from hummock.memories.learn_turn import LearnTurn
from hummock.memories.messages import Messages
from hummock.memories.sessions import Sessions
from hummock.projects.projects import Projects, Settings
from hummock.projects.transfer import Export, Import
from hummock.recall.cache import CachedRecall
from hummock.recall.explain import Explain
from hummock.render.pipeline import Render
from hummock.render.search import Search
from hummock.rpc.admin_service import AdminServicer
from hummock.rpc.admission import Load
from hummock.rpc.context_service import ContextServicer
from hummock.rpc.dispatch import InFlight, Methods, method
from hummock.rpc.interceptor import Interceptor
from hummock.rpc.lanes import Lanes
from hummock.rpc.learning_service import LearningServicer
from hummock.rpc.memory_service import MemoryServicer
from hummock.rpc.policy import POLICIES, SERVICES, MethodPolicy, is_read
from hummock.rpc.project_service import ProjectServicer
from hummock.rpc.session_service import SessionServicer
from hummock.rpc.streams import Feed
from hummock.rpc.validation import compile_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class UseCases:
    """One of each use case. All are synchronous and safe to call from several threads."""

    recall: CachedRecall
    render: Render
    learn: Learn
    learn_turn: LearnTurn
    search: Search
    explain: Explain
    feedback: Feedback
    garden: Garden
    forget: Forget
    review: Review
    projects: Projects
    settings: Settings
    export: Export
    import_parts: Import
    sessions: Sessions
    messages: Messages
    learning: Learning
    observe: Observe
    scan: Callable[[str, ScanScope, Sequence[str]], Scan]
    """Starts a keyword scan of a project, or joins a running one; the ids select entries."""
    status: Callable[[], ServiceStatus]
    embedding_status: Callable[[], EmbeddingStatus]
    """Progress of the embedding of memories without vectors."""
    follow: Callable[[Callable[[str, int], None]], None]
    """Registers a callback for every write, as in `ports.Store`, and for every step of a scan."""
    load: Callable[[], ProcessLoad]
    """Load of this process, without its calls."""
    trouble: Callable[[], str]
    """Why the service is unhealthy, for people; empty while it is not. Returns at once."""


def servicers(
    use_cases: UseCases, load: Callable[[], Load], activity: Callable[[], Activity] | None = None
) -> Mapping[str, object]:
    """Return the servicers by service name; their methods have the names of the contract.

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
        Methods(
            method(descriptor, getattr(answers[service.name], descriptor.name), lanes, in_flight, interceptor, feed)
            for service in SERVICES
            for descriptor in service.methods
        )
    ]


def check_table(table: Mapping[str, Mapping[str, MethodPolicy]]) -> None:
    """Compares the table with the contract. Raises: ValueError, where they say different things."""
    contract = {one.name: {method.name for method in one.methods} for one in SERVICES}
    if {service: set(names) for service, names in table.items()} != contract:
        raise ValueError("the table of methods does not name each method of the contract once")
    for service in SERVICES:
        for descriptor in service.methods:
            policy = table[service.name][descriptor.name]
            lane, last = policy.lane, policy.then or policy.lane
            said = (is_read(descriptor), descriptor.client_streaming, descriptor.server_streaming)
            if said != (last.is_read, lane.takes_stream, lane.gives_stream):
                raise ValueError(f"{service.name}/{descriptor.name} cannot be in lane {lane.name}")
