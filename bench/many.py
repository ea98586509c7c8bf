"""`python -m bench.many`: 1, 16 and 64 clients in setting A, closed and open loop."""

from __future__ import annotations

from bench.asking import RECALL, recall_requests
from bench.command import Options, run_part
from bench.generator import Generator, NoCompiler
from bench.load import OPEN_SHARE, WARM_UP_CALLS, served
from bench.recall import NOT_MEASURED, TAG
from bench.rows import Findings
from bench.stores import A

PART = "many"
_CLIENTS = (1, 16, 64)
_CALLS = 6000


def measure(options: Options) -> Findings:
    """Of each number of clients a closed loop, then an open one at four fifths of what that did."""
    try:
        generator = Generator.compiled(options.stores.directory)
    except NoCompiler as none:
        return Findings(part=PART, skipped=(f"1, 16 and 64 clients: {none}",))
    filled = options.stores.filled(A)
    requests = recall_requests(filled.corpus, range(WARM_UP_CALLS + 2 * _CALLS * len(_CLIENTS)), TAG)
    messages = iter([request.SerializeToString() for request in requests])
    figures = []
    with filled.bench.serving() as service:
        generator.run(service.target, RECALL, [next(messages) for _ in range(WARM_UP_CALLS)], max(_CLIENTS))
        for clients in _CLIENTS:
            closed = served(service, generator, [next(messages) for _ in range(_CALLS)], clients, None)
            rate_per_s = OPEN_SHARE * closed.load.calls_per_s
            opened = served(service, generator, [next(messages) for _ in range(_CALLS)], clients, rate_per_s)
            figures += [
                (f"{clients} clients, closed loop", closed.line()),
                (f"{clients} clients, open loop, {rate_per_s:.0f}/s", opened.line()),
            ]
    return Findings(part=PART, figures=tuple(figures), not_measured=NOT_MEASURED)


if __name__ == "__main__":
    run_part(measure, __doc__)
