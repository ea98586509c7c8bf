"""Filled stores for the benches, made once and kept: the same corpus in the same format is not learnt again.

They lie in `.bench/`, each with a name that holds a hash of all that decides its content. Whoever measures writes takes
a copy.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import corpus as bench_corpus
from bench import words
from bench.corpus import Corpus, Space
from bench.service import Bench, BenchFailed, Serving
from bench.stub_model import build_stub
from hummock.models.basis import load_basis
from hummock.models.space import embedding_space
from hummock.store import codec, keys
from hummock.store.codec import SCHEMA
from hummock.text.analyzer import ANALYZER_VERSION
from hummock.v1 import context_service_pb2 as pb
from hummock.v1.context_service_pb2_grpc import ContextServiceStub

DIM = 384
SEED = 7420
BATCH_MEMORIES = 64
_READY = "ready"
_PROGRESS_S = 10.0
_DECIDING = tuple(Path(str(module.__file__)) for module in (bench_corpus, words, codec, keys))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How many memories in how many projects."""

    name: str
    memories: int
    projects: int

    def corpus(self, space: Space | None) -> Corpus:
        """What is learnt."""
        return Corpus(size=self.memories, seed=SEED, projects=self.projects, space=space)


A = Setting(name="A", memories=100_000, projects=16)
B = Setting(name="B", memories=100_000, projects=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A store that holds a setting. `reused` tells whether an earlier run had learnt it."""

    setting: Setting
    bench: Bench
    corpus: Corpus
    reused: bool

    @contextmanager
    def copied(self) -> Iterator[Filled]:
        """A copy on the same disk, to be written to; gone afterwards."""
        with TemporaryDirectory(prefix="copy-", dir=self.bench.directory.parent) as directory:
            bench = Bench.with_model(Path(directory), self.bench.model, self.bench.settings().models_dir)
            shutil.copytree(self.bench.data_dir, bench.data_dir)
            yield Filled(setting=self.setting, bench=bench, corpus=self.corpus, reused=self.reused)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """The folder of filled stores."""

    directory: Path

    def filled(self, setting: Setting) -> Filled:
        """The store of a setting; learnt now unless it is there. Raises: BenchFailed."""
        folder = self.directory.absolute()
        model = build_stub(folder / "models", DIM)
        space_id = embedding_space(model, load_basis(model.basis, model.dim)).id
        corpus = setting.corpus(Space.seeded(space_id, DIM, SEED))
        stem = f"{setting.name}-{setting.memories}-{setting.projects}-{DIM}"
        directory = folder / f"{stem}-{_key(space_id)}"
        reused = (directory / _READY).exists()
        if not reused:
            for old in folder.glob(f"{stem}-*"):
                shutil.rmtree(old)
            directory.mkdir(parents=True)
        bench = Bench.with_model(directory, model.name, folder / "models")
        if reused:
            say(f"setting {setting.name}: {setting.memories} memories of an earlier run, as the same code makes them")
        else:
            _fill(bench, corpus, setting.name)
        return Filled(setting=setting, bench=bench, corpus=corpus, reused=reused)


def say(line: str) -> None:
    """A line of progress, for people."""
    print(line, file=sys.stderr, flush=True)


def learn_all(service: Serving, corpus: Corpus, name: str) -> None:
    """Sends the whole corpus through one LearnStream. Raises: BenchFailed: a batch was refused, or not all is new."""
    started_s = said_s = time.perf_counter()
    created = 0
    requests = (
        pb.LearnStreamRequest(batch=pb.LearnRequest(project=project, memories=memories))
        for project, memories in corpus.batches(BATCH_MEMORIES)
    )
    for reply in ContextServiceStub(service.channel).LearnStream(requests):
        if reply.WhichOneof("outcome") == "failed":
            raise BenchFailed(f"a batch was refused: {reply.failed.field}: {reply.failed.message}")
        created += sum(result.status == pb.LEARN_STATUS_CREATED for result in reply.stored.results)
        if time.perf_counter() - said_s > _PROGRESS_S:
            said_s = time.perf_counter()
            say(f"setting {name}: {created} of {corpus.size} memories learnt")
    if created != corpus.size:
        raise BenchFailed(f"{created} of {corpus.size} memories were created; the rest were taken for duplicates")
    seconds = time.perf_counter() - started_s
    say(f"setting {name}: {created} memories learnt in {seconds:.0f} s, making them up included")


def _fill(bench: Bench, corpus: Corpus, name: str) -> None:
    with bench.serving() as service:
        learn_all(service, corpus, name)
    # Written last: a store without it was not finished.
    (bench.directory / _READY).touch()


def _key(space_id: str) -> str:
    """Of all that decides a store's content: the corpus, the space of its vectors, the form of records and terms."""
    parts = (*(path.read_bytes() for path in _DECIDING), space_id.encode(), f"{SCHEMA} {ANALYZER_VERSION}".encode())
    return blake2b(b"\0".join(parts), digest_size=6).hexdigest()
