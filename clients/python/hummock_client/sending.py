"""The types of `send`: which reply belongs to which request."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, overload

from hummock.v1 import admin_service_pb2 as admin_pb
from hummock.v1 import context_service_pb2 as context_pb
from hummock.v1 import explain_pb2, recall_pb2
from hummock.v1 import learning_service_pb2 as learning_pb
from hummock.v1 import memory_service_pb2 as memories_pb
from hummock.v1 import project_service_pb2 as projects_pb
from hummock.v1 import session_service_pb2 as session_pb

Seconds = float | None


class Send(Protocol):
    """Sends a request and returns its reply; `timeout_s` of None means the client's deadline.

    Raises: HummockCallError.
    """

    @overload
    def __call__(
        self, request: recall_pb2.RecallRequest, *, timeout_s: Seconds = None
    ) -> recall_pb2.RecallResponse: ...
    @overload
    def __call__(
        self, request: context_pb.RenderRequest, *, timeout_s: Seconds = None
    ) -> context_pb.RenderResponse: ...
    @overload
    def __call__(self, request: context_pb.LearnRequest, *, timeout_s: Seconds = None) -> context_pb.LearnResponse: ...
    @overload
    def __call__(
        self, request: context_pb.SearchRequest, *, timeout_s: Seconds = None
    ) -> context_pb.SearchResponse: ...
    @overload
    def __call__(
        self, request: explain_pb2.ExplainRequest, *, timeout_s: Seconds = None
    ) -> explain_pb2.ExplainResponse: ...
    @overload
    def __call__(
        self, request: context_pb.FeedbackRequest, *, timeout_s: Seconds = None
    ) -> context_pb.FeedbackResponse: ...
    @overload
    def __call__(
        self, request: memories_pb.MemoryServiceGetRequest, *, timeout_s: Seconds = None
    ) -> memories_pb.MemoryServiceGetResponse: ...
    @overload
    def __call__(
        self, request: memories_pb.MemoryServiceBatchGetRequest, *, timeout_s: Seconds = None
    ) -> memories_pb.MemoryServiceBatchGetResponse: ...
    @overload
    def __call__(
        self, request: memories_pb.MemoryServiceListRequest, *, timeout_s: Seconds = None
    ) -> memories_pb.MemoryServiceListResponse: ...
    @overload
    def __call__(
        self, request: memories_pb.MemoryServiceUpdateRequest, *, timeout_s: Seconds = None
    ) -> memories_pb.MemoryServiceUpdateResponse: ...
    @overload
    def __call__(
        self, request: memories_pb.MemoryServiceDeleteRequest, *, timeout_s: Seconds = None
    ) -> memories_pb.MemoryServiceDeleteResponse: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceGetOrCreateActiveRequest, *, timeout_s: Seconds = None
    ) -> session_pb.SessionServiceGetOrCreateActiveResponse: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceCreateRequest, *, timeout_s: Seconds = None
    ) -> session_pb.SessionServiceCreateResponse: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceGetRequest, *, timeout_s: Seconds = None
    ) -> session_pb.SessionServiceGetResponse: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceListRequest, *, timeout_s: Seconds = None
    ) -> session_pb.SessionServiceListResponse: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceUpdateRequest, *, timeout_s: Seconds = None
    ) -> session_pb.SessionServiceUpdateResponse: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceDeleteRequest, *, timeout_s: Seconds = None
    ) -> session_pb.SessionServiceDeleteResponse: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceAppendMessageRequest, *, timeout_s: Seconds = None
    ) -> session_pb.SessionServiceAppendMessageResponse: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceListMessagesRequest, *, timeout_s: Seconds = None
    ) -> session_pb.SessionServiceListMessagesResponse: ...

    @overload
    def __call__(
        self, request: learning_pb.LearningServiceGetStateRequest, *, timeout_s: Seconds = None
    ) -> learning_pb.LearningServiceGetStateResponse: ...

    @overload
    def __call__(
        self, request: learning_pb.LearningServiceUpdateSettingsRequest, *, timeout_s: Seconds = None
    ) -> learning_pb.LearningServiceUpdateSettingsResponse: ...

    @overload
    def __call__(
        self, request: learning_pb.LearningServiceObserveTurnRequest, *, timeout_s: Seconds = None
    ) -> learning_pb.LearningServiceObserveTurnResponse: ...
    @overload
    def __call__(
        self, request: learning_pb.LearningServiceReplayRequest, *, timeout_s: Seconds = None
    ) -> learning_pb.LearningServiceReplayResponse: ...

    @overload
    def __call__(
        self, request: learning_pb.LearningServiceListEventsRequest, *, timeout_s: Seconds = None
    ) -> learning_pb.LearningServiceListEventsResponse: ...
    @overload
    def __call__(
        self, request: projects_pb.ProjectServiceGetRequest, *, timeout_s: Seconds = None
    ) -> projects_pb.ProjectServiceGetResponse: ...
    @overload
    def __call__(
        self, request: projects_pb.ProjectServiceListRequest, *, timeout_s: Seconds = None
    ) -> projects_pb.ProjectServiceListResponse: ...
    @overload
    def __call__(
        self, request: projects_pb.ProjectServiceUpdateRequest, *, timeout_s: Seconds = None
    ) -> projects_pb.ProjectServiceUpdateResponse: ...
    @overload
    def __call__(
        self, request: projects_pb.ProjectServiceGetSettingsRequest, *, timeout_s: Seconds = None
    ) -> projects_pb.ProjectServiceGetSettingsResponse: ...
    @overload
    def __call__(
        self, request: projects_pb.ProjectServiceUpdateSettingsRequest, *, timeout_s: Seconds = None
    ) -> projects_pb.ProjectServiceUpdateSettingsResponse: ...
    @overload
    def __call__(self, request: admin_pb.StatusRequest, *, timeout_s: Seconds = None) -> admin_pb.StatusResponse: ...


class AsyncSend(Protocol):
    """Sends a request; awaited, its reply; `timeout_s` of None means the client's deadline.

    Raises: HummockCallError.
    """

    @overload
    def __call__(
        self, request: recall_pb2.RecallRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[recall_pb2.RecallResponse]: ...
    @overload
    def __call__(
        self, request: context_pb.RenderRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[context_pb.RenderResponse]: ...
    @overload
    def __call__(
        self, request: context_pb.LearnRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[context_pb.LearnResponse]: ...
    @overload
    def __call__(
        self, request: context_pb.SearchRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[context_pb.SearchResponse]: ...
    @overload
    def __call__(
        self, request: explain_pb2.ExplainRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[explain_pb2.ExplainResponse]: ...
    @overload
    def __call__(
        self, request: context_pb.FeedbackRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[context_pb.FeedbackResponse]: ...
    @overload
    def __call__(
        self, request: memories_pb.MemoryServiceGetRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[memories_pb.MemoryServiceGetResponse]: ...
    @overload
    def __call__(
        self, request: memories_pb.MemoryServiceBatchGetRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[memories_pb.MemoryServiceBatchGetResponse]: ...
    @overload
    def __call__(
        self, request: memories_pb.MemoryServiceListRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[memories_pb.MemoryServiceListResponse]: ...
    @overload
    def __call__(
        self, request: memories_pb.MemoryServiceUpdateRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[memories_pb.MemoryServiceUpdateResponse]: ...
    @overload
    def __call__(
        self, request: memories_pb.MemoryServiceDeleteRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[memories_pb.MemoryServiceDeleteResponse]: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceGetOrCreateActiveRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[session_pb.SessionServiceGetOrCreateActiveResponse]: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceCreateRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[session_pb.SessionServiceCreateResponse]: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceGetRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[session_pb.SessionServiceGetResponse]: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceListRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[session_pb.SessionServiceListResponse]: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceUpdateRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[session_pb.SessionServiceUpdateResponse]: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceDeleteRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[session_pb.SessionServiceDeleteResponse]: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceAppendMessageRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[session_pb.SessionServiceAppendMessageResponse]: ...
    @overload
    def __call__(
        self, request: session_pb.SessionServiceListMessagesRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[session_pb.SessionServiceListMessagesResponse]: ...

    @overload
    def __call__(
        self, request: learning_pb.LearningServiceGetStateRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[learning_pb.LearningServiceGetStateResponse]: ...

    @overload
    def __call__(
        self, request: learning_pb.LearningServiceUpdateSettingsRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[learning_pb.LearningServiceUpdateSettingsResponse]: ...

    @overload
    def __call__(
        self, request: learning_pb.LearningServiceObserveTurnRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[learning_pb.LearningServiceObserveTurnResponse]: ...
    @overload
    def __call__(
        self, request: learning_pb.LearningServiceReplayRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[learning_pb.LearningServiceReplayResponse]: ...

    @overload
    def __call__(
        self, request: learning_pb.LearningServiceListEventsRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[learning_pb.LearningServiceListEventsResponse]: ...
    @overload
    def __call__(
        self, request: projects_pb.ProjectServiceGetRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[projects_pb.ProjectServiceGetResponse]: ...
    @overload
    def __call__(
        self, request: projects_pb.ProjectServiceListRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[projects_pb.ProjectServiceListResponse]: ...
    @overload
    def __call__(
        self, request: projects_pb.ProjectServiceUpdateRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[projects_pb.ProjectServiceUpdateResponse]: ...
    @overload
    def __call__(
        self, request: projects_pb.ProjectServiceGetSettingsRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[projects_pb.ProjectServiceGetSettingsResponse]: ...
    @overload
    def __call__(
        self, request: projects_pb.ProjectServiceUpdateSettingsRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[projects_pb.ProjectServiceUpdateSettingsResponse]: ...
    @overload
    def __call__(
        self, request: admin_pb.StatusRequest, *, timeout_s: Seconds = None
    ) -> Awaitable[admin_pb.StatusResponse]: ...
