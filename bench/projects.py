"""`python -m bench.projects`: 10,000 projects of 100 memories in one store (row 14)."""

from __future__ import annotations

import time

from bench.asking import RECALL, caller, check_replies, recall_requests, timed
from bench.command import Options, run_part
from bench.latency import Latency
from bench.recall import NOT_MEASURED
from bench.rows import Findings, Row
from bench.stores import Setting

PART = "projects"
MANY = Setting(name="many-projects", memories=1_000_000, projects=10_000)
_WARM_UP = 100
_IDLE_S = 10.0
_TOUCH_MS, _ANONYMOUS_MIB = 5.0, 600.0
_MIB = 1 << 20


def measure(options: Options) -> Findings:
    """Row 14: every project is asked once, which loads it, then the service is left alone."""
    filled = options.stores.filled(MANY)
    # Questions go to the projects in turn: the first of these touch other projects than those that count.
    messages = [request.SerializeToString() for request in recall_requests(filled.corpus, range(MANY.projects))]
    with filled.bench.serving() as service:
        before_mib = service.anonymous_bytes() / _MIB
        cold = timed(caller(service.channel, RECALL), messages[:_WARM_UP], messages[_WARM_UP:])
        check_replies(cold.replies)
        time.sleep(_IDLE_S)
        after_mib = service.anonymous_bytes() / _MIB
        again = recall_requests(filled.corpus, range(2 * MANY.projects - _WARM_UP, 2 * MANY.projects))
        warm = timed(caller(service.channel, RECALL), (), [request.SerializeToString() for request in again])
    touch = Latency.of(cold.times_s)
    idle = f"10,000 projects × 100: anonymous memory (RssAnon), idle {_IDLE_S:.0f} s after each was asked once"
    return Findings(
        part=PART,
        rows=(
            Row.at_most(
                14,
                "10,000 projects × 100: first recall of a cold project, over gRPC, p50",
                _TOUCH_MS,
                touch.p50_ms,
                "ms",
            ),
            Row.at_most(
                14,
                "10,000 projects × 100: first recall of a cold project, over gRPC, p99",
                _TOUCH_MS,
                touch.p99_ms,
                "ms",
            ),
            Row.at_most(14, idle, _ANONYMOUS_MIB, after_mib, "MB", note="1 MB is 1,048,576 bytes here"),
        ),
        figures=(
            ("first recall of a cold project", touch.line()),
            ("second recall, with another question", Latency.of(warm.times_s).line()),
            ("anonymous memory before the first call, MB", f"{before_mib:.0f}"),
        ),
        not_measured=NOT_MEASURED,
    )


if __name__ == "__main__":
    run_part(measure, __doc__)
