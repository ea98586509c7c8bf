# Generated from the contract by `make client`; do not edit.
"""The types of `send`: which reply belongs to which request."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, overload

from hummock.v1 import (
    admin_service_pb2,
    context_service_pb2,
    explain_pb2,
    learning_service_pb2,
    memory_service_pb2,
    project_service_pb2,
    recall_pb2,
    session_service_pb2,
)


class Send(Protocol):
    """Sends a request and returns its reply; `timeout_s` of None means the client's deadline.

    Raises: HummockCallError.
    """

    @overload
    def __call__(
        self, request: admin_service_pb2.StatusRequest, *, timeout_s: float | None = None
    ) -> admin_service_pb2.StatusResponse: ...

    @overload
    def __call__(
        self, request: recall_pb2.RecallRequest, *, timeout_s: float | None = None
    ) -> recall_pb2.RecallResponse: ...

    @overload
    def __call__(
        self, request: context_service_pb2.RenderRequest, *, timeout_s: float | None = None
    ) -> context_service_pb2.RenderResponse: ...

    @overload
    def __call__(
        self, request: context_service_pb2.LearnRequest, *, timeout_s: float | None = None
    ) -> context_service_pb2.LearnResponse: ...

    @overload
    def __call__(
        self, request: context_service_pb2.SearchRequest, *, timeout_s: float | None = None
    ) -> context_service_pb2.SearchResponse: ...

    @overload
    def __call__(
        self, request: context_service_pb2.FeedbackRequest, *, timeout_s: float | None = None
    ) -> context_service_pb2.FeedbackResponse: ...

    @overload
    def __call__(
        self, request: explain_pb2.ExplainRequest, *, timeout_s: float | None = None
    ) -> explain_pb2.ExplainResponse: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.LearningServiceGetStateRequest, *, timeout_s: float | None = None
    ) -> learning_service_pb2.LearningServiceGetStateResponse: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.LearningServiceUpdateSettingsRequest, *, timeout_s: float | None = None
    ) -> learning_service_pb2.LearningServiceUpdateSettingsResponse: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.LearningServiceObserveTurnRequest, *, timeout_s: float | None = None
    ) -> learning_service_pb2.LearningServiceObserveTurnResponse: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.LearningServiceReplayRequest, *, timeout_s: float | None = None
    ) -> learning_service_pb2.LearningServiceReplayResponse: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.LearningServiceListEventsRequest, *, timeout_s: float | None = None
    ) -> learning_service_pb2.LearningServiceListEventsResponse: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.MemoryServiceGetRequest, *, timeout_s: float | None = None
    ) -> memory_service_pb2.MemoryServiceGetResponse: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.MemoryServiceBatchGetRequest, *, timeout_s: float | None = None
    ) -> memory_service_pb2.MemoryServiceBatchGetResponse: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.MemoryServiceListRequest, *, timeout_s: float | None = None
    ) -> memory_service_pb2.MemoryServiceListResponse: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.MemoryServiceUpdateRequest, *, timeout_s: float | None = None
    ) -> memory_service_pb2.MemoryServiceUpdateResponse: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.MemoryServiceDeleteRequest, *, timeout_s: float | None = None
    ) -> memory_service_pb2.MemoryServiceDeleteResponse: ...

    @overload
    def __call__(
        self, request: project_service_pb2.ProjectServiceGetRequest, *, timeout_s: float | None = None
    ) -> project_service_pb2.ProjectServiceGetResponse: ...

    @overload
    def __call__(
        self, request: project_service_pb2.ProjectServiceListRequest, *, timeout_s: float | None = None
    ) -> project_service_pb2.ProjectServiceListResponse: ...

    @overload
    def __call__(
        self, request: project_service_pb2.ProjectServiceUpdateRequest, *, timeout_s: float | None = None
    ) -> project_service_pb2.ProjectServiceUpdateResponse: ...

    @overload
    def __call__(
        self, request: project_service_pb2.ProjectServiceGetSettingsRequest, *, timeout_s: float | None = None
    ) -> project_service_pb2.ProjectServiceGetSettingsResponse: ...

    @overload
    def __call__(
        self, request: project_service_pb2.ProjectServiceUpdateSettingsRequest, *, timeout_s: float | None = None
    ) -> project_service_pb2.ProjectServiceUpdateSettingsResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceGetOrCreateActiveRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.SessionServiceGetOrCreateActiveResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceCreateRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.SessionServiceCreateResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceGetRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.SessionServiceGetResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceListRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.SessionServiceListResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceUpdateRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.SessionServiceUpdateResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceDeleteRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.SessionServiceDeleteResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceAppendMessageRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.SessionServiceAppendMessageResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceListMessagesRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.SessionServiceListMessagesResponse: ...


class AsyncSend(Protocol):
    """Sends a request; awaited, its reply; `timeout_s` of None means the client's deadline.

    Raises: HummockCallError.
    """

    @overload
    def __call__(
        self, request: admin_service_pb2.StatusRequest, *, timeout_s: float | None = None
    ) -> Awaitable[admin_service_pb2.StatusResponse]: ...

    @overload
    def __call__(
        self, request: recall_pb2.RecallRequest, *, timeout_s: float | None = None
    ) -> Awaitable[recall_pb2.RecallResponse]: ...

    @overload
    def __call__(
        self, request: context_service_pb2.RenderRequest, *, timeout_s: float | None = None
    ) -> Awaitable[context_service_pb2.RenderResponse]: ...

    @overload
    def __call__(
        self, request: context_service_pb2.LearnRequest, *, timeout_s: float | None = None
    ) -> Awaitable[context_service_pb2.LearnResponse]: ...

    @overload
    def __call__(
        self, request: context_service_pb2.SearchRequest, *, timeout_s: float | None = None
    ) -> Awaitable[context_service_pb2.SearchResponse]: ...

    @overload
    def __call__(
        self, request: context_service_pb2.FeedbackRequest, *, timeout_s: float | None = None
    ) -> Awaitable[context_service_pb2.FeedbackResponse]: ...

    @overload
    def __call__(
        self, request: explain_pb2.ExplainRequest, *, timeout_s: float | None = None
    ) -> Awaitable[explain_pb2.ExplainResponse]: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.LearningServiceGetStateRequest, *, timeout_s: float | None = None
    ) -> Awaitable[learning_service_pb2.LearningServiceGetStateResponse]: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.LearningServiceUpdateSettingsRequest, *, timeout_s: float | None = None
    ) -> Awaitable[learning_service_pb2.LearningServiceUpdateSettingsResponse]: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.LearningServiceObserveTurnRequest, *, timeout_s: float | None = None
    ) -> Awaitable[learning_service_pb2.LearningServiceObserveTurnResponse]: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.LearningServiceReplayRequest, *, timeout_s: float | None = None
    ) -> Awaitable[learning_service_pb2.LearningServiceReplayResponse]: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.LearningServiceListEventsRequest, *, timeout_s: float | None = None
    ) -> Awaitable[learning_service_pb2.LearningServiceListEventsResponse]: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.MemoryServiceGetRequest, *, timeout_s: float | None = None
    ) -> Awaitable[memory_service_pb2.MemoryServiceGetResponse]: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.MemoryServiceBatchGetRequest, *, timeout_s: float | None = None
    ) -> Awaitable[memory_service_pb2.MemoryServiceBatchGetResponse]: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.MemoryServiceListRequest, *, timeout_s: float | None = None
    ) -> Awaitable[memory_service_pb2.MemoryServiceListResponse]: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.MemoryServiceUpdateRequest, *, timeout_s: float | None = None
    ) -> Awaitable[memory_service_pb2.MemoryServiceUpdateResponse]: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.MemoryServiceDeleteRequest, *, timeout_s: float | None = None
    ) -> Awaitable[memory_service_pb2.MemoryServiceDeleteResponse]: ...

    @overload
    def __call__(
        self, request: project_service_pb2.ProjectServiceGetRequest, *, timeout_s: float | None = None
    ) -> Awaitable[project_service_pb2.ProjectServiceGetResponse]: ...

    @overload
    def __call__(
        self, request: project_service_pb2.ProjectServiceListRequest, *, timeout_s: float | None = None
    ) -> Awaitable[project_service_pb2.ProjectServiceListResponse]: ...

    @overload
    def __call__(
        self, request: project_service_pb2.ProjectServiceUpdateRequest, *, timeout_s: float | None = None
    ) -> Awaitable[project_service_pb2.ProjectServiceUpdateResponse]: ...

    @overload
    def __call__(
        self, request: project_service_pb2.ProjectServiceGetSettingsRequest, *, timeout_s: float | None = None
    ) -> Awaitable[project_service_pb2.ProjectServiceGetSettingsResponse]: ...

    @overload
    def __call__(
        self, request: project_service_pb2.ProjectServiceUpdateSettingsRequest, *, timeout_s: float | None = None
    ) -> Awaitable[project_service_pb2.ProjectServiceUpdateSettingsResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceGetOrCreateActiveRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.SessionServiceGetOrCreateActiveResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceCreateRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.SessionServiceCreateResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceGetRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.SessionServiceGetResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceListRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.SessionServiceListResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceUpdateRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.SessionServiceUpdateResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceDeleteRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.SessionServiceDeleteResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceAppendMessageRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.SessionServiceAppendMessageResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.SessionServiceListMessagesRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.SessionServiceListMessagesResponse]: ...
