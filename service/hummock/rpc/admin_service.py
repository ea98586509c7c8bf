"""AdminService: calls for the operators of the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hummock.core.activity import Activity, Latency
from hummock.core.project import ServiceStatus
from hummock.rpc.admission import Load
from hummock.rpc.call import CallContext
from hummock.rpc.conversion import message_of
from hummock_client.v1 import admin_service_pb2 as pb

_SCRIPTS: Final = {"han": pb.SCRIPT_HAN, "latin": pb.SCRIPT_LATIN}


class AdminServicer:
    """Reports the status of the service."""

    def __init__(
        self,
        status: Callable[[], ServiceStatus],
        load: Callable[[], Load],
        activity: Callable[[], Activity] | None = None,
    ) -> None:
        """Answer from these functions. Without `activity` no calls are counted."""
        self._status = status
        self._load = load
        self._activity = activity

    def GetStatus(self, request: pb.GetStatusRequest, call: CallContext) -> pb.GetStatusResponse:
        """Returns the version, the machine and the load of the service."""
        if self._activity is None:
            return status_response(self._status(), self._load())
        activity = self._activity()
        # Counts all processes, with the lanes of this one.
        load = Load(running=activity.load.running_calls, waiting=activity.load.waiting_calls)
        reply = status_response(self._status(), load)
        reply.activity.CopyFrom(activity_message(activity))
        return reply


def activity_message(activity: Activity) -> pb.Activity:
    """The counters of a service and its load, as a message."""
    load = activity.load
    return message_of(
        pb.Activity,
        activity,
        methods=[
            message_of(pb.MethodActivity, each, method=each.method.removeprefix("/"), latency=_latency(each.latency))
            for each in activity.methods
        ],
        stages=[message_of(pb.StageActivity, stage=stage, latency=_latency(each)) for stage, each in activity.stages],
        failures=[pb.FailureCount(reason=reason, count=count) for reason, count in activity.failures],
        cached_answer_count=load.cached_answers,
        cached_bytes=load.cached_bytes,
        loaded_index_count=load.loaded_projects,
        loaded_index_bytes=load.index_bytes,
        evicted_index_count=load.evicted_projects,
        lag_operation_count=load.lag_operations,
        model_slot_count=load.model_slots,
        busy_slot_count=load.busy_slots,
        waiting_text_count=load.waiting_texts,
    )


def _latency(latency: Latency) -> pb.Latency:
    return message_of(pb.Latency, latency) if latency.count else pb.Latency()


def status_response(status: ServiceStatus, load: Load) -> pb.GetStatusResponse:
    """The state of the service as a message, without its activity."""
    space, store, embedding = status.space, status.store, status.embedding
    return message_of(
        pb.GetStatusResponse,
        status,
        model=message_of(
            pb.ModelStatus,
            space,
            name=space.model,
            emb_space=space.id,
            scripts=sorted(map(_SCRIPTS.__getitem__, space.scripts)),
            advice=status.advice,
        ),
        storage=message_of(
            pb.StorageStatus,
            store,
            write_state=pb.WRITE_STATE_REFUSED if store.write_fault else pb.WRITE_STATE_WRITABLE,
            clock_ahead=store.clock_ahead_s or None,
        ),
        running_calls=load.running,
        waiting_calls=load.waiting,
        embedding=message_of(
            pb.EmbeddingStatus,
            embedding,
            pending_count=embedding.pending,
            time_left=embedding.time_left_s(embedding.pending),
            failed_count=embedding.failed,
            embedded_count=embedding.embedded,
            reused_count=embedding.reused,
        ),
        activity=None,
    )
