"""AdminService: for those who run the service."""

from __future__ import annotations

from collections.abc import Callable

from hummock.core.project import Project, ServiceStatus
from hummock.rpc import values
from hummock.rpc.admission import Load
from hummock.v1 import admin_service_pb2, memory_pb2, project_service_pb2
from hummock.v1 import admin_service_pb2 as pb


def project(stored: Project, *, whole: bool) -> project_service_pb2.Project:
    """A project, with what takes a look of its own: memories by kind and feedback, or without."""
    return project_service_pb2.Project(
        name=stored.name,
        info=project_service_pb2.ProjectInfo(
            tech_stack=stored.info.tech_stack,
            path=stored.info.path,
            tech_stack_origin=memory_pb2.Origin.ValueType(stored.info.tech_stack_origin or 0),
            path_origin=memory_pb2.Origin.ValueType(stored.info.path_origin or 0),
        ),
        memory_count=stored.memory_count,
        kinds=[
            project_service_pb2.KindCount(kind=kind.name, count=count) for kind, count in sorted(stored.kinds.items())
        ]
        if whole
        else [],
        seq=stored.seq,
        content_seq=stored.content_seq,
        emb_space=stored.emb_space,
        create_time=values.timestamp(stored.create_time),
        feedback=project_service_pb2.FeedbackCounts(
            helpful=stored.feedback.helpful,
            not_helpful=stored.feedback.not_helpful,
            wrong=stored.feedback.wrong,
        )
        if whole
        else None,
    )


def status_response(status: ServiceStatus, load: Load) -> admin_service_pb2.StatusResponse:
    """How the service is."""
    return admin_service_pb2.StatusResponse(
        version=status.version,
        uptime=values.duration(status.uptime_s),
        model=admin_service_pb2.ModelStatus(
            name=status.space.model,
            emb_space=status.space.id,
            dim=status.space.dim,
            max_tokens=status.space.max_tokens,
            scripts=sorted(status.space.scripts),
            advice=status.advice,
        ),
        storage=admin_service_pb2.StorageStatus(
            directory=status.store.directory,
            used_bytes=status.store.used_bytes,
            quota_bytes=status.store.quota_bytes,
            project_count=status.store.project_count,
            loaded_project_count=status.store.loaded_project_count,
            loaded_bytes=status.store.loaded_bytes,
        ),
        running_calls=load.running,
        waiting_calls=load.waiting,
        learner=admin_service_pb2.LearnerStatus(
            model=status.learner.model,
            requests=status.learner.requests,
            replies=status.learner.replies,
            prompt_tokens=status.learner.prompt_tokens,
            completion_tokens=status.learner.completion_tokens,
            waiting_turns=status.learner.waiting_turns,
            dropped_turns=status.learner.dropped_turns,
        ),
    )


class AdminServicer:
    """Says how the service is."""

    def __init__(self, status: Callable[[], ServiceStatus], load: Callable[[], Load]) -> None:
        self._status = status
        self._load = load

    def Status(self, request: pb.StatusRequest) -> pb.StatusResponse:
        """Says what runs, on what, and how full it is."""
        return status_response(self._status(), self._load())
