"""AdminService: calls for the operators of the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hummock.core.activity import Activity, Latency
from hummock.core.project import ServiceStatus
from hummock.rpc import values
from hummock.rpc.admission import Load
from hummock.rpc.call import CallContext
from hummock_client.v1 import admin_service_pb2 as pb
from hummock_client.v1 import recall_pb2

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
    return pb.Activity(
        process_count=activity.process_count,
        window=values.duration(activity.window_s),
        methods=[
            pb.MethodActivity(
                method=each.method.removeprefix("/"),
                ok_count=each.ok_count,
                failed_count=each.failed_count,
                rate=each.rate,
                latency=_latency(each.latency),
            )
            for each in activity.methods
        ],
        stages=[
            pb.StageActivity(stage=recall_pb2.RecallStage.ValueType(stage), latency=_latency(latency))
            for stage, latency in activity.stages
        ],
        failures=[pb.FailureCount(reason=reason, count=count) for reason, count in activity.failures],
        recall_count=activity.recall_count,
        cache_hit_count=activity.cache_hit_count,
        recall_rates=activity.recall_rates,
        step=values.duration(activity.step_s),
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
    if not latency.count:
        return pb.Latency()
    return pb.Latency(
        count=latency.count,
        p50=values.duration(latency.p50_s),
        p95=values.duration(latency.p95_s),
        p99=values.duration(latency.p99_s),
    )


def status_response(status: ServiceStatus, load: Load) -> pb.GetStatusResponse:
    """The state of the service as a message, without its activity."""
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
            clock_ahead=values.optional_duration(status.store.clock_ahead_s or None),
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
