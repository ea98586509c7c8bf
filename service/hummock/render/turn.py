"""The prompt of a turn: entries are chosen by the user's text and their past use, and the turn is counted once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

from hummock.core.errors import Unavailable
from hummock.core.learning import Entry, Injected, LearningSettings, TurnDecision, Usage
from hummock.core.memory import Memory, MemoryKind
from hummock.core.recall import Degradation, Hit, Intent, NothingKnown, Receipt
from hummock.core.render import RenderCommit, Rendered, Tier
from hummock.learning.inject import ScopeUsage, decide, injected_ids
from hummock.learning.log import KeptUsage, counting
from hummock.learning.references import Entries, ProjectReferences, memories
from hummock.ports.store import Snapshot, Store
from hummock.ports.writes import UnitOfWork, WriteRequest
from hummock.render.section import Selected

_ATTEMPTS = 8
"""Times that a turn is rendered again because learning was switched on or off meanwhile."""

_LEAST_TOKENS = 4
"""Fewest tokens of an entry in any form; it bounds how many entries are read for a budget."""

_MOST_CHARACTERS = 1 << 24
"""Approximate limit on the characters of entries read for a turn, so that long entries cannot fill the memory."""

_MOST_WAITING = 200
"""Rows of the table that a turn is answered with for entries that wait: it is kept with the answer for repeats."""

Load = Callable[[Sequence[str]], Sequence[Memory | None]]
"""Reads memories by id, in order, with their payload; None where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The selected memories to render, and the facts to report about their source.

    `pinned` are in the order of their writes, newest first. `left_out` are memories that are not shown because nothing
    stored answers the query; the text then says so, if `says_so`.
    """

    selected: tuple[Selected, ...]
    seq: int
    pinned: tuple[Memory, ...] = ()
    missing_ids: tuple[str, ...] = ()
    intent: Intent | None = None
    receipt: Receipt | None = None
    degraded: tuple[Degradation, ...] = ()
    nothing_known: NothingKnown | None = None
    left_out: tuple[Selected, ...] = ()
    says_so: bool = False


Write = Callable[[Source, Load], Rendered]
"""Renders the selected memories, without messages; reads anything else with `Load`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A rendering to be counted as a turn.

    Attributes:
        text: The user's text.
        source: The memories selected by the recall.
        hits: Hits of the recall; entries among them that are similar enough count as referred to.
        budget_tokens: Budget of the whole text.
        write: Renders; called again if another turn was counted meanwhile that changes the choice.
    """

    project: str
    commit: RenderCommit
    text: str
    source: Source
    hits: Sequence[Hit]
    budget_tokens: int
    write: Write


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedReply:
    """Reply of a turn, stored for repeats of its request_id; messages are built from it and the request."""

    rendered: Rendered


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A turn that is decided and rendered, but not yet counted.

    Attributes:
        scores: Scores of the entries that the text refers to, the most similar first.
        injected_ids: Ids that `decision` injects; those that `rendered` does not show were dropped.
        usage: The scope's usage by memory id, which `decision` is a function of; empty while learning is off.
        version: Of the learning that `decision` is a function of.
    """

    scores: dict[str, float]
    decision: TurnDecision
    injected_ids: tuple[str, ...]
    rendered: Rendered
    usage: Mapping[str, Usage] = field(default_factory=dict)
    version: tuple[int, int] = (0, 0)


class RenderTurn:
    """Chooses entries and counts the choice. Safe to call from several threads."""

    def __init__(self, store: Store, entries: Entries, find_references: ProjectReferences) -> None:
        self._store = store
        self._entries = entries
        self._find_references = find_references
        self._usage = KeptUsage()

    def prepare(self, turn: Turn, snapshot: Snapshot) -> Callable[[], Rendered]:
        """Decide and render the turn. The returned function counts it and waits for the disk.

        Raises: from the returned function RequestIdReused and StorageFull; Unavailable if learning is switched on and
            off continually.
        """
        draft = self._draft(turn, snapshot)
        return lambda: self._counted(turn, draft)

    def _counted(self, turn: Turn, draft: _Draft) -> Rendered:
        for _ in range(_ATTEMPTS):
            try:
                return self._count(turn, draft)
            except _Switched:
                draft = self._store.read(turn.project, partial(self._draft, turn))
        raise Unavailable("learning is being switched on and off all the time; try again")

    def _draft(self, turn: Turn, snapshot: Snapshot) -> _Draft:
        learning = snapshot.learning()
        state = learning.state()
        entries = self._entries.of(turn.project, snapshot)
        if not state.enabled:
            return _with_all(turn, entries, snapshot)
        usage = self._usage.of(learning, turn.commit.scope)
        scores = self._scores(turn, entries, state.settings)
        decided = _decided(
            turn, scores, usage, state.settings, partial(self._entries.load, turn.project, entries, snapshot)
        )
        return replace(decided, version=learning.version())

    def _scores(self, turn: Turn, entries: Sequence[Entry], settings: LearningSettings) -> dict[str, float]:
        """The entries that the text refers to, by its words or by its meaning: the most similar first, then by id."""
        found = self._find_references(turn.project, turn.text, entries, settings.min_similarity)
        scores = {one.memory_id: one.similarity for one in found}
        for hit in turn.hits:
            if hit.memory.kind is MemoryKind.ENTRY and hit.similarity >= settings.min_similarity:
                scores[hit.memory.id] = max(scores.get(hit.memory.id, 0.0), hit.similarity)
        return dict(sorted(scores.items(), key=lambda one: (-one[1], one[0])))

    def _count(self, turn: Turn, draft: _Draft) -> Rendered:
        def apply(work: UnitOfWork) -> CountedReply:
            learning = work.learning
            state = learning.state()
            if state.enabled != draft.decision.enabled:
                raise _Switched
            final = _as_of_now(turn, draft, work) if state.enabled else draft
            event = _event(turn.commit, final)
            learning.append(event, counting(state, learning.turn(event.scope), final.usage.get, event))
            return CountedReply(rendered=replace(final.rendered, decision=final.decision))

        request = WriteRequest(
            request_id=turn.commit.request_id, fingerprint=turn.commit.fingerprint, reply_type=CountedReply, apply=apply
        )
        written = self._store.write(turn.project, request).result()
        return replace(written.reply.rendered, seq=written.seq)


