"""Filled stores for the benches, made once and kept: the same corpus in the same format is not learnt again.

They lie in `.bench/`, each with a name that holds a hash of all that decides its content. Whoever measures writes takes
a copy.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split

from bench import corpus as bench_corpus
from bench.corpus import TAG_SHARES, TAGS, Batch, Corpus, Space, place_of
from bench.service import Bench, BenchFailed, Serving, say
from bench.toy_models import write_description
from hummock.core.embedding import Calibration
from hummock.models import EmbeddingModel, ModelDescription
from hummock.models.description import GRAPH_FILE, TOKENIZER_FILE, ModelFile, Pooling, read_description
from hummock.models.files import sha256_of
from hummock.models.space import space_of
from hummock.store.tables import keys, record_codec
from hummock.store.tables.record_codec import SCHEMA
from hummock.text.analyzer import ANALYZER_VERSION
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1.context_service_pb2_grpc import ContextServiceStub

DIM = 384
SEED = 7420
BATCH_MEMORIES = 64
_READY, _VECTORS, _TAGS = "ready", "vectors.npy", "tags.npz"
_PROGRESS_S = 10.0
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_UNKNOWN = "[UNK]"
_OPSET, _IR_VERSION = 17, 10
_DECIDING = tuple(Path(str(module.__file__)) for module in (bench_corpus, record_codec, keys))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Numbers of memories and projects; memories with the tag `embedded` are sent without a vector."""

    name: str
    memories: int
    projects: int
    embedded: str = ""

    def corpus(self, space: Space | None) -> Corpus:
        """Memories to learn."""
        return Corpus(size=self.memories, seed=SEED, projects=self.projects, space=space)


