"""Part `deadlines`: recalls answered inside short deadlines among 100,000 memories, over gRPC."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from time import perf_counter

import grpc

from bench.asking import RECALL, TAG, WARM_UP_CALLS, Latency, recall_requests
from bench.command import Options
from bench.corpus import Corpus
from bench.model import default_model, no_model
from bench.report import Findings, Row
from bench.service import BenchFailed, Serving
from bench.stores import Filled, Setting
from hummock_client.v1 import recall_pb2

PART = "deadlines"
SETTING = Setting(name="B-embedded", memories=100_000, projects=1, embedded=TAG)
DEADLINES_MS = (20, 50, 100, 300)
CLIENTS = (1, 4)
LONG_QUESTIONS = 40
"""Questions that make one long query: more text than a window of 512 tokens takes."""

_PERCENT = 99.5
_CONTEXT_WINDOW = 2
NOT_MEASURED = (
    "a cross-encoder: none is installed unless its setting says so",
    "the first recall of a project, which loads it",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Results of calls with one deadline.

    Attributes:
        times_s: Seconds of the calls that were answered in time.
        late: Number of calls that were not.
        left_out: How many answers went without each path.
    """

    times_s: Sequence[float]
    late: int
    left_out: Counter[str]

    @property
    def percent(self) -> float:
        """Calls that were answered in time, of all."""
        calls = len(self.times_s) + self.late
        return 100 * len(self.times_s) / calls if calls else 0.0

    def line(self) -> str:
        """A line for people."""
        went_without = ", ".join(f"{path} {number}" for path, number in sorted(self.left_out.items())) or "nothing"
        times = Latency.of(self.times_s).line() if self.times_s else "none answered"
        return f"{times}; late {self.late}; left out: {went_without}"


def measure(options: Options) -> Findings:
    """Answers by deadline, or why it was skipped."""
    model = default_model(options.models_dir)
    if model is None:
        return Findings(part=PART, skipped=(no_model("deadlines", options.models_dir),))
    filled = options.stores.filled_with(SETTING, model, options.models_dir)
    what = (
        f"{SETTING.memories:,} memories in one project, every other query longer than {model.name} reads, "
        f"late interaction, {_CONTEXT_WINDOW} neighbours: recalls answered inside"
    )
    return Findings(part=PART, rows=tuple(_rows(filled, what, options.queries)), not_measured=NOT_MEASURED)


def _rows(filled: Filled, what: str, queries: int) -> Iterator[Row]:
    numbers = count()
    with filled.bench.serving() as service:
        _answers(service, _messages(filled.corpus, numbers, WARM_UP_CALLS), None, clients=1)
        for clients in CLIENTS:
            for deadline_ms in DEADLINES_MS:
                messages = _messages(filled.corpus, numbers, queries)
                answers = _answers(service, messages, deadline_ms / 1000, clients)
                case = f"{what} {deadline_ms} ms, {clients} clients" if clients > 1 else f"{what} {deadline_ms} ms"
                yield Row.at_least(case, _PERCENT, answers.percent, "%", note=answers.line())


def _messages(corpus: Corpus, numbers: Iterator[int], calls: int) -> list[bytes]:
    """Recalls of texts, short and long in turns; no two are alike, so that the cache answers none."""
    messages = []
    for place in range(calls):
        parts = [next(numbers) for _ in range(LONG_QUESTIONS if place % 2 else 1)]
        request, *others = recall_requests(corpus, parts, TAG)
        request.query_text = " ".join([request.query_text, *[other.query_text for other in others]])
        request.ClearField("query_vector")
        request.context_window = _CONTEXT_WINDOW
        messages.append(request.SerializeToString())
    return messages


def _answers(service: Serving, messages: Sequence[bytes], deadline_s: float | None, clients: int) -> Answers:
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = service.channel.unary_unary(RECALL)

    def answer(message: bytes) -> tuple[float, bytes] | None:
        started_s = perf_counter()
        try:
            reply = bytes(call(message, timeout=deadline_s))
        except grpc.RpcError as failed:
            if failed.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                return None
            raise BenchFailed(f"a recall failed: {failed.details()}") from failed
        return perf_counter() - started_s, reply

    with ThreadPoolExecutor(clients) as threads:
        made = list(threads.map(answer, messages))
    answered = [each for each in made if each is not None]
    replies = [recall_pb2.RecallResponse.FromString(reply) for _, reply in answered]
    if not all(reply.hits for reply in replies):
        raise BenchFailed("a recall found nothing")
    return Answers(
        times_s=[elapsed_s for elapsed_s, _ in answered],
        late=len(made) - len(answered),
        left_out=Counter(
            recall_pb2.DegradedPart.Name(each.part).removeprefix("DEGRADED_PART_").lower()
            for reply in replies
            for each in reply.degraded
        ),
    )
