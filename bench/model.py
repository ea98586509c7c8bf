"""Parts `model` and `embedding`: texts that the default model embeds: recalls and Learn.

Alongside them stand tokenizers and onnxruntime alone, one text an inference on one core, on the graphs that the service
runs. HUMMOCK_SHARED names the folder that holds datasets/cosqa-code, which `embedding` learns with this repository.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime

from bench.asking import RECALL, TAG, WARM_UP_CALLS, Call, Latency, caller, check_replies, recall_requests, timed
from bench.command import Options
from bench.corpus import Corpus
from bench.eval.made import drawn
from bench.goals import Headline, Judge
from bench.report import Findings, Row
from bench.service import Bench, BenchFailed
from bench.stores import BATCH_MEMORIES, ONE_OF_A, Filled, learn_all
from hummock import models
from hummock.models import EmbeddingModel, ModelDescription, PairDescription, TrioDescription, served
from hummock.models.description import Pooling
from hummock.models.encoder import open_session, tokenizer_of
from hummock.models.pair import BEGINNING_TOKENS, weights, whole_readers
from hummock.rpc.memory_messages import learn_command
from hummock.text import template
from hummock.text.languages import MOSTLY, han_share
from hummock.text.normalise import known_share, words_by_script
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import memory_pb2, recall_pb2
from hummock_tools.indexing.chunker import fragments
from hummock_tools.indexing.markdown import MARKDOWN_SUFFIXES
from hummock_tools.indexing.tree import memory_input
from hummock_tools.indexing.walk import walk

PART, EMBEDDING = "model", "embedding"
_TOKENS = 16
_CALLS = 300
_LANGUAGES = {"Chinese": 1.0, "English": 0.0}
"""Each with the share of Chinese in its texts: of two models a mixed text asks both, as an English one does."""
_HAN = frozenset({"han"})
_TEXTS, _FRAGMENTS, _ROUNDS, _LEARN_SHARE = 2000, 1000, 2, 0.95
_REPOSITORY = Path(__file__).parents[1]
_PROJECT = "bench"
NOT_MEASURED = (
    "recalls of texts in both languages, which ask both of two models",
    "recalls of texts in all 16 projects of A: their store has one project of that size",
)


def measure(options: Options) -> Findings:
    """Recalls of Chinese and of English texts, or why they were skipped."""
    model = default_model(options.models_dir)
    if model is None:
        return Findings(part=PART, skipped=(no_model("recall of a text", options.models_dir),))
    alone = ModelAlone(model, options.models_dir)
    filled = options.stores.filled_with(ONE_OF_A, model, options.models_dir)
    requests = _text_requests(filled.corpus, alone, WARM_UP_CALLS + _CALLS)
    recalls = _recalls(filled, requests)
    model_times = {language: _model_time(alone, each) for language, each in requests.items()}
    figures = [
        figure
        for language in _LANGUAGES
        for figure in (
            (f"recall of {language} text over gRPC, {model.name}", recalls[language].line()),
            (f"{model.name} alone, {language}, one core", model_times[language].line()),
        )
    ]
    alone_name = f"{model.name} alone, onnxruntime {onnxruntime.__version__}"
    headlines = [
        Headline.of(each, recalls[each].p50_ms, Judge(name=alone_name, value=model_times[each].p50_ms))
        for each in _LANGUAGES
    ]
    return Findings(
        part=PART,
        headlines=tuple(headlines),
        figures=(*figures, ("calls before those that count", str(WARM_UP_CALLS))),
        not_measured=NOT_MEASURED,
    )


def default_model(models_dir: Path) -> EmbeddingModel | None:
    """The best of the default models that is there, whether one or two as one; nothing is fetched."""
    wanted = models.candidates(models.AUTO, models_dir)
    return next((each for each in wanted if models.is_here(each, models_dir)), None)


def no_model(what: str, models_dir: Path) -> str:
    """Why something is skipped that needs a default model."""
    names = ", ".join(each.name for each in models.candidates(models.AUTO, models_dir))
    return f"{what}: none of {names} is in {models_dir}; `make model` fetches it"


def _text_requests(corpus: Corpus, alone: ModelAlone, calls: int) -> dict[str, list[recall_pb2.RecallRequest]]:
    """Recalls by language, without vectors; their texts have `_TOKENS` tokens each and all differ."""
    found: dict[float, dict[str, recall_pb2.RecallRequest]] = {chinese: {} for chinese in _LANGUAGES.values()}
    for number in count():
        (request,) = recall_requests(corpus, [number], TAG)
        text = alone.cut(request.query_text, _TOKENS)
        wanted = None if text is None else found.get(known_share(words_by_script(text), _HAN))
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


def measure_embedding(options: Options) -> Findings:
    """Learn of each kind of texts, or why it was skipped."""
    model = default_model(options.models_dir)
    if model is None:
        return Findings(part=EMBEDDING, skipped=(no_model("Learn of texts", options.models_dir),))
    path = Path(os.environ.get("HUMMOCK_SHARED", "../shared")) / "datasets" / "cosqa-code" / "corpus.jsonl"
    kinds = {"fragments of this repository": _fragments()}
    if path.exists():
        kinds["cosqa functions"] = _functions(path)
    each = [_embedding(model, options, kind, memories) for kind, memories in kinds.items()]
    return Findings(
        part=EMBEDDING,
        rows=tuple(row for row, _ in each),
        figures=tuple(figure for _, figures in each for figure in figures),
        skipped=() if path.exists() else (f"cosqa: {path} is not there",),
    )


def _embedding(
    model: EmbeddingModel, options: Options, kind: str, memories: Sequence[memory_pb2.Memory]
) -> tuple[Row, list[tuple[str, str]]]:
    """Both do the same chunks, on as many threads as there are cores."""
    documents = _documents(model, options.models_dir, memories)
    alone_s, learnt_s = [], []
    for _ in range(_ROUNDS):
        alone_s.append(_alone_s(model, options.models_dir, documents))
        learnt_s.append(_learnt_s(model, options, memories))
    chunks = sum(map(len, documents))
    what = f"Learn of {kind} with {model.name}: chunks a second, of what onnxruntime does alone on as many threads"
    note = f"{len(memories)} texts, {chunks} chunks; the better of {_ROUNDS} rounds each, in turns"
    figures = [
        (f"{who}, {kind}, chunks/s (texts/s)", ", ".join(_rates(chunks, len(memories), each) for each in taken_s))
        for who, taken_s in (("onnxruntime alone", alone_s), ("LearnStream", learnt_s))
    ]
    return Row.at_least(what, _LEARN_SHARE, min(alone_s) / min(learnt_s), "", note=note), figures


def _rates(chunks: int, texts: int, taken_s: float) -> str:
    return f"{chunks / taken_s:.0f} ({texts / taken_s:.0f})"


def _functions(path: Path) -> list[memory_pb2.Memory]:
    with path.open(encoding="utf-8") as lines:
        texts = list(dict.fromkeys(json.loads(line)["text"] for line in lines))[:_TEXTS]
    return [
        memory_pb2.Memory(kind=memory_pb2.MEMORY_KIND_NOTE, content=f"{text}\n# {place}")
        for place, text in enumerate(texts)
    ]


def _fragments() -> list[memory_pb2.Memory]:
    """Some of those into which the indexer cuts this repository's files, documents left out."""
    files = (file for file in walk(_REPOSITORY, lambda path, reason: None) if file.suffix not in MARKDOWN_SUFFIXES)
    found = [memory_input(fragment, "", "") for file in files for fragment in fragments(file)]
    taken = drawn((memory.id for memory in found), _FRAGMENTS)
    return [memory for memory in found if memory.id in taken]