A = Setting(name="A", memories=100_000, projects=16)
B = Setting(name="B", memories=100_000, projects=1)
ONE_OF_A = Setting(name="one-of-A", memories=A.memories // A.projects, projects=1, embedded="quarter")
"""A store as large as one project of A; memories that A's recalls filter for have vectors of a real model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A store that holds a setting. `reused` tells whether an earlier run had learnt it."""

    setting: Setting
    bench: Bench
    corpus: Corpus
    reused: bool

    def vectors(self) -> NDArray[np.float32]:
        """(memories, dim) as they were sent, by the memories' places in the corpus; read from the disk as needed."""
        vectors: NDArray[np.float32] = np.load(self.bench.directory / _VECTORS, mmap_mode="r")
        return vectors

    def tagged(self) -> dict[str, NDArray[np.bool_]]:
        """Masks by tag, (memories,): true where the memory has the tag."""
        with np.load(self.bench.directory / _TAGS) as saved:
            return dict(saved)

    @contextmanager
    def copied(self) -> Iterator[Filled]:
        """A copy on the same disk, to be written to; gone afterwards."""
        with TemporaryDirectory(prefix="copy-", dir=self.bench.directory.parent) as directory:
            bench = Bench.with_model(Path(directory), self.bench.model, self.bench.settings().models_dir)
            shutil.copytree(self.bench.data_dir, bench.data_dir)
            os.sync()  # otherwise the first writes wait for the copy to reach the disk
            yield Filled(setting=self.setting, bench=bench, corpus=self.corpus, reused=self.reused)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """The folder of filled stores."""

    directory: Path

    def filled(self, setting: Setting) -> Filled:
        """The store of a setting with a stub for the model; learnt now unless it is there. Raises: BenchFailed."""
        models_dir = self.directory.absolute() / "models"
        return self.filled_with(setting, build_stub(models_dir, DIM), models_dir)

    def filled_with(self, setting: Setting, model: EmbeddingModel, models_dir: Path) -> Filled:
        """Fills a store like `filled`, with another model, or two as one, found in `models_dir`."""
        folder = self.directory.absolute()
        space_id = space_of(model).id
        corpus = setting.corpus(Space.seeded(space_id, model.dim, SEED))
        stem = f"{setting.name}-{setting.memories}-{setting.projects}-{model.dim}"
        directory = folder / f"{stem}-{_key(space_id)}"
        reused = (directory / _READY).exists()
        if not reused:
            for old in folder.glob(f"{stem}-*"):
                shutil.rmtree(old)
            directory.mkdir(parents=True)
        bench = Bench.with_model(directory, model.name, models_dir)
        if reused:
            say(f"setting {setting.name}: {setting.memories} memories of an earlier run, as the same code makes them")
        else:
            _fill(bench, setting, corpus, model.dim)
        return Filled(setting=setting, bench=bench, corpus=corpus, reused=reused)


def learn_all(service: Serving, batches: Iterable[Batch], count: int, name: str) -> None:
    """Sends batches of `count` memories through one LearnStream.

    Raises: BenchFailed: a batch was refused, or not all is new.
    """
    started_s = said_s = time.perf_counter()
    created = 0
    requests = (
        pb.LearnStreamRequest(
            learn=pb.LearnRequest(project=project, memories=memories, embedding=pb.EMBEDDING_MODE_INLINE)
        )
        for project, memories in batches
    )
    for reply in ContextServiceStub(service.channel).LearnStream(requests):
        if reply.WhichOneof("outcome") == "failed":
            raise BenchFailed(f"a batch was refused: {reply.failed.field}: {reply.failed.message}")
        created += sum(result.status == pb.LEARN_STATUS_CREATED for result in reply.learnt.results)
        if time.perf_counter() - said_s > _PROGRESS_S:
            said_s = time.perf_counter()
            say(f"setting {name}: {created} of {count} memories learnt")
    if created != count:
        raise BenchFailed(f"{created} of {count} memories were created; the rest were taken for duplicates")
    seconds = time.perf_counter() - started_s
    say(f"setting {name}: {created} memories learnt in {seconds:.0f} s, making them up included")


def _fill(bench: Bench, setting: Setting, corpus: Corpus, dim: int) -> None:
    vectors = open_memmap(bench.directory / _VECTORS, "w+", np.float32, (corpus.size, dim))
    tagged = {tag: np.zeros(corpus.size, np.bool_) for tag in (*TAGS, *TAG_SHARES)}
    batches = _noted(corpus.batches(BATCH_MEMORIES), vectors, tagged, setting.embedded)
    with bench.serving() as service:
        learn_all(service, batches, corpus.size, setting.name)
    vectors.flush()
    with (bench.directory / _TAGS).open("wb") as file:
        np.savez(file, allow_pickle=False, **tagged)
    # Written last: a store without it was not finished.
    (bench.directory / _READY).touch()


def _noted(
    batches: Iterable[Batch], vectors: NDArray[np.float32], tagged: Mapping[str, NDArray[np.bool_]], embedded: str
) -> Iterator[Batch]:
    """The batches, whose vectors and tags are written down on their way, without the vectors of a tag's memories."""
    for project, memories in batches:
        for memory in memories:
            place = place_of(memory.id)
            vectors[place] = np.frombuffer(memory.vector.values, "<f4")
            for tag in memory.tags:
                tagged[tag][place] = True
            if embedded in memory.tags:
                memory.ClearField("vector")
        yield project, memories


def _key(space_id: str) -> str:
    """Hash of everything that decides a store's content: corpus, vector space, form of records and terms."""
    parts = (*(path.read_bytes() for path in _DECIDING), space_id.encode(), f"{SCHEMA} {ANALYZER_VERSION}".encode())
    return blake2b(b"\0".join(parts), digest_size=6).hexdigest()


def build_stub(models_dir: Path, dim: int) -> ModelDescription:
    """A model that costs nothing in `<models_dir>/stub-<dim>`, built unless it is there; the same on every run.

    The service needs a model to start. This one is a table of random vectors, one a letter, so that neither its start
    nor its memory hides the service's own.
    """
    name = f"stub-{dim}"
    directory = models_dir / name
    there = read_description(models_dir, name)
    if isinstance(there, ModelDescription):
        return there
    directory.mkdir(parents=True, exist_ok=True)
    vocabulary = {token: number for number, token in enumerate((_UNKNOWN, *_LETTERS))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=_UNKNOWN))
    tokenizer.pre_tokenizer = Split(Regex("."), "isolated")
    tokenizer.save(str(directory / TOKENIZER_FILE))
    _write_graph(directory / GRAPH_FILE, len(vocabulary), dim)
    files = (GRAPH_FILE, TOKENIZER_FILE)
    model = ModelDescription(
        name=name,
        licence="Apache-2.0",
        files=tuple(ModelFile(name=file, sha256=sha256_of(directory / file)) for file in files),
        sources=(),
        pooling=Pooling.MEAN,
        dim=dim,
        max_tokens=128,
        query_prefix="",
        scripts=frozenset({"han", "latin"}),
        calibration=Calibration(unrelated_latin=0.0, unrelated_han=0.0, near_twin_bar=0.9),
    )
    write_description(model, directory)
    return model


def _write_graph(path: Path, vocabulary_size: int, dim: int) -> None:
    import onnx

    table = np.random.default_rng(SEED).standard_normal((vocabulary_size, dim)).astype(np.float32)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "stub",
        [onnx.helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, ["batch", "tokens"])],
        [onnx.helper.make_tensor_value_info("last_hidden_state", onnx.TensorProto.FLOAT, ["batch", "tokens", dim])],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
    onnx.save_model(model, str(path))
