# Generated from the contract by `make client`; do not edit.
"""The types of `send`: which reply belongs to which request."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, overload

from hummock_client.v1 import (
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
        self, request: admin_service_pb2.GetStatusRequest, *, timeout_s: float | None = None
    ) -> admin_service_pb2.GetStatusResponse: ...

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
        self, request: context_service_pb2.RenderTurnRequest, *, timeout_s: float | None = None
    ) -> context_service_pb2.RenderTurnResponse: ...

    @overload
    def __call__(
        self, request: context_service_pb2.LearnRequest, *, timeout_s: float | None = None
    ) -> context_service_pb2.LearnResponse: ...

    @overload
    def __call__(
        self, request: context_service_pb2.LearnTurnRequest, *, timeout_s: float | None = None
    ) -> context_service_pb2.LearnTurnResponse: ...

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
        self, request: learning_service_pb2.GetLearningStateRequest, *, timeout_s: float | None = None
    ) -> learning_service_pb2.GetLearningStateResponse: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.UpdateLearningSettingsRequest, *, timeout_s: float | None = None
    ) -> learning_service_pb2.UpdateLearningSettingsResponse: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.ObserveTurnRequest, *, timeout_s: float | None = None
    ) -> learning_service_pb2.ObserveTurnResponse: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.ReplayLearningRequest, *, timeout_s: float | None = None
    ) -> learning_service_pb2.ReplayLearningResponse: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.ListLearningEventsRequest, *, timeout_s: float | None = None
    ) -> learning_service_pb2.ListLearningEventsResponse: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.GetMemoryRequest, *, timeout_s: float | None = None
    ) -> memory_service_pb2.GetMemoryResponse: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.BatchGetMemoriesRequest, *, timeout_s: float | None = None
    ) -> memory_service_pb2.BatchGetMemoriesResponse: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.ListMemoriesRequest, *, timeout_s: float | None = None
    ) -> memory_service_pb2.ListMemoriesResponse: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.UpdateMemoryRequest, *, timeout_s: float | None = None
    ) -> memory_service_pb2.UpdateMemoryResponse: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.DeleteMemoriesRequest, *, timeout_s: float | None = None
    ) -> memory_service_pb2.DeleteMemoriesResponse: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.ForgetRequest, *, timeout_s: float | None = None
    ) -> memory_service_pb2.ForgetResponse: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.ListReviewRequest, *, timeout_s: float | None = None
    ) -> memory_service_pb2.ListReviewResponse: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.ApproveReviewRequest, *, timeout_s: float | None = None
    ) -> memory_service_pb2.ApproveReviewResponse: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.RejectReviewRequest, *, timeout_s: float | None = None
    ) -> memory_service_pb2.RejectReviewResponse: ...

    @overload
    def __call__(
        self, request: project_service_pb2.GetProjectRequest, *, timeout_s: float | None = None
    ) -> project_service_pb2.GetProjectResponse: ...

    @overload
    def __call__(
        self, request: project_service_pb2.ListProjectsRequest, *, timeout_s: float | None = None
    ) -> project_service_pb2.ListProjectsResponse: ...

    @overload
    def __call__(
        self, request: project_service_pb2.UpdateProjectRequest, *, timeout_s: float | None = None
    ) -> project_service_pb2.UpdateProjectResponse: ...

    @overload
    def __call__(
        self, request: project_service_pb2.DeleteProjectRequest, *, timeout_s: float | None = None
    ) -> project_service_pb2.DeleteProjectResponse: ...

    @overload
    def __call__(
        self, request: project_service_pb2.GetProjectSettingsRequest, *, timeout_s: float | None = None
    ) -> project_service_pb2.GetProjectSettingsResponse: ...

    @overload
    def __call__(
        self, request: project_service_pb2.UpdateProjectSettingsRequest, *, timeout_s: float | None = None
    ) -> project_service_pb2.UpdateProjectSettingsResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.GetOrCreateActiveSessionRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.GetOrCreateActiveSessionResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.CreateSessionRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.CreateSessionResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.GetSessionRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.GetSessionResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.ListSessionsRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.ListSessionsResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.UpdateSessionRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.UpdateSessionResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.DeleteSessionRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.DeleteSessionResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.AppendMessageRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.AppendMessageResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.UpdateMessageRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.UpdateMessageResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.DeleteMessageRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.DeleteMessageResponse: ...

    @overload
    def __call__(
        self, request: session_service_pb2.ListMessagesRequest, *, timeout_s: float | None = None
    ) -> session_service_pb2.ListMessagesResponse: ...


class AsyncSend(Protocol):
    """Sends a request; awaited, its reply; `timeout_s` of None means the client's deadline.

    Raises: HummockCallError.
    """

    @overload
    def __call__(
        self, request: admin_service_pb2.GetStatusRequest, *, timeout_s: float | None = None
    ) -> Awaitable[admin_service_pb2.GetStatusResponse]: ...

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
        self, request: context_service_pb2.RenderTurnRequest, *, timeout_s: float | None = None
    ) -> Awaitable[context_service_pb2.RenderTurnResponse]: ...

    @overload
    def __call__(
        self, request: context_service_pb2.LearnRequest, *, timeout_s: float | None = None
    ) -> Awaitable[context_service_pb2.LearnResponse]: ...

    @overload
    def __call__(
        self, request: context_service_pb2.LearnTurnRequest, *, timeout_s: float | None = None
    ) -> Awaitable[context_service_pb2.LearnTurnResponse]: ...

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
        self, request: learning_service_pb2.GetLearningStateRequest, *, timeout_s: float | None = None
    ) -> Awaitable[learning_service_pb2.GetLearningStateResponse]: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.UpdateLearningSettingsRequest, *, timeout_s: float | None = None
    ) -> Awaitable[learning_service_pb2.UpdateLearningSettingsResponse]: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.ObserveTurnRequest, *, timeout_s: float | None = None
    ) -> Awaitable[learning_service_pb2.ObserveTurnResponse]: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.ReplayLearningRequest, *, timeout_s: float | None = None
    ) -> Awaitable[learning_service_pb2.ReplayLearningResponse]: ...

    @overload
    def __call__(
        self, request: learning_service_pb2.ListLearningEventsRequest, *, timeout_s: float | None = None
    ) -> Awaitable[learning_service_pb2.ListLearningEventsResponse]: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.GetMemoryRequest, *, timeout_s: float | None = None
    ) -> Awaitable[memory_service_pb2.GetMemoryResponse]: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.BatchGetMemoriesRequest, *, timeout_s: float | None = None
    ) -> Awaitable[memory_service_pb2.BatchGetMemoriesResponse]: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.ListMemoriesRequest, *, timeout_s: float | None = None
    ) -> Awaitable[memory_service_pb2.ListMemoriesResponse]: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.UpdateMemoryRequest, *, timeout_s: float | None = None
    ) -> Awaitable[memory_service_pb2.UpdateMemoryResponse]: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.DeleteMemoriesRequest, *, timeout_s: float | None = None
    ) -> Awaitable[memory_service_pb2.DeleteMemoriesResponse]: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.ForgetRequest, *, timeout_s: float | None = None
    ) -> Awaitable[memory_service_pb2.ForgetResponse]: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.ListReviewRequest, *, timeout_s: float | None = None
    ) -> Awaitable[memory_service_pb2.ListReviewResponse]: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.ApproveReviewRequest, *, timeout_s: float | None = None
    ) -> Awaitable[memory_service_pb2.ApproveReviewResponse]: ...

    @overload
    def __call__(
        self, request: memory_service_pb2.RejectReviewRequest, *, timeout_s: float | None = None
    ) -> Awaitable[memory_service_pb2.RejectReviewResponse]: ...

    @overload
    def __call__(
        self, request: project_service_pb2.GetProjectRequest, *, timeout_s: float | None = None
    ) -> Awaitable[project_service_pb2.GetProjectResponse]: ...

    @overload
    def __call__(
        self, request: project_service_pb2.ListProjectsRequest, *, timeout_s: float | None = None
    ) -> Awaitable[project_service_pb2.ListProjectsResponse]: ...

    @overload
    def __call__(
        self, request: project_service_pb2.UpdateProjectRequest, *, timeout_s: float | None = None
    ) -> Awaitable[project_service_pb2.UpdateProjectResponse]: ...

    @overload
    def __call__(
        self, request: project_service_pb2.DeleteProjectRequest, *, timeout_s: float | None = None
    ) -> Awaitable[project_service_pb2.DeleteProjectResponse]: ...

    @overload
    def __call__(
        self, request: project_service_pb2.GetProjectSettingsRequest, *, timeout_s: float | None = None
    ) -> Awaitable[project_service_pb2.GetProjectSettingsResponse]: ...

    @overload
    def __call__(
        self, request: project_service_pb2.UpdateProjectSettingsRequest, *, timeout_s: float | None = None
    ) -> Awaitable[project_service_pb2.UpdateProjectSettingsResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.GetOrCreateActiveSessionRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.GetOrCreateActiveSessionResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.CreateSessionRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.CreateSessionResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.GetSessionRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.GetSessionResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.ListSessionsRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.ListSessionsResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.UpdateSessionRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.UpdateSessionResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.DeleteSessionRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.DeleteSessionResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.AppendMessageRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.AppendMessageResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.UpdateMessageRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.UpdateMessageResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.DeleteMessageRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.DeleteMessageResponse]: ...

    @overload
    def __call__(
        self, request: session_service_pb2.ListMessagesRequest, *, timeout_s: float | None = None
    ) -> Awaitable[session_service_pb2.ListMessagesResponse]: ...
