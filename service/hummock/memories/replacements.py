"""Replacements: notes that probably replace older ones, found when somebody reviews them, and the decisions on them.

Nothing is stored until a person decides. Approved, the newer note names the older one in `supersedes`; rejected, in
`distinct_from`, so that nobody is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from hummock.core.deadline import Deadline
from hummock.core.embedding import Embedding
from hummock.core.errors import InvalidRequest
from hummock.core.memory import Draft, Memory
from hummock.memories.preparation import Preparation, Prepared, make_memory
from hummock.ports.store import Alike, Change, Snapshot, Store
from hummock.ports.writes import UnitOfWork
from hummock.recall.prefer import LATER_S
from hummock.text.replaces import replaced_by_words
from hummock.text.template import as_draft

NEAREST: Final = 8
"""Older notes that are compared by words with one that tells a change."""

CHANGES_AT_ONCE: Final = 64
"""Notes that tell a change, of one page. Each costs as much as the vector path of a recall."""

_MOST_IDS: Final = 64
"""Ids of `supersedes` and of `distinct_from`, as in the contract."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A note that probably replaces an older one: the clause that says so, and the cosine of both."""

    newer: Memory
    older: Memory
    evidence: str
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementPage:
    """Replacements in the order of the newer notes; `next_after` continues after them, None on the last page."""

    replacements: tuple[Replacement, ...]
    next_after: int | None


Pairs = Sequence[tuple[str, str]]
"""Ids of newer notes, each with that of an older one."""


class Replacements:
    """Proposes replacements and prepares decisions on them. Safe to call from several threads."""

    def __init__(self, store: Store, preparation: Preparation) -> None:
        self._store = store
        self._preparation = preparation

    def page(self, project: str, after: int, limit: int, deadline: Deadline) -> ReplacementPage:
        """The replacements among the next notes that tell a change, at most `limit`, after position `after`.

        Raises: DeadlinePassed.
        """
        one_thing = self._preparation.calibration.one_thing
        alike = Alike(least_cosine=one_thing, least_age_s=LATER_S, count=NEAREST)

        def propose(snapshot: Snapshot) -> ReplacementPage:
            page = snapshot.changes(after, min(limit, CHANGES_AT_ONCE), alike)
            deadline.check()
            found = (_proposed(snapshot, change) for change in page.changes)
            return ReplacementPage(replacements=tuple(one for one in found if one), next_after=page.next_after)

        return self._store.read(project, propose)

    def decision(self, project: str, pairs: Pairs, *, replaces: bool) -> Decision:
        """Prepare a decision on pairs of a newer and an older id. Raises: InvalidRequest: too many for a note."""
        older = self._store.get(project, [older for _, older in pairs], 0, full=False)
        wanted: dict[str, list[str]] = {}
        for (newer_id, older_id), memory in zip(pairs, older, strict=True):
            if memory is not None and newer_id != older_id:
                wanted.setdefault(newer_id, []).append(older_id)
        if not wanted:
            return Decision(pairs=pairs, ready=())
        before = [memory for memory in self._store.get(project, list(wanted), 0, full=True) if memory is not None]
        drafts = [_changed(as_draft(memory), wanted[memory.id], replaces=replaces) for memory in before]
        prepared = self._preparation.prepare(project, drafts, self._store.settings(project))
        ready = zip(before, prepared, self._preparation.embed(prepared), strict=True)
        return Decision(pairs=pairs, ready=tuple(ready), wanted=wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision on pairs, prepared: `wanted` are the older ids of each newer one that are there."""

    pairs: Pairs
    ready: Sequence[tuple[Memory, Prepared, tuple[Embedding, ...]]]
    wanted: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def apply(self, work: UnitOfWork, now: float) -> tuple[int, tuple[str, ...]]:
        """Store it within a write: how many pairs, and newer ids of those that are gone or were changed meanwhile."""
        done: set[tuple[str, str]] = set()
        for before, one, vectors in self.ready:
            if work.get(before.id) == before:
                made = make_memory(one, before, chunk_count=len(vectors), now=now)
                stored = replace(made, distinct_from=one.draft.distinct_from)
                work.put(stored, one.key, one.words.analysed().terms, vectors)
                done.update((before.id, older) for older in self.wanted[before.id])
        return len(done), tuple(dict.fromkeys(newer for newer, older in self.pairs if (newer, older) not in done))


def _changed(draft: Draft, older: Sequence[str], *, replaces: bool) -> Draft:
    """The newer note with older ids added to what it replaces, or to what it does not."""
    replaced = [one for one in draft.supersedes if replaces or one not in older]
    kept = [one for one in draft.distinct_from if not replaces or one not in older]
    (replaced if replaces else kept).extend(older)
    if len(set(replaced)) > _MOST_IDS or len(set(kept)) > _MOST_IDS:
        raise InvalidRequest("replacements", f"name more than {_MOST_IDS} older memories for {draft.id}")
    return replace(draft, supersedes=tuple(dict.fromkeys(replaced)), distinct_from=tuple(dict.fromkeys(kept)))


def _proposed(snapshot: Snapshot, change: Change) -> Replacement | None:
    """What a note most likely replaces; None if nothing does, or if it could be one of several."""
    (newer,), older = snapshot.load([change.doc], full=True), snapshot.load([*change.older], full=True)
    if newer is None:
        return None
    told = [
        Replacement(newer=newer, older=memory, evidence=evidence, similarity=similarity)
        for memory, similarity in zip(older, change.older.values(), strict=True)
        if memory is not None and memory.id not in newer.distinct_from and (evidence := _evidence(newer, memory))
    ]
    return told[0] if len(told) == 1 else None


def _evidence(newer: Memory, older: Memory) -> str:
    """The clause by which a note replaces an older one of the same scope; empty if none does."""
    if newer.payload is None or older.payload is None or newer.metadata != older.metadata:
        return ""
    return replaced_by_words(newer.payload.content, older.payload.content)
