"""What the use cases need from the outside: a store, models, a clock."""

from __future__ import annotations

from hummock.ports.clock import Clock
from hummock.ports.learner import EntryText, KeywordLearner, KeywordQuestion, LearnerFailed
from hummock.ports.learning import FindReferences, LearningReader, LearningRows, LearningUnit, LearningView
from hummock.ports.llm import Llm, LlmFailed, LlmLate, LlmLeftAlone, LlmQuestion, LlmUsage
from hummock.ports.models import Embedder, EmbeddingLate, Pair, Reranker
from hummock.ports.sessions import Sessions, SessionWork
from hummock.ports.store import (
    Beside,
    Generation,
    Page,
    Recallable,
    Reply,
    Store,
    TextKey,
    UnitOfWork,
    WriteRequest,
    Written,
)

__all__ = [
    "Beside",
    "Clock",
    "Embedder",
    "EmbeddingLate",
    "EntryText",
    "FindReferences",
    "Generation",
    "KeywordLearner",
    "KeywordQuestion",
    "LearnerFailed",
    "LearningReader",
    "LearningRows",
    "LearningUnit",
    "LearningView",
    "Llm",
    "LlmFailed",
    "LlmLate",
    "LlmLeftAlone",
    "LlmQuestion",
    "LlmUsage",
    "Page",
    "Pair",
    "Recallable",
    "Reply",
    "Reranker",
    "SessionWork",
    "Sessions",
    "Store",
    "TextKey",
    "UnitOfWork",
    "WriteRequest",
    "Written",
]
