"""Part `metrics`: what metrics add to a recall."""

from __future__ import annotations

from bench.access import caller, in_turns
from bench.asking import TAG, WARM_UP_CALLS, Latency, recall_messages
from bench.command import Options
from bench.report import Findings, Row
from bench.stores import A, Setting

PART = "metrics"
_LIMIT = 3.0
_WHAT = "one project of A: recall over gRPC, one client; what metrics add, two services in turns, p50"
_ONE = Setting(name="metrics", memories=A.memories // A.projects, projects=1)


def measure(options: Options) -> Findings:
    """Measures one store behind a service without metrics, and behind one with them."""
    filled = options.stores.filled(_ONE)
    asked = recall_messages(filled.corpus, range(options.queries + WARM_UP_CALLS), TAG)
    with filled.copied() as copied:
        with (copied.bench.directory / "hummock.toml").open("a", encoding="utf-8") as settings:
            settings.write("metrics_port = 0\n")
        with filled.bench.serving() as plain, copied.bench.serving() as metered:
            found = in_turns(caller(plain.channel), caller(metered.channel), asked)
    return Findings(
        part=PART,
        rows=(Row.at_most(_WHAT, _LIMIT, found.added_percent, "%"),),
        figures=(
            ("without metrics", Latency.of(found.plain_s).line()),
            ("with metrics", Latency.of(found.guarded_s).line()),
        ),
        not_measured=("metrics of readers, which count into files", "the page, which is read every 15 s or so"),
    )
