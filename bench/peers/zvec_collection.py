"""Zvec in process: its own filter in a query by vector and one by words, joined by its RRF reranker; MMR in NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import zvec

from bench.peers.work import CANDIDATES, RRF_K, Memory, Question, Search, different, run

_BATCH = 1000


def store(memories: Sequence[Memory], directory: Path) -> None:
    """A collection with inverted indexes for project, tags and words. Vectors are scanned: a filter leaves few."""
    # The terms come cut: nothing is to be stemmed, folded or left out.
    words = zvec.FtsIndexParam(tokenizer_name="whitespace", filters=[])
    text = zvec.DataType.STRING
    schema = zvec.CollectionSchema(
        "memories",
        fields=[
            zvec.FieldSchema("project", text, index_param=zvec.InvertIndexParam()),
            zvec.FieldSchema("tags", zvec.DataType.ARRAY_STRING, index_param=zvec.InvertIndexParam()),
            zvec.FieldSchema("text", text),
            zvec.FieldSchema("terms", text, index_param=words),
        ],
        vectors=zvec.VectorSchema(
            "vector",
            zvec.DataType.VECTOR_FP32,
            len(memories[0].vector),
            zvec.FlatIndexParam(metric_type=zvec.MetricType.COSINE),
        ),
    )
    # It makes its folder itself.
    collection = zvec.create_and_open(str(directory / "collection"), schema)
    for start in range(0, len(memories), _BATCH):
        collection.insert([_document(memory) for memory in memories[start : start + _BATCH]])
    collection.optimize()
    collection.flush()
    collection.close()


@contextmanager
def opened(directory: Path) -> Iterator[Search]:
    """One query of both kinds, then one look-up of the texts and vectors of what it found."""
    collection = zvec.open(str(directory / "collection"))
    reranker = zvec.RrfReRanker(rank_constant=RRF_K)

    def search(question: Question) -> list[str]:
        tagged = f" AND tags CONTAIN_ALL ('{question.tag}')" if question.tag else ""
        both = [
            zvec.Query("vector", vector=question.vector.tolist()),
            zvec.Query("terms", fts=zvec.Fts(match_string=question.terms)),
        ]
        where = f"project = '{question.project}'{tagged}"
        found = collection.query(both, topk=CANDIDATES, filter=where, reranker=reranker, output_fields=[])
        held = collection.fetch([document.id for document in found], output_fields=["text"])
        documents = [held[document.id] for document in found]
        vectors = np.array([document.vector("vector") for document in documents], np.float32)
        return [documents[row].field("text") for row in different(question.vector, vectors)]

    yield search
    collection.close()


def _document(memory: Memory) -> zvec.Doc:
    fields = {"project": memory.project, "tags": list(memory.tags), "text": memory.text, "terms": memory.terms}
    return zvec.Doc(str(memory.place), fields=fields, vectors={"vector": memory.vector.tolist()})


if __name__ == "__main__":
    run("zvec", store, opened)