def _documents(model: EmbeddingModel, models_dir: Path, memories: Sequence[memory_pb2.Memory]) -> list[list[str]]:
    """The chunks of each that the service embeds."""
    with closing(models.open_embedder(model, models_dir)) as embedder:
        lessons = [
            learn_command(pb.LearnRequest(project=_PROJECT, memories=[memory])).lessons[0] for memory in memories
        ]
        return [embedder.split(*template.embedded(lesson.draft.index, lesson.draft.payload)) for lesson in lessons]


def _alone_s(model: EmbeddingModel, models_dir: Path, documents: Sequence[Sequence[str]]) -> float:
    alone = ModelAlone(model, models_dir)
    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        started_s = time.perf_counter()
        for _ in threads.map(alone.run_document, documents):
            pass
        return time.perf_counter() - started_s


def _learnt_s(model: EmbeddingModel, options: Options, memories: Sequence[memory_pb2.Memory]) -> float:
    starts = range(0, len(memories), BATCH_MEMORIES)
    batches = [(_PROJECT, list(memories[start : start + BATCH_MEMORIES])) for start in starts]
    with (
        TemporaryDirectory(prefix="embedding-", dir=options.stores.directory) as directory,
        Bench.with_model(Path(directory), model.name, options.models_dir).serving() as service,
    ):
        started_s = time.perf_counter()
        learn_all(service, batches, len(memories), EMBEDDING)
        return time.perf_counter() - started_s


