"""`python -m bench.growth`: recalls in one project of 10,000, 100,000 and 1,000,000 memories, over gRPC (row 7)."""

from __future__ import annotations

from dataclasses import dataclass

from bench.asking import RECALL, WARM_UP_CALLS, caller, check_replies, recall_requests, timed
from bench.command import Options, run_part
from bench.latency import Latency
from bench.recall import NOT_MEASURED, TAG
from bench.rows import Findings, Row
from bench.stores import B, Filled, Setting
from hummock.v1 import admin_service_pb2 as admin_pb
from hummock.v1.admin_service_pb2_grpc import AdminServiceStub

PART = "growth"
_SETTINGS = (
    Setting(name="tenth-of-B", memories=10_000, projects=1),
    B,
    Setting(name="ten-times-B", memories=1_000_000, projects=1),
)
_P50_MS, _GROWTH = 3.0, 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """One size: recalls with a filter that a quarter passes, and what the memories take."""

    memories: int
    recall: Latency
    anonymous_bytes: int
    disk_bytes: int
    live_bytes: int

    def line(self) -> str:
        """For people."""
        return (
            f"{self.recall.line()}; anonymous memory {self.anonymous_bytes / 2**20:.0f} MB; "
            f"disk {self.disk_bytes / self.memories:.0f} bytes a memory, live {self.live_bytes / self.memories:.0f}"
        )


def measure(options: Options) -> Findings:
    """Row 7, memory and disk at each size."""
    grown = [_grown(options.stores.filled(setting), options.queries) for setting in _SETTINGS]
    _, base, largest = grown
    what = "1,000,000 memories in one project: recall as in row 1, filter project + tag (1/4), over gRPC"
    growth = largest.recall.p50_ms / base.recall.p50_ms
    return Findings(
        part=PART,
        rows=(
            Row.at_most(7, f"{what}, p50", _P50_MS, largest.recall.p50_ms, "ms"),
            Row.at_most(7, f"{what}, p50 in relation to B's", _GROWTH, growth, "×"),
        ),
        figures=tuple((f"{each.memories:,} memories in one project", each.line()) for each in grown),
        not_measured=NOT_MEASURED,
    )


def _grown(filled: Filled, queries: int) -> Grown:
    requests = recall_requests(filled.corpus, range(WARM_UP_CALLS + queries), TAG)
    messages = [request.SerializeToString() for request in requests]
    with filled.bench.serving() as service:
        made = timed(caller(service.channel, RECALL), messages[:WARM_UP_CALLS], messages[WARM_UP_CALLS:])
        status = AdminServiceStub(service.channel).Status(admin_pb.StatusRequest())
        anonymous_bytes = service.anonymous_bytes()
    check_replies(made.replies)
    files = [path.stat() for path in filled.bench.data_dir.rglob("*") if path.is_file()]
    return Grown(
        memories=filled.setting.memories,
        recall=Latency.of(made.times_s),
        anonymous_bytes=anonymous_bytes,
        # Blocks, not lengths: a sparse file is as large as what was written.
        disk_bytes=sum(512 * file.st_blocks for file in files),
        live_bytes=status.storage.used_bytes,
    )


if __name__ == "__main__":
    run_part(measure, __doc__)
