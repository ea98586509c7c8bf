"""What the peers are given: the memories and questions of a setting as plain files, read without anything of ours."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from bench.asking import recall_requests
from bench.corpus import place_of
from bench.recall import TAG
from bench.stores import Filled
from hummock.text.analyzer import document_terms, query_terms
from hummock.v1 import memory_pb2 as pb

QUESTIONS = 550
_BATCH = 1000
_READY = "ready"


def write_data(filled: Filled, memories: int) -> Path:
    """A folder beside the store, with the first so many memories; written once."""
    folder = filled.bench.directory / f"peers-{memories}"
    if (folder / _READY).exists():
        return folder
    folder.mkdir(exist_ok=True)
    corpus = filled.corpus
    with (folder / "memories.jsonl").open("w", encoding="utf-8") as file:
        for project, batch in corpus.batches(_BATCH):
            for memory in batch:
                if (place := place_of(memory.id)) < memories:
                    text = _text(memory)
                    line = {
                        "place": place,
                        "project": project,
                        "tags": list(memory.index.tags),
                        "text": text,
                        "terms": " ".join(document_terms(text)),
                    }
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
    np.save(folder / "vectors.npy", filled.vectors()[:memories])
    requests = recall_requests(corpus, range(QUESTIONS), TAG)
    with (folder / "questions.jsonl").open("w", encoding="utf-8") as file:
        for request in requests:
            line = {"project": request.project, "tag": TAG, "terms": " ".join(query_terms(request.query_text))}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    vectors = [np.frombuffer(request.query_vector.values, "<f4") for request in requests]
    np.save(folder / "question-vectors.npy", np.stack(vectors))
    (folder / _READY).touch()
    return folder


def _text(memory: pb.MemoryInput) -> str:
    """All that a memory says, as one text that no other memory has."""
    payload = memory.payload
    match payload.WhichOneof("detail"):
        case "learning_record":
            return f"{payload.learning_record.question}\n{payload.learning_record.answer}"
        case "domain_knowledge":
            return f"{payload.domain_knowledge.domain}\n{payload.domain_knowledge.summary}"
    return payload.content