class ModelAlone:
    """A model without Hummock, or both of a pair one after the other: texts in, hidden states out, nothing done."""

    def __init__(self, model: EmbeddingModel, models_dir: Path) -> None:
        self._model = model
        self._sessions = [TextSession(part, models_dir / part.name) for part in model.parts]

    def run_document(self, chunks: Sequence[str]) -> None:
        """Tokenises and infers what each model reads of a stored text."""
        for place, chunk in enumerate(chunks):
            whole = self._whole_readers(chunk)
            for session, reads_whole in zip(self._sessions, whole, strict=True):
                if reads_whole:
                    session.run(chunk)
                elif place == 0 and isinstance(self._model, PairDescription):
                    session.run(chunk, BEGINNING_TOKENS)

    def run_query(self, text: str) -> None:
        """Tokenises and infers a query with each model and its prefix; a model of a pair with weight 0 is skipped."""
        asks = [weight > 0 for weight in weights(self._model, text)] if isinstance(self._model, PairDescription) else ()
        for session, is_asked in zip(self._sessions, asks or self._whole_readers(text), strict=True):
            if is_asked:
                session.run(session.query_prefix + text)

    def _whole_readers(self, text: str) -> tuple[bool, ...]:
        """Which of the models read all of a stored text."""
        match self._model:
            case PairDescription():
                return whole_readers(text)
            case TrioDescription():
                is_chinese = han_share(text) >= MOSTLY
                return is_chinese, not is_chinese, True
            case _:
                return (True,)

    def cut(self, text: str, tokens: int) -> str | None:
        """The beginning of a text that has so many tokens (the first model's) of its own; None where it has fewer."""
        return self._sessions[0].cut(text, tokens)


class TextSession:
    """The tokenizer and the graph of one model."""

    def __init__(self, model: ModelDescription, directory: Path) -> None:
        self.query_prefix = model.query_prefix
        self._tokenizer = tokenizer_of(model, directory)
        self._max_tokens = model.max_tokens
        self._session = open_session(served(model, directory).path)
        self._inputs = {node.name for node in self._session.get_inputs()}
        by_graph = ["sentence_embedding"] if model.pooling is Pooling.GRAPH else []
        self._outputs = [*by_graph, *([model.hidden_output] if model.hidden_output else [])]

    def run(self, text: str, most_tokens: int | None = None) -> None:
        """Tokenises and infers, of a long text the beginning."""
        ids = self._tokenizer.encode(text).ids[np.newaxis, : min(most_tokens or self._max_tokens, self._max_tokens)]
        offered = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        self._session.run(self._outputs, {name: value for name, value in offered.items() if name in self._inputs})

    def cut(self, text: str, tokens: int) -> str | None:
        """The beginning of a text that has so many tokens of its own; None where it has fewer."""
        offsets, _ = self._tokenizer.places(text)
        return text[: offsets[tokens - 1][1]] if len(offsets) >= tokens else None
