"""`python -m bench.model`: recalls of texts that the default model embeds first, late interaction included (row 13)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from bench import recall
from bench.alone import ModelAlone
from bench.asking import RECALL, WARM_UP_CALLS, caller, check_replies, recall_requests, timed
from bench.command import Options, run_part
from bench.corpus import Corpus
from bench.latency import Latency
from bench.rows import Findings, Row
from bench.service import BenchFailed
from bench.stores import ONE_OF_A, A, Filled
from hummock import models
from hummock.models import ModelDescription
from hummock.v1 import recall_pb2

PART = "model"
_TOKENS = 16
_CALLS = 500
_MODEL_FACTOR, _OWN_MS = 1.1, 0.4
NOT_MEASURED = (
    "row 13 among all of A: its store has one project as large as A's, for a project meets no other's memories",
)


def measure(options: Options) -> Findings:
    """Row 13, or why it was skipped."""
    model = default_model(options.models_dir)
    if model is None:
        names = ", ".join(each.name for each in models.candidates(models.AUTO, options.models_dir))
        return Findings(
            part=PART, skipped=(f"row 13: none of {names} is in {options.models_dir}; `make model` fetches it",)
        )
    alone = ModelAlone(model, options.models_dir / model.name)
    filled = options.stores.filled_with(ONE_OF_A, model, options.models_dir)
    requests = _text_requests(filled.corpus, alone, WARM_UP_CALLS + _CALLS)
    recalls = _recalls(filled, requests)
    model_time = _model_time(alone, model, requests)
    given = _row_1(options)
    limit_ms = given.p50_ms + _MODEL_FACTOR * model_time.p50_ms + _OWN_MS
    what = f"A: recall as in row 1, {_TOKENS} tokens of text embedded by {model.name}, late interaction, over gRPC, p50"
    note = f"row 1's p50 of this part {given.p50_ms:.3f} ms, the model alone {model_time.p50_ms:.3f} ms"
    return Findings(
        part=PART,
        rows=(Row.at_most(13, what, limit_ms, recalls.p50_ms, "ms", note=note),),
        figures=(
            (f"recall of a text over gRPC, {model.name}", recalls.line()),
            ("the model alone, tokenizer and query prefix included, one core", model_time.line()),
            ("recall as in row 1, in the same minute", given.line()),
            ("calls before those that count", str(WARM_UP_CALLS)),
        ),
        not_measured=NOT_MEASURED,
    )


def default_model(models_dir: Path) -> ModelDescription | None:
    """The best of the default models of one part that are there; nothing is fetched."""
    wanted = models.candidates(models.AUTO, models_dir)
    single = (each for each in wanted if isinstance(each, ModelDescription))
    return next((each for each in single if models.is_here(each, models_dir)), None)


def _text_requests(corpus: Corpus, alone: ModelAlone, calls: int) -> list[recall_pb2.RecallRequest]:
    """Recalls as in row 1 without vectors, whose texts have so many tokens, no two alike."""
    found: dict[str, recall_pb2.RecallRequest] = {}
    for number in count():
        (request,) = recall_requests(corpus, [number], recall.TAG)
        text = alone.cut(request.query_text, _TOKENS)
        if text is not None:
            request.query_text = text
            request.ClearField("query_vector")
            found.setdefault(text, request)
        if len(found) == calls:
            return list(found.values())
    raise AssertionError("count() has no end")


def _recalls(filled: Filled, requests: Sequence[recall_pb2.RecallRequest]) -> Latency:
    messages = [request.SerializeToString() for request in requests]
    with filled.bench.serving() as service:
        made = timed(caller(service.channel, RECALL), messages[:WARM_UP_CALLS], messages[WARM_UP_CALLS:])
    check_replies(made.replies)
    late = [recall_pb2.RecallResponse.FromString(reply).receipt.late_interaction_weight for reply in made.replies]
    if not all(late):
        raise BenchFailed(f"late interaction had no say in {late.count(0.0)} of {len(late)} recalls")
    return Latency.of(made.times_s)


def _model_time(alone: ModelAlone, model: ModelDescription, requests: Sequence[recall_pb2.RecallRequest]) -> Latency:
    times_s = []
    for request in requests:
        started_s = time.perf_counter()
        alone.run(model.query_prefix + request.query_text)
        times_s.append(time.perf_counter() - started_s)
    return Latency.of(times_s[WARM_UP_CALLS:])


def _row_1(options: Options) -> Latency:
    filled = options.stores.filled(A)
    requests = recall_requests(filled.corpus, range(WARM_UP_CALLS + _CALLS), recall.TAG)
    messages = [request.SerializeToString() for request in requests]
    with filled.bench.serving() as service:
        made = timed(caller(service.channel, RECALL), messages[:WARM_UP_CALLS], messages[WARM_UP_CALLS:])
    return Latency.of(made.times_s)


if __name__ == "__main__":
    run_part(measure, __doc__)
