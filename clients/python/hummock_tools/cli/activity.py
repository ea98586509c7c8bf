"""Prints a service's activity as lines of `hummock status`."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration

from hummock_client.v1 import admin_service_pb2 as pb
from hummock_client.v1 import recall_pb2
from hummock_tools.cli.output import enum_word, print_line, printable

_MIB = 1 << 20
_MOST = 5
"""Largest number of methods, and of failure reasons, that are listed."""


def print_activity(activity: pb.Activity) -> None:
    """Rates, times by stage, failures, and what the processes hold."""
    processes = f"{activity.process_count} processes" if activity.process_count > 1 else "one process"
    print_line(f"  recalls  {_recalls(activity)}, by {processes}")
    minutes = activity.window.seconds / 60
    for each in activity.methods:
        if each.method.endswith("ContextService/Recall") and each.latency.count:
            print_line(f"  latency  p50 {_quantiles(each.latency)} ms of Recall in the last {minutes:.0f} min")
    for stage in activity.stages:
        name = enum_word(recall_pb2.RecallStage, stage.stage).replace(" ", "_")
        print_line(f"    {name:<18} p50 {_quantiles(stage.latency)} ms, {stage.latency.count} times")
    calls = sorted(activity.methods, key=lambda each: -(each.ok_count + each.failed_count))
    shown = [f"{each.ok_count + each.failed_count} {each.method.rpartition('/')[2]}" for each in calls[:_MOST]]
    if shown:
        print_line(printable(f"  since    {', '.join(shown)}"))
    if activity.failures:
        failed = ", ".join(f"{each.count} {each.reason}" for each in activity.failures[:_MOST])
        print_line(printable(f"  failed   {failed}"))
    print_line(
        f"  cache    {activity.cached_answer_count} answers, {activity.cached_bytes / _MIB:.1f} MiB; "
        f"{activity.cache_hit_count} of {activity.recall_count} recalls came from it"
    )
    print_line(
        f"  indexes  {activity.loaded_index_count} in memory, {activity.loaded_index_bytes / _MIB:.1f} MiB, "
        f"{activity.evicted_index_count} given up; {activity.lag_operation_count} operations behind at most"
    )
    print_line(
        f"  slots    {activity.busy_slot_count} texts being embedded, {activity.model_slot_count} at a time; "
        f"{activity.waiting_text_count} wait"
    )


def _recalls(activity: pb.Activity) -> str:
    rate = next((each.rate for each in activity.methods if each.method.endswith("ContextService/Recall")), 0.0)
    return f"{rate:.2f}/s in the last minute, {activity.recall_count} since the start"


def _quantiles(latency: pb.Latency) -> str:
    return f"{_ms(latency.p50)}, p95 {_ms(latency.p95)}, p99 {_ms(latency.p99)}"


def _ms(span: Duration) -> str:
    return f"{span.ToNanoseconds() / 1e6:.2f}"