class _Switched(Exception):
    """Learning was switched on or off between a turn's rendering and its count."""


def _decided(turn: Turn, scores: dict[str, float], usage: ScopeUsage, settings: LearningSettings, load: Load) -> _Draft:
    """The turn as the scope's usage decides it."""
    rows = decide(usage, tuple(scores), turn.commit.turn, settings, most_waiting=_MOST_WAITING)
    chosen = [row for row in rows if row.injected]
    found = zip(chosen, load([row.memory_id for row in chosen]), strict=True)
    # An entry may have been removed, or become something else, a moment ago.
    present = {row.memory_id: (row, one) for row, one in found if one and one.kind is MemoryKind.ENTRY}
    selected = (
        *[_selected(one, scores) for row, one in present.values() if row.forced],
        *[item for item in turn.source.selected if item.memory.kind is not MemoryKind.ENTRY],
        *[_selected(one, scores) for row, one in present.values() if not row.forced],
    )
    rendered = turn.write(replace(turn.source, selected=selected), load)
    injected_ids = tuple(present)
    dropped_count = len(_not_shown(injected_ids, rendered))
    table = (*[row for row, _ in present.values()], *rows[len(chosen) :])
    decision = TurnDecision(enabled=True, injections=table, dropped_count=dropped_count)
    return _Draft(scores=scores, decision=decision, injected_ids=injected_ids, rendered=rendered, usage=usage.by_id)


def _with_all(turn: Turn, entries: Sequence[Entry], snapshot: Snapshot) -> _Draft:
    """Draft a turn while learning is off: all entries in write order, whatever the user says.

    At most as many as could fit the budget are read; other recalled memories follow.
    """
    scores = {item.memory.id: item.score for item in turn.source.selected}
    read = islice(memories(snapshot, full=True), turn.budget_tokens // _LEAST_TOKENS) if entries else ()
    shown = [Selected(memory=one, score=scores.get(one.id)) for one in _first(read, _MOST_CHARACTERS)]
    others = [item for item in turn.source.selected if item.memory.kind is not MemoryKind.ENTRY]
    rendered = turn.write(replace(turn.source, selected=(*shown, *others)), snapshot.get)
    dropped = _not_shown([entry.memory_id for entry in entries], rendered)
    decision = TurnDecision(enabled=False, dropped_count=len(dropped))
    return _Draft(scores={}, decision=decision, injected_ids=(), rendered=rendered)


def _first(some: Iterable[Memory], most_characters: int) -> Iterator[Memory]:
    """Yield memories until their contents reach this length together, including the one that reaches it."""
    characters = 0
    for memory in some:
        yield memory
        characters += 0 if memory.payload is None else len(memory.payload.content) + len(memory.payload.raw)
        if characters >= most_characters:
            return


def _selected(entry: Memory, scores: dict[str, float]) -> Selected:
    return Selected(memory=entry, score=scores.get(entry.id))


def _as_of_now(turn: Turn, draft: _Draft, work: UnitOfWork) -> _Draft:
    """The draft, with the table of this very moment; rendered again where that injects other entries."""
    scores = {memory_id: score for memory_id, score in draft.scores.items() if _is_entry(work, memory_id)}
    learning = work.learning
    if learning.version() == draft.version and len(scores) == len(draft.scores):
        return draft
    usage, settings = ScopeUsage.of(learning.usage(turn.commit.scope)), learning.state().settings
    if injected_ids(usage, tuple(scores), turn.commit.turn, settings) == draft.injected_ids:
        rows = decide(usage, tuple(scores), turn.commit.turn, settings, most_waiting=_MOST_WAITING)
        return replace(draft, decision=replace(draft.decision, injections=rows), usage=usage.by_id)
    return _decided(turn, scores, usage, settings, lambda ids: [work.get(one) for one in ids])


def _is_entry(work: UnitOfWork, memory_id: str) -> bool:
    memory = work.get(memory_id)
    return memory is not None and memory.kind is MemoryKind.ENTRY


def _event(commit: RenderCommit, final: _Draft) -> Injected:
    referenced = tuple([row.memory_id for row in final.decision.injections if row.forced])
    used = {memory_id: final.usage.get(memory_id) for memory_id in referenced}
    return Injected(
        scope=commit.scope,
        turn=commit.turn,
        request_id=commit.request_id,
        referenced_ids=referenced,
        injected_ids=final.injected_ids,
        dropped_ids=_not_shown(final.injected_ids, final.rendered),
        counted_ids=tuple([one for one, usage in used.items() if usage and usage.counted_turn == commit.turn]),
    )


def _not_shown(memory_ids: Sequence[str], rendered: Rendered) -> tuple[str, ...]:
    """Return the ids that the rendering does not show."""
    shown = {one.memory_id for one in rendered.memories if one.tier is not Tier.DROPPED}
    return tuple([memory_id for memory_id in memory_ids if memory_id not in shown])
