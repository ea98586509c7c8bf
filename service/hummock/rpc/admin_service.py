"""AdminService: for those who run the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hummock.core.project import ServiceStatus
from hummock.rpc import values
from hummock.rpc.admission import Load
from hummock.v1 import admin_service_pb2 as pb

_SCRIPTS: Final = {"han": pb.SCRIPT_HAN, "latin": pb.SCRIPT_LATIN}


class AdminServicer:
    """Says how the service is."""

    def __init__(self, status: Callable[[], ServiceStatus], load: Callable[[], Load]) -> None:
        self._status = status
        self._load = load

    def GetStatus(self, request: pb.GetStatusRequest) -> pb.GetStatusResponse:
        """Says what runs, on what, and how full it is."""
        return status_response(self._status(), self._load())


def status_response(status: ServiceStatus, load: Load) -> pb.GetStatusResponse:
    """How the service is."""
    return pb.GetStatusResponse(
        version=status.version,
        uptime=values.duration(status.uptime_s),
        model=pb.ModelStatus(
            name=status.space.model,
            emb_space=status.space.id,
            dim=status.space.dim,
            max_tokens=status.space.max_tokens,
            scripts=sorted(map(_SCRIPTS.__getitem__, status.space.scripts)),
            advice=status.advice,
        ),
        storage=pb.StorageStatus(
            directory=status.store.directory,
            used_bytes=status.store.used_bytes,
            quota_bytes=status.store.quota_bytes,
            project_count=status.store.project_count,
            loaded_project_count=status.store.loaded_project_count,
            loaded_bytes=status.store.loaded_bytes,
            write_state=pb.WRITE_STATE_REFUSED if status.store.write_fault else pb.WRITE_STATE_WRITABLE,
            write_fault=status.store.write_fault,
            damaged_count=status.store.damaged_count,
        ),
        running_calls=load.running,
        waiting_calls=load.waiting,
        learner=pb.LearnerStatus(
            model=status.learner.model,
            requests=status.learner.requests,
            replies=status.learner.replies,
            prompt_tokens=status.learner.prompt_tokens,
            completion_tokens=status.learner.completion_tokens,
            waiting_turns=status.learner.waiting_turns,
            dropped_turns=status.learner.dropped_turns,
        ),
        embedding=pb.EmbeddingStatus(
            pending_count=status.embedding.pending,
            rate=status.embedding.rate,
            time_left=values.optional_duration(status.embedding.time_left_s(status.embedding.pending)),
            failed_count=status.embedding.failed,
            embedded_count=status.embedding.embedded,
            reused_count=status.embedding.reused,
        ),
    )
