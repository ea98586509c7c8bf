"""`python -m bench.start`: from exec to the first answer in setting A, and what the service then takes (row 12)."""

from __future__ import annotations

import time
from statistics import median

from bench.asking import RECALL, caller, check_replies, recall_requests, timed
from bench.command import Options, run_part
from bench.recall import TAG
from bench.rows import Findings, Row
from bench.stores import A

PART = "start"
_STARTS = 3
_RECALLS = 640
_FIRST_ANSWER_S, _ANONYMOUS_MIB = 1.0, 450.0
_MIB = 1 << 20
NOT_MEASURED = (
    "a start with a real model: a stub stands for it, whose file is 40 KB; onnxruntime itself is loaded and counted",
    "a start from a cold page cache, and one that compiles the kernels",
)


def measure(options: Options) -> Findings:
    """Row 12."""
    filled = options.stores.filled(A)
    messages = [
        request.SerializeToString() for request in recall_requests(filled.corpus, range(_RECALLS + _STARTS), TAG)
    ]
    serving_s, first_answer_s = [], []
    for start, message in enumerate(messages[:_STARTS], 1):
        with filled.bench.serving() as service:
            serving_s.append(time.perf_counter() - service.started_s)
            recall = caller(service.channel, RECALL)
            check_replies([recall(message)])
            first_answer_s.append(time.perf_counter() - service.started_s)
            if start == _STARTS:
                one_mib = service.anonymous_bytes() / _MIB
                # Questions go to the projects in turn, so that these load all of them.
                check_replies(timed(recall, (), messages[_STARTS:]).replies)
                all_mib, resident_mib = service.anonymous_bytes() / _MIB, service.resident_bytes() / _MIB
    what = "A: from exec to the first answer over gRPC, stub model, one project loaded"
    memory = "A: anonymous resident memory (RssAnon) with all 16 projects loaded, after 640 recalls"
    return Findings(
        part=PART,
        rows=(
            Row.at_most(12, f"{what}, median of {_STARTS}", _FIRST_ANSWER_S, median(first_answer_s), "s"),
            Row.at_most(12, memory, _ANONYMOUS_MIB, all_mib, "MB", note="1 MB is 1,048,576 bytes here"),
        ),
        figures=(
            ("exec to serving, s", _listed(serving_s)),
            ("exec to the first answer, s", _listed(first_answer_s)),
            ("anonymous memory with one project loaded, MB", f"{one_mib:.0f}"),
            ("resident memory with all loaded, libraries and the mapped store included, MB", f"{resident_mib:.0f}"),
        ),
        not_measured=NOT_MEASURED,
    )


def _listed(seconds: list[float]) -> str:
    return ", ".join(f"{each:.2f}" for each in seconds)


if __name__ == "__main__":
    run_part(measure, __doc__)
