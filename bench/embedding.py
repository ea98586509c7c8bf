"""`python -m bench.embedding`: Learn with the default model beside onnxruntime alone (row 11).

HUMMOCK_SHARED names the folder that holds datasets/cosqa-code.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.alone import ModelAlone
from bench.command import Options, run_part
from bench.model import default_model
from bench.rows import Findings, Row
from bench.service import Bench
from bench.stores import BATCH_MEMORIES, learn_all
from hummock import models
from hummock.models import EmbeddingModel
from hummock.rpc.memory_messages import learn_command
from hummock.text import template
from hummock.v1 import context_service_pb2 as pb
from hummock.v1 import memory_pb2

PART = "embedding"
_TEXTS = 2000
_SHARE = 0.95
_ROUNDS = 2
_PROJECT = "bench"


def measure(options: Options) -> Findings:
    """Row 11, or why it was skipped. Both do the same chunks, on as many threads as there are cores."""
    model = default_model(options.models_dir)
    if model is None:
        return Findings(part=PART, skipped=(f"row 11: no default model is in {options.models_dir}; see `make model`",))
    path = Path(os.environ.get("HUMMOCK_SHARED", "../shared")) / "datasets" / "cosqa-code" / "corpus.jsonl"
    if not path.exists():
        return Findings(part=PART, skipped=(f"row 11: {path} is not there",))
    memories = _memories(path)
    chunks = _chunks(model, options.models_dir, memories)
    alone_per_s, learnt_per_s = [], []
    for _ in range(_ROUNDS):
        alone_per_s.append(len(chunks) / _alone_s(model, options.models_dir, chunks))
        learnt_per_s.append(len(chunks) / _learnt_s(model, options, memories))
    what = f"Learn with {model.name}: chunks a second, of what onnxruntime alone does with the same ones and threads"
    note = f"{len(memories)} cosqa functions, {len(chunks)} chunks; the better of {_ROUNDS} rounds each, in turns"
    return Findings(
        part=PART,
        rows=(Row.at_least(11, what, _SHARE, max(learnt_per_s) / max(alone_per_s), "", note=note),),
        figures=(
            ("onnxruntime alone, chunks/s", ", ".join(f"{each:.0f}" for each in alone_per_s)),
            ("LearnStream, chunks/s", ", ".join(f"{each:.0f}" for each in learnt_per_s)),
        ),
    )


def _memories(path: Path) -> list[memory_pb2.MemoryInput]:
    with path.open(encoding="utf-8") as lines:
        texts = list(dict.fromkeys(json.loads(line)["text"] for line in lines))[:_TEXTS]
    return [
        memory_pb2.MemoryInput(
            kind=memory_pb2.MEMORY_KIND_NOTE, payload=memory_pb2.MemoryPayload(content=f"{text}\n# {place}")
        )
        for place, text in enumerate(texts)
    ]


def _chunks(model: EmbeddingModel, models_dir: Path, memories: Sequence[memory_pb2.MemoryInput]) -> list[str]:
    """The texts that the service embeds for them."""
    with closing(models.open_embedder(model, models_dir)) as embedder:
        lessons = [
            learn_command(pb.LearnRequest(project=_PROJECT, memories=[memory])).lessons[0] for memory in memories
        ]
        return [
            chunk
            for lesson in lessons
            for chunk in embedder.split(*template.embedded(lesson.draft.index, lesson.draft.payload))
        ]


def _alone_s(model: EmbeddingModel, models_dir: Path, chunks: Sequence[str]) -> float:
    alone = ModelAlone(model, models_dir)
    with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
        started_s = time.perf_counter()
        for _ in threads.map(alone.run_document, chunks):
            pass
        return time.perf_counter() - started_s


def _learnt_s(model: EmbeddingModel, options: Options, memories: Sequence[memory_pb2.MemoryInput]) -> float:
    starts = range(0, len(memories), BATCH_MEMORIES)
    batches = [(_PROJECT, list(memories[start : start + BATCH_MEMORIES])) for start in starts]
    with (
        TemporaryDirectory(prefix="embedding-", dir=options.stores.directory) as directory,
        Bench.with_model(Path(directory), model.name, options.models_dir).serving() as service,
    ):
        started_s = time.perf_counter()
        learn_all(service, batches, len(memories), PART)
        return time.perf_counter() - started_s


if __name__ == "__main__":
    run_part(measure, __doc__)
