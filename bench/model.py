"""`python -m bench.model`: recalls of texts that the default model embeds first, late interaction included (row 13)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

from bench import recall
from bench.alone import ModelAlone
from bench.asking import RECALL, WARM_UP_CALLS, Call, caller, check_replies, recall_requests, timed
from bench.command import Options, run_part
from bench.corpus import Corpus
from bench.latency import Latency
from bench.rows import Findings, Row
from bench.service import BenchFailed
from bench.stores import ONE_OF_A, A, Filled
from hummock import models
from hummock.models import EmbeddingModel
from hummock.text.normalise import known_share
from hummock.v1 import recall_pb2

PART = "model"
_TOKENS = 16
_CALLS = 300
_LANGUAGES = {"Chinese": 1.0, "English": 0.0}
"""Each with the share of Chinese in its texts: of two models a mixed text asks both, as an English one does."""
_MODEL_FACTOR, _OWN_MS = 1.1, 0.4
_HAN = frozenset({"han"})
NOT_MEASURED = (
    "row 13 of texts in both languages, which ask both of two models",
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
    alone = ModelAlone(model, options.models_dir)
    filled = options.stores.filled_with(ONE_OF_A, model, options.models_dir)
    requests = _text_requests(filled.corpus, alone, WARM_UP_CALLS + _CALLS)
    recalls = _recalls(filled, requests)
    model_times = {language: _model_time(alone, each) for language, each in requests.items()}
    given = _row_1(options)
    figures = [
        figure
        for language in _LANGUAGES
        for figure in (
            (f"recall of {language} text over gRPC, {model.name}", recalls[language].line()),
            (f"{model.name} alone, {language}, one core", model_times[language].line()),
        )
    ]
    return Findings(
        part=PART,
        rows=tuple(_row(model, each, recalls[each], model_times[each], given) for each in _LANGUAGES),
        figures=(
            *figures,
            ("recall as in row 1, in the same minute", given.line()),
            ("calls before those that count", str(WARM_UP_CALLS)),
        ),
        not_measured=NOT_MEASURED,
    )


def _row(model: EmbeddingModel, language: str, recall: Latency, model_time: Latency, given: Latency) -> Row:
    what = (
        f"A: recall as in row 1, {_TOKENS} tokens of {language} text embedded by {model.name}, "
        "late interaction, over gRPC, p50"
    )
    note = f"row 1's p50 of this part {given.p50_ms:.3f} ms, the model alone {model_time.p50_ms:.3f} ms"
    limit_ms = given.p50_ms + _MODEL_FACTOR * model_time.p50_ms + _OWN_MS
    return Row.at_most(13, what, limit_ms, recall.p50_ms, "ms", note=note)


def default_model(models_dir: Path) -> EmbeddingModel | None:
    """The best of the default models that is there, whether one or two as one; nothing is fetched."""
    wanted = models.candidates(models.AUTO, models_dir)
    return next((each for each in wanted if models.is_here(each, models_dir)), None)


def _text_requests(corpus: Corpus, alone: ModelAlone, calls: int) -> dict[str, list[recall_pb2.RecallRequest]]:
    """Of each language recalls as in row 1 without vectors, whose texts have so many tokens, no two alike."""
    found: dict[float, dict[str, recall_pb2.RecallRequest]] = {chinese: {} for chinese in _LANGUAGES.values()}
    for number in count():
        (request,) = recall_requests(corpus, [number], recall.TAG)
        text = alone.cut(request.query_text, _TOKENS)
        wanted = None if text is None else found.get(known_share(text, _HAN))
        if text is None or wanted is None or len(wanted) == calls:
            continue
        request.query_text = text
        request.ClearField("query_vector")
        wanted.setdefault(text, request)
        if all(len(each) == calls for each in found.values()):
            return {language: list(found[chinese].values()) for language, chinese in _LANGUAGES.items()}
    raise AssertionError("count() has no end")


def _recalls(filled: Filled, requests: Mapping[str, Sequence[recall_pb2.RecallRequest]]) -> dict[str, Latency]:
    with filled.bench.serving() as service:
        call = caller(service.channel, RECALL)
        return {language: _asked(call, each) for language, each in requests.items()}


def _asked(call: Call, requests: Sequence[recall_pb2.RecallRequest]) -> Latency:
    messages = [request.SerializeToString() for request in requests]
    made = timed(call, messages[:WARM_UP_CALLS], messages[WARM_UP_CALLS:])
    check_replies(made.replies)
    late = [recall_pb2.RecallResponse.FromString(reply).receipt.late_interaction_weight for reply in made.replies]
    if not all(late):
        raise BenchFailed(f"late interaction had no say in {late.count(0.0)} of {len(late)} recalls")
    return Latency.of(made.times_s)


def _model_time(alone: ModelAlone, requests: Sequence[recall_pb2.RecallRequest]) -> Latency:
    times_s = []
    for request in requests:
        started_s = time.perf_counter()
        alone.run_query(request.query_text)
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
