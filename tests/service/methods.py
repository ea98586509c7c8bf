"""Methods of the service as tests call them: with a request, or with the fields of one by name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Protocol, TypeVar

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from hummock_client.v1 import admin_service_pb2 as admin
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import explain_pb2 as explain
from hummock_client.v1 import learning_service_pb2 as learning
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import project_service_pb2 as project
from hummock_client.v1 import recall_pb2 as recall
from hummock_client.v1 import session_service_pb2 as session

Reply = TypeVar("Reply", covariant=True)
EachReply = TypeVar("EachReply")
Metadata = tuple[tuple[str, str], ...]


class Unary(Protocol[Reply]):
    """A call with one reply."""

    def __call__(
        self, request: Message | None = None, /, *, timeout: float | None = None, metadata: Metadata = (), **fields: Any
    ) -> Reply: ...


class Stream(Protocol[EachReply]):
    """A call with a stream of replies."""

    def __call__(
        self,
        request: Message | Iterable[Message] | None = None,
        /,
        *,
        timeout: float | None = None,
        metadata: Metadata = (),
        **fields: Any,
    ) -> grpc._CallIterator[EachReply]: ...


class Methods:
    """The methods of one of the contract's services, called with this metadata."""

    def __init__(self, stub: object, metadata: Metadata) -> None:
        name = type(stub).__name__.removesuffix("Stub")
        files = (context, memory, session, project, learning, admin)
        (service,) = (
            file.DESCRIPTOR.services_by_name[name] for file in files if name in file.DESCRIPTOR.services_by_name
        )
        for method in service.methods:
            request_class = GetMessageClass(method.input_type)
            setattr(self, method.name, partial(_call, getattr(stub, method.name), request_class, metadata))


def _call(
    method: Any,
    request_class: type[Message],
    of_all: Metadata,
    request: Message | Iterable[Message] | None = None,
    *,
    timeout: float | None = None,
    metadata: Metadata = (),
    **fields: Any,
) -> Any:
    return method(
        request_class(**fields) if request is None else request, timeout=timeout, metadata=(*of_all, *metadata)
    )


class Context(Methods):
    Recall: Unary[recall.RecallResponse]
    Render: Unary[context.RenderResponse]
    RenderTurn: Unary[context.RenderTurnResponse]
    Learn: Unary[context.LearnResponse]
    LearnTurn: Unary[context.LearnTurnResponse]
    LearnStream: Stream[context.LearnStreamResponse]
    Search: Unary[context.SearchResponse]
    Feedback: Unary[context.FeedbackResponse]
    Explain: Unary[explain.ExplainResponse]


class Memory(Methods):
    GetMemory: Unary[memory.GetMemoryResponse]
    BatchGetMemories: Unary[memory.BatchGetMemoriesResponse]
    ListMemories: Unary[memory.ListMemoriesResponse]
    UpdateMemory: Unary[memory.UpdateMemoryResponse]
    DeleteMemories: Unary[memory.DeleteMemoriesResponse]
    Forget: Unary[memory.ForgetResponse]
    ListReview: Unary[memory.ListReviewResponse]
    ApproveReview: Unary[memory.ApproveReviewResponse]
    RejectReview: Unary[memory.RejectReviewResponse]
    WatchMemories: Stream[memory.WatchMemoriesResponse]
    MapMemories: Stream[memory.MapMemoriesResponse]


class Session(Methods):
    GetOrCreateActiveSession: Unary[session.GetOrCreateActiveSessionResponse]
    CreateSession: Unary[session.CreateSessionResponse]
    GetSession: Unary[session.GetSessionResponse]
    ListSessions: Unary[session.ListSessionsResponse]
    UpdateSession: Unary[session.UpdateSessionResponse]
    DeleteSession: Unary[session.DeleteSessionResponse]
    AppendMessage: Unary[session.AppendMessageResponse]
    UpdateMessage: Unary[session.UpdateMessageResponse]
    DeleteMessage: Unary[session.DeleteMessageResponse]
    ListMessages: Unary[session.ListMessagesResponse]
    WatchMessages: Stream[session.WatchMessagesResponse]


class Project(Methods):
    GetProject: Unary[project.GetProjectResponse]
    ListProjects: Unary[project.ListProjectsResponse]
    WatchProject: Stream[project.WatchProjectResponse]
    UpdateProject: Unary[project.UpdateProjectResponse]
    DeleteProject: Unary[project.DeleteProjectResponse]
    GetProjectSettings: Unary[project.GetProjectSettingsResponse]
    UpdateProjectSettings: Unary[project.UpdateProjectSettingsResponse]
    ExportProject: Stream[project.ExportProjectResponse]
    ImportProject: Stream[project.ImportProjectResponse]


class Learning(Methods):
    GetLearningState: Unary[learning.GetLearningStateResponse]
    WatchLearningState: Stream[learning.WatchLearningStateResponse]
    UpdateLearningSettings: Unary[learning.UpdateLearningSettingsResponse]
    ObserveTurn: Unary[learning.ObserveTurnResponse]
    LearnKeywords: Stream[learning.LearnKeywordsResponse]
    ReplayLearning: Unary[learning.ReplayLearningResponse]
    ListLearningEvents: Unary[learning.ListLearningEventsResponse]


class Admin(Methods):
    GetStatus: Unary[admin.GetStatusResponse]
