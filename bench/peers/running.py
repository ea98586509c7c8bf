"""Runs a peer in the environment that `make bench-peers` makes, away from Hummock's packages, on plain files."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from bench.asking import TAG, recall_requests
from bench.corpus import place_of
from bench.service import say
from bench.stores import Filled
from hummock.text.analyzer import document_terms, query_terms
from hummock_client.v1 import memory_pb2 as pb

_ROOT = Path(__file__).parents[2]
_LIMIT_S = 3600.0
_QUESTIONS = 550
_BATCH_MEMORIES = 1000
_READY = "ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A store that Hummock is compared with: its module in this folder, and what has to be importable.

    `where` is where it runs, seen from who asks.
    """

    name: str
    module: str
    package: str
    where: str = "in process"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One client's searches, one after the other; `stored_s` is what storing and indexing took."""

    package: str
    version: str
    memories: int
    stored_s: float
    calls: int
    p50_ms: float
    p99_ms: float

    def line(self) -> str:
        """A line for people."""
        return (
            f"p50 {self.p50_ms:.2f}, p99 {self.p99_ms:.2f} ms ({self.calls} calls); "
            f"{self.memories} memories stored and indexed in {self.stored_s:.0f} s"
        )


QDRANT_EDGE = Peer(name="qdrant-edge-py", module="qdrant_edge", package="qdrant_edge")
SQLITE_VEC = Peer(name="sqlite-vec + FTS5", module="sqlite_vec", package="sqlite_vec")
LANCE_DB = Peer(name="LanceDB", module="lance_db", package="lancedb")
ZVEC = Peer(name="Zvec", module="zvec_collection", package="zvec")
CHROMA = Peer(name="Chroma server", module="chroma_server", package="chromadb", where="over HTTP")
MEM0 = Peer(name="mem0", module="mem0_memory", package="mem0")


def run_peer(peer: Peer, filled: Filled, memories: int, stores: Path, tag: str = TAG) -> Result | str:
    """Result of the peer with the first so many memories of a setting, or the reason why there is none.

    Args:
        peer: The peer to run.
        filled: The setting.
        memories: Number of its memories to take.
        stores: Directory that may hold the peers' environment.
        tag: Tag of the answers; empty admits all memories, which is asked of Qdrant Edge alone.
    """
    python = _python(peer, stores)
    if python is None:
        return f"{peer.name} is not installed; `make bench-peers` installs it"
    data = _write_data(filled, memories)
    say(f"{peer.name}: {memories} memories")
    command = [str(python), "-m", f"bench.peers.{peer.module}", str(data), tag]
    try:
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"{peer.name} was not done after {_LIMIT_S:.0f} s"
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        return f"{peer.name} failed: {''.join(last)}"
    return Result(**json.loads(done.stdout.splitlines()[-1]))


def _python(peer: Peer, stores: Path) -> Path | None:
    """An interpreter that has the peer: that of the peers' environment, else this one; None where neither does."""
    python = stores / "peers" / "bin" / "python"
    if python.exists():
        look = [str(python), "-c", f"import {peer.package}"]
        return python if subprocess.run(look, capture_output=True).returncode == 0 else None
    return Path(sys.executable) if find_spec(peer.package) else None


def _write_data(filled: Filled, memories: int) -> Path:
    """A folder alongside the store with the first so many memories, and questions; written once."""
    folder = filled.bench.directory / f"peers-{memories}"
    if (folder / _READY).exists():
        return folder
    folder.mkdir(exist_ok=True)
    corpus = filled.corpus
    with (folder / "memories.jsonl").open("w", encoding="utf-8") as file:
        for project, batch in corpus.batches(_BATCH_MEMORIES):
            for memory in batch:
                if (place := place_of(memory.id)) < memories:
                    text = _text(memory)
                    line = {
                        "place": place,
                        "project": project,
                        "tags": list(memory.tags),
                        "text": text,
                        "terms": " ".join(document_terms(text)),
                    }
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
    np.save(folder / "vectors.npy", filled.vectors()[:memories])
    requests = recall_requests(corpus, range(_QUESTIONS), TAG)
    with (folder / "questions.jsonl").open("w", encoding="utf-8") as file:
        for request in requests:
            line = {"project": request.project, "terms": " ".join(query_terms(request.query_text))}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    vectors = [np.frombuffer(request.query_vector.values, "<f4") for request in requests]
    np.save(folder / "question-vectors.npy", np.stack(vectors))
    (folder / _READY).touch()
    return folder


def _text(memory: pb.Memory) -> str:
    """Text of a memory in full, which no other memory has."""
    match memory.WhichOneof("detail"):
        case "learning_record":
            return f"{memory.learning_record.question}\n{memory.learning_record.answer}"
        case "domain_knowledge":
            return f"{memory.domain_knowledge.domain}\n{memory.domain_knowledge.summary}"
    return memory.content
