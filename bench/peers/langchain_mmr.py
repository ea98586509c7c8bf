"""langchain-core's maximal marginal relevance: 10 of the 50 nearest memories that pass each question's filter."""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

import numpy as np
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from bench.peers.work import CANDIDATES, HITS, RELEVANCE_WEIGHT, different, read_memories, read_questions

_QUESTIONS = 100


def main() -> None:
    """`python -m bench.peers.langchain_mmr DATA`: microseconds of a call, JSON to stdout."""
    memories = read_memories(Path(sys.argv[1]))
    theirs_s, ours_s, differing = [], [], 0
    for question in read_questions(Path(sys.argv[1]))[:_QUESTIONS]:
        passing = [each for each in memories if each.project == question.project and question.tag in each.tags]
        vectors = np.stack([memory.vector for memory in passing])
        candidates = vectors[np.argsort(-(vectors @ question.vector))[:CANDIDATES]]
        as_lists = candidates.tolist()
        started_s = time.perf_counter()
        theirs = maximal_marginal_relevance(question.vector, as_lists, RELEVANCE_WEIGHT, HITS)
        ended_s = time.perf_counter()
        numpy_only = different(question.vector, candidates)
        ours_s.append(time.perf_counter() - ended_s)
        theirs_s.append(ended_s - started_s)
        differing += theirs != numpy_only
    values = {
        "package": "langchain-core",
        "version": version("langchain-core"),
        "p50_us": 1e6 * median(theirs_s),
        "numpy_p50_us": 1e6 * median(ours_s),
        "differing": differing,
        "questions": _QUESTIONS,
    }
    print(json.dumps(values))


if __name__ == "__main__":
    main()
