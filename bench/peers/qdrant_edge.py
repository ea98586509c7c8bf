"""Qdrant Edge in process: dense and sparse vectors, its own filter, fusion and MMR, in one native query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import qdrant_edge as qdrant

from bench.peers.work import CANDIDATES, HITS, RELEVANCE_WEIGHT, RRF_K, Memory, Question, Search, run

_BATCH = 1000


# The terms come cut: nothing is to be stemmed, folded or left out.
_BM25 = qdrant.Bm25(
    qdrant.Bm25Config(
        tokenizer=qdrant.TokenizerType.Whitespace, stemmer=qdrant.DisabledStemmer(), stopwords=qdrant.StopwordsSet()
    )
)


def store(memories: Sequence[Memory], directory: Path) -> None:
    """A shard with keyword indexes on project and tags, optimised until nothing is left to do."""
    size = len(memories[0].vector)
    shard = qdrant.EdgeShard.create(
        str(directory),
        qdrant.EdgeConfig(
            vectors={"dense": qdrant.EdgeVectorParams(size=size, distance=qdrant.Distance.Cosine)},
            sparse_vectors={"words": qdrant.EdgeSparseVectorParams(modifier=qdrant.Modifier.Idf)},
        ),
    )
    tenant = qdrant.KeywordIndexParams(is_tenant=True)
    shard.update(qdrant.UpdateOperation.create_field_index("project", tenant))
    shard.update(qdrant.UpdateOperation.create_field_index("tags", qdrant.PayloadSchemaType.Keyword))
    for start in range(0, len(memories), _BATCH):
        points = [_point(memory) for memory in memories[start : start + _BATCH]]
        shard.update(qdrant.UpdateOperation.upsert_points(points))
    while shard.optimize():
        pass
    shard.flush()
    shard.close()


@contextmanager
def opened(directory: Path) -> Iterator[Search]:
    """Two prefetches, their fusion, MMR and the payloads, as one query of the shard."""
    shard = qdrant.EdgeShard.load(str(directory))

    def search(question: Question) -> list[str]:
        vector = question.vector.tolist()
        tagged = [_equals("tags", question.tag)] if question.tag else []
        where = qdrant.Filter(must=[_equals("project", question.project), *tagged])
        found = [
            qdrant.Prefetch(limit=CANDIDATES, query=query, filter=where)
            for query in (
                qdrant.Query.Nearest(vector, using="dense"),
                qdrant.Query.Nearest(_BM25.embed_query(question.terms), using="words"),
            )
        ]
        both = qdrant.Prefetch(limit=CANDIDATES, query=qdrant.Fusion.Rrf(k=RRF_K), prefetches=found)
        mmr = qdrant.Mmr(vector, RELEVANCE_WEIGHT, CANDIDATES, using="dense")
        request = qdrant.QueryRequest(limit=HITS, query=mmr, prefetches=[both], with_payload=True)
        return [point.payload["text"] for point in shard.query(request)]

    yield search
    shard.close()


def _point(memory: Memory) -> qdrant.Point:
    return qdrant.Point(
        memory.place,
        {"dense": memory.vector.tolist(), "words": _BM25.embed_document(memory.terms)},
        {"project": memory.project, "tags": list(memory.tags), "text": memory.text},
    )


def _equals(field: str, value: str) -> qdrant.FieldCondition:
    return qdrant.FieldCondition(key=field, match=qdrant.MatchValue(value=value))


if __name__ == "__main__":
    run("qdrant-edge-py", store, opened)
