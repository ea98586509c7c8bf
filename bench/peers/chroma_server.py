"""Chroma's server in a process of its own, over HTTP: its vector search and filter.

It ranks no words: documents that hold one of the question's are fetched through its filter, then ranked and joined
here. MMR in NumPy.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import chromadb
import numpy as np
from chromadb.api import ClientAPI
from chromadb.config import Settings

from bench.peers.work import CANDIDATES, Memory, Question, Search, different, joined, run

_BATCH = 1000
_START_S = 60.0
_COLLECTION = "memories"


@contextmanager
def _served(directory: Path) -> Iterator[ClientAPI]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = str(Path(sys.executable).with_name("chroma"))
    command = [program, "run", "--path", str(directory / "chroma"), "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield _connected(port)
        finally:
            process.terminate()


def _connected(port: int) -> ClientAPI:
    until_s = time.monotonic() + _START_S
    while True:
        try:
            return chromadb.HttpClient(host="127.0.0.1", port=port, settings=Settings(anonymized_telemetry=False))
        except Exception:
            if time.monotonic() > until_s:
                raise
            time.sleep(0.2)


def store(memories: Sequence[Memory], directory: Path) -> None:
    """Words as the document, so that its filter can look for them; the text and each tag as metadata."""
    with _served(directory) as client:
        settings = {"hnsw": {"space": "cosine"}}
        collection = client.create_collection(_COLLECTION, configuration=settings, embedding_function=None)
        for start in range(0, len(memories), _BATCH):
            batch = memories[start : start + _BATCH]
            collection.add(
                ids=[str(memory.place) for memory in batch],
                embeddings=np.stack([memory.vector for memory in batch]),
                documents=[f" {memory.terms} " for memory in batch],
                metadatas=[
                    {"project": memory.project, "text": memory.text, **{f"tag_{tag}": True for tag in memory.tags}}
                    for memory in batch
                ],
            )


@contextmanager
def opened(directory: Path) -> Iterator[Search]:
    """Two requests a search."""
    with _served(directory) as client:
        collection = client.get_collection(_COLLECTION, embedding_function=None)

        def search(question: Question) -> list[str]:
            where = {"$and": [{"project": question.project}, {f"tag_{question.tag}": True}]}
            near = collection.query(
                query_embeddings=[question.vector],
                n_results=CANDIDATES,
                where=where,
                include=["embeddings", "metadatas"],
            )
            terms = [f" {term} " for term in dict.fromkeys(question.terms.split())]
            holds = [{"$contains": term} for term in terms]
            said = collection.get(
                where=where,
                where_document={"$or": holds} if len(holds) > 1 else holds[0],
                limit=CANDIDATES,
                include=["documents", "embeddings", "metadatas"],
            )
            matches = [sum(term in document for term in terms) for document in said["documents"]]
            by_words = sorted(range(len(matches)), key=lambda row: -matches[row])
            held = dict(zip(near["ids"][0], zip(near["embeddings"][0], near["metadatas"][0], strict=True), strict=True))
            held |= dict(zip(said["ids"], zip(said["embeddings"], said["metadatas"], strict=True), strict=True))
            places = joined([int(place) for place in near["ids"][0]], [int(said["ids"][row]) for row in by_words])
            vectors = np.stack([held[str(place)][0] for place in places]).astype(np.float32)
            return [held[str(places[row])][1]["text"] for row in different(question.vector, vectors)]

        yield search


if __name__ == "__main__":
    run("chromadb", store, opened)
