"""What `bench.recall` found out, and how it is printed."""

from __future__ import annotations

from dataclasses import dataclass, fields

from bench.latency import Latency
from bench.machine import Machine

_CALLS_FOR_P99_9 = 1000
NOT_MEASURED = (
    "the embedding model: memories and questions bring their vectors (so token vectors are not stored either)",
    "how good the answers are: the corpus is synthetic",
    "more than one client at a time, recalls while others write, and filters",
    "a cold page cache or compiling the kernels: the store was just written, and the kernels were compiled before",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was asked for."""

    memories: int
    queries: int
    projects: int
    preset: str
    seed: int
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """LearnStream with given vectors, from the first request to the last answer; the requests were ready before."""

    seconds: float
    memories_per_s: float
    batch_memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """From executing `hummock serve` on the full store: until it lets calls in, and until its first recall is there."""

    serving_s: float
    first_answer_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalls:
    """Recalls one after the other; `stages_p50_ms` is what their receipts say of each stage."""

    latency: Latency
    stages_p50_ms: dict[str, float]
    hits_mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Of the restarted service after its recalls: its memory, its indexes in memory, and the data directory."""

    resident_bytes: int
    index_bytes: int
    disk_bytes: int
    live_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that a run found out."""

    options: Options
    model: str
    dim: int
    warm_up_calls: int
    machine: Machine
    learnt: Learnt
    restarts: tuple[Restart, ...]
    in_process: Recalls
    over_grpc: Recalls
    sizes: Sizes
    not_measured: tuple[str, ...] = NOT_MEASURED


def markdown(report: Report) -> str:
    """The report as Markdown: what was asked and where, latencies, stages, the rest, and what is not in it."""
    asked = report.options
    return "\n".join(
        [
            f"## Recall among {asked.memories} memories in {asked.projects} project(s)",
            "",
            f"- {asked.queries} distinct questions with vectors, preset {asked.preset}, seed {asked.seed}, "
            f"model {report.model} ({report.dim} dimensions), after {report.warm_up_calls} others that are not counted",
            *report.machine.lines(),
            "",
            *_latencies(report),
            "",
            *_stages(report),
            "",
            *_others(report),
            "",
            "Not measured:",
            *(f"- {each}" for each in report.not_measured),
        ]
    )


def _latencies(report: Report) -> list[str]:
    # The names of the columns are those of the values: "p99_9_ms" is shown as "p99.9".
    names = [field.name for field in fields(Latency) if field.name.endswith("_ms")]
    shown = [name.removesuffix("_ms").replace("_", ".") for name in names]
    header = [f"| Recall, ms | {' | '.join(shown)} | hits, mean |", f"|---|{'---:|' * (len(shown) + 1)}"]
    rows = [
        f"| {title} | {' | '.join(f'{getattr(recalls.latency, name):.2f}' for name in names)} | {recalls.hits_mean} |"
        for title, recalls in (("in process", report.in_process), ("over gRPC, one client", report.over_grpc))
    ]
    if report.options.queries >= _CALLS_FOR_P99_9:
        return [*header, *rows]
    return [*header, *rows, "", f"With fewer than {_CALLS_FOR_P99_9} questions p99.9 is the slowest of them."]


def _stages(report: Report) -> list[str]:
    stages = list(report.in_process.stages_p50_ms)
    header = [f"| Stages of the receipt, p50 ms | {' | '.join(stages)} |", f"|---|{'---:|' * len(stages)}"]
    rows = [
        f"| {title} | {' | '.join(f'{recalls.stages_p50_ms[stage]:.3f}' for stage in stages)} |"
        for title, recalls in (("in process", report.in_process), ("over gRPC, one client", report.over_grpc))
    ]
    return [*header, *rows]


def _others(report: Report) -> list[str]:
    memories = report.options.memories
    sizes = report.sizes
    firsts = ", ".join(f"{restart.first_answer_s:.2f}" for restart in report.restarts)
    serving = ", ".join(f"{restart.serving_s:.2f}" for restart in report.restarts)
    return [
        "| What else | |",
        "|---|---:|",
        f"| LearnStream, {report.learnt.batch_memories} memories a batch, vectors given, memories/s | "
        f"{report.learnt.memories_per_s:.0f} |",
        f"| LearnStream, all {memories}, s | {report.learnt.seconds:.2f} |",
        f"| restart: exec to serving, s, each time | {serving} |",
        f"| restart: exec to first answer over gRPC, s, each time | {firsts} |",
        f"| resident memory of the service, MiB | {sizes.resident_bytes / 2**20:.0f} |",
        f"| of it the indexes, MiB | {sizes.index_bytes / 2**20:.1f} |",
        f"| disk, bytes a memory | {sizes.disk_bytes / memories:.0f} |",
        f"| disk, live bytes a memory | {sizes.live_bytes / memories:.0f} |",
    ]
