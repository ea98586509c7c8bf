"""LanceDB in process: its own filter before its hybrid search, joined by its RRF reranker; MMR in NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as arrow
from lancedb.rerankers import RRFReranker

from bench.peers.work import CANDIDATES, RRF_K, Memory, Question, Search, different, run

_TABLE = "memories"


def store(memories: Sequence[Memory], directory: Path) -> None:
    """A table with indexes for project, tags and words. Vectors have none: a filter leaves few, which are scanned."""
    columns = {
        "place": [memory.place for memory in memories],
        "project": [memory.project for memory in memories],
        "tags": [list(memory.tags) for memory in memories],
        "text": [memory.text for memory in memories],
        "terms": [memory.terms for memory in memories],
    }
    vectors = np.stack([memory.vector for memory in memories])
    vector = arrow.FixedSizeListArray.from_arrays(arrow.array(vectors.reshape(-1)), vectors.shape[1])
    table = lancedb.connect(str(directory)).create_table(_TABLE, arrow.table({**columns, "vector": vector}))
    table.create_scalar_index("project", index_type="BITMAP")
    table.create_scalar_index("tags", index_type="LABEL_LIST")
    # The terms come cut: nothing is to be stemmed, folded or left out.
    table.create_fts_index(
        "terms", base_tokenizer="whitespace", stem=False, remove_stop_words=False, ascii_folding=False, lower_case=False
    )
    table.optimize()


@contextmanager
def opened(directory: Path) -> Iterator[Search]:
    """One hybrid query a search; texts and vectors come with it."""
    table = lancedb.connect(str(directory)).open_table(_TABLE)
    reranker = RRFReranker(RRF_K)

    def search(question: Question) -> list[str]:
        found = (
            table.search(query_type="hybrid")
            .vector(question.vector)
            .text(question.terms)
            .where(f"project = '{question.project}' AND array_has(tags, '{question.tag}')", prefilter=True)
            .rerank(reranker)
            .limit(CANDIDATES)
            .select(["text", "vector"])
            .to_arrow()
        )
        vectors = found["vector"].combine_chunks().flatten().to_numpy().reshape(len(found), -1)
        texts = found["text"]
        return [texts[row].as_py() for row in different(question.vector, vectors)]

    yield search


if __name__ == "__main__":
    run("lancedb", store, opened)
