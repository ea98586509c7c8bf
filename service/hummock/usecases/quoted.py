"""Whether an answer says anything that no memory says."""

from __future__ import annotations

from collections.abc import Sequence

from hummock.core.candidates import GroupQuery
from hummock.core.memory import DomainKnowledge, Filter, LearningRecord, Memory, Origin
from hummock.ports import Store
from hummock.text.analyzer import query_terms
from hummock.text.quotes import Passage, Sources, passages

MOST_LOOKED_UP = 64
"""Passages that no memory named by the caller holds and that are looked for among all others."""

SAID_ORIGINS = frozenset({Origin.USER_INPUT, Origin.AI_OUTPUT})

_NEAREST = 4
_MOST_TERMS = 32
_MOST_CHARACTERS = 2000


class Quoted:
    """Finds the memories that an answer quotes: those that it used, and those that hold its words."""

    def __init__(self, store: Store) -> None:
        """Args are where memories are."""
        self._store = store

    def __call__(self, project: str, session_id: str, text: str, used_ids: Sequence[str]) -> bool:
        """Whether every sentence and block of code of the text repeats a memory (1.1-14).

        What the session itself has said before is no such memory, unless it was used: who says the same again says it
        again. What is new ends the search, so that an ordinary answer costs one look-up by words.
        """
        said = tuple(passages(text))
        if not said:
            return False
        used = self._store.get(project, used_ids, 0, full=True)
        sources = Sources(part for memory in used for part in _texts(memory))
        unknown = [passage for passage in said if not sources.quote(passage)]
        return len(unknown) <= MOST_LOOKED_UP and all(
            self._is_held(project, session_id, passage, sources) for passage in unknown
        )

    def _is_held(self, project: str, session_id: str, passage: Passage, sources: Sources) -> bool:
        if sources.quote(passage):
            return True  # by a memory that a passage before it has found
        terms = tuple(dict.fromkeys(query_terms(passage.text[:_MOST_CHARACTERS])))[:_MOST_TERMS]
        # Not a recall, which leaves out what was said in just these words.
        queries = [
            GroupQuery(name=name, filter=Filter(origins=origins), terms=terms, pool=_NEAREST)
            for name, origins in (("said", SAID_ORIGINS), ("kept", frozenset(Origin) - SAID_ORIGINS))
        ]
        groups = self._store.candidates(project, queries, 0).groups
        docs = [doc for found in groups for doc in found.doc.tolist()]
        for memory in self._store.load(project, docs, full=True):
            if memory is None or (memory.session_id == session_id and memory.origin in SAID_ORIGINS):
                continue
            for part in _texts(memory):
                sources.add(part)
        return sources.quote(passage)


def _texts(memory: Memory | None) -> tuple[str, ...]:
    """What a memory says, apart from its name."""
    if memory is None or memory.payload is None:
        return ()
    content = memory.payload.content
    match memory.payload.detail:
        case LearningRecord(question=question, answer=answer):
            return question, answer, content
        case DomainKnowledge(summary=summary):
            return summary, content
        case _:
            return memory.index.summary, content
