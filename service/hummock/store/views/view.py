"""View of one project in memory after a certain write: loading, catching up, rebuilding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hummock.core.memory import Filter, MemoryKind
from hummock.core.project import GivenNames
from hummock.core.settings import NO_SETTINGS, ProjectSettings
from hummock.store.errors import RecordDamaged
from hummock.store.growing import Growing, Lazy, SignBits
from hummock.store.limits import MAX_QUERY_TERMS, PlanLimits, StoreLimits
from hummock.store.tables.forward_lists import ForwardLists, concatenated
from hummock.store.tables.op_log import Changes
from hummock.store.tables.reads import StoredMemories, TableProject
from hummock.store.tables.row_codec import TokenSign
from hummock.store.views.columns import Columns, EventTimes
from hummock.store.views.domain_names import NAMING_KINDS, DomainNames, read_given_names
from hummock.store.views.places import StarPlaces
from hummock.store.views.postings import KeptTerms, Postings, QueryTerms
from hummock.store.views.row_graph import GraphSlot
from hummock.store.views.superseded import Superseded, Superseding, read_superseded
from hummock_kernels.cosine import Chunks

_FLAGS_KEPT = 4

LazySuperseded = Lazy[[Columns, Superseding, TableProject], Superseded | None]


class KeptFlags:
    """Cached flags of a view's memories for the filters used last: a project is queried with few of them.

    They take at most four bytes per memory, outside the memory budget. Thread-safe: the cached tuple is replaced
    atomically.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: tuple[tuple[Filter, NDArray[np.uint8]], ...] = ()

    def of(self, where: Filter) -> NDArray[np.uint8] | None:
        """The cached flags of a filter, or None."""
        return next((flags for known, flags in self._kept if known == where), None)

    def keep(self, where: Filter, flags: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Cache the flags of this filter and return them, read-only from now on."""
        flags.flags.writeable = False
        self._kept = (*self._kept[1 - _FLAGS_KEPT :], (where, flags))
        return flags


class KeptSigns:
    """Cached signs of token vectors that a view's rows do not have: a byte per memory, outside the memory budget.

    Thread-safe: all threads compute the same values.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: NDArray[np.uint8] | None = None

    def of(self, at: NDArray[np.int64], count: int, read: ReadSigns) -> NDArray[np.uint8]:
        """The `TokenSign` of each memory `at` these ordinals, in a view of `count`; `read` gets those not cached."""
        kept = self._kept
        if kept is None:
            kept = self._kept = np.full(count, TokenSign.NOT_NOTED, np.uint8)
        unread = at[kept[at] == TokenSign.NOT_NOTED]
        if len(unread):
            kept[unread] = read(unread)
        return kept[at]


ReadSigns = Callable[[NDArray[np.int64]], Sequence[TokenSign]]


class KeptMoment:
    """Cached copy of a view without expired memories, valid until the next one expires. Thread-safe."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: tuple[float, float, ProjectView | None] | None = None

    def of(self, view: ProjectView, now: float) -> ProjectView:
        """The view as it is at `now`, in Unix seconds."""
        kept = self._kept
        if kept is None or not kept[0] <= now < kept[1]:
            kept = self._kept = _at(view, now)
        return kept[2] or view


def _at(view: ProjectView, now: float) -> tuple[float, float, ProjectView | None]:
    """Start and end of the validity, in Unix seconds, and the view; None if nothing has expired."""
    expiring = view.columns.expiring()
    times = view.columns.expire_time[expiring]
    is_over = times <= now
    since, until = float(times[is_over].max(initial=0.0)), float(times[~is_over].min(initial=np.inf))
    if not is_over.any():
        return -np.inf, until, None
    columns = view.columns.without(expiring[is_over])
    return since, until, replace(view, columns=columns, given_names=Lazy(read_given_names), expired_at=since)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProjectView:
    """A project's memories, searchable."""

    number: int  # The project's number.
    seq: int  # Sequence number of the last write in the view.
    content_seq: int  # The generation of its content.
    columns: Columns  # The columns of all memories.
    vectors: Growing[np.uint16]  # (rows, dim) float16 in uint16; the chunks of a memory are adjacent.
    # (rows,) int32, the ordinal of each row's memory; in the order in which the vectors were added.
    row_doc: Growing[np.int32]
    postings: Postings  # Index from terms to ordinals.
    domain_names: Lazy[[TableProject], DomainNames]  # Names of the project's domains, including removed ones.
    given_names: Lazy[[Columns, TableProject], GivenNames]  # Names that the project gives to domains and entries.
    plans: PlanLimits  # Limits of its nearest-vector search.
    # The vectors' sign bits; None in a project that is small or became large since the last rebuild.
    signs: SignBits | None = None
    # Shared by views with the same memories in the same places, except those added at the end.
    lineage: object = field(default_factory=object)
    settings: ProjectSettings = NO_SETTINGS  # The project's settings.
    superseding: Superseding = field(default_factory=Superseding)  # Cache of the ids that its memories replace.
    # Index by the time of the event that a memory describes; shared by the lineage.
    event_times: EventTimes = field(default_factory=EventTimes)
    # Computes the places of memories in the star map; shared by all lineages of the project.
    star_places: StarPlaces = field(default_factory=StarPlaces)
    # The project's graph; None where sign bits alone may serve. Shared by all lineages of the project.
    graph: GraphSlot | None = None
    # Cached flags of filters; empty in a new view.
    kept_flags: KeptFlags = field(default_factory=KeptFlags, init=False)
    # Cached signs of token vectors; empty in a new view.
    kept_signs: KeptSigns = field(default_factory=KeptSigns, init=False)
    # Cached results of term look-ups; empty in a new view.
    kept_terms: KeptTerms = field(default_factory=KeptTerms, init=False)
    expired_at: float = 0.0  # Expiry time of the last memory that the view leaves out as expired; 0 if there is none.
    _superseded: LazySuperseded = field(default_factory=lambda: Lazy(read_superseded), init=False)
    _moment: KeptMoment = field(default_factory=KeptMoment, init=False)

    def at(self, now: float) -> ProjectView:
        """The view without memories expired at `now`, in Unix seconds; catching up starts from `self`, not from it."""
        return self if now < self.columns.first_expiry else self._moment.of(self, now)

    def at_seq(self, seq: int) -> ProjectView:
        """The view after writes that changed nothing in it, with what it has cached."""
        newer = copy(self)
        object.__setattr__(newer, "seq", seq)
        # Has copies of the view, with their seq.
        object.__setattr__(newer, "_moment", KeptMoment())
        return newer

    def superseded(self, stored: TableProject) -> Superseded | None:
        """The replaced memories, or None. The transaction must be later than the view. Raises: Outdated."""
        return self._superseded.get(self.columns, self.superseding, stored)

    def query_terms(
        self, stored: TableProject, terms: Sequence[str], weights: NDArray[np.float32] | None = None
    ) -> QueryTerms:
        """Look up the first MAX_QUERY_TERMS terms in the index, once for those that several stages and groups hold."""
        last = self.kept_terms.last
        for known, known_weights, asked in last:
            if known is terms and known_weights is weights:
                return asked
        words = self.kept_terms.numbers(terms[:MAX_QUERY_TERMS], stored.term_numbers)
        columns = self.columns
        mean_length = columns.live_length / columns.live if columns.live else 0.0
        asked = self.postings.asked(words, columns.length, columns.live, mean_length, weights)
        self.kept_terms.last = ((terms, weights, asked), *last[:2])
        return asked

    @property
    def chunks(self) -> Chunks:
        """The vector rows, by memory."""
        return Chunks(self.vectors.values, self.columns.chunk_start, self.columns.chunk_count)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        signs = 0 if self.signs is None else self.signs.nbytes
        graph = 0 if self.graph is None else self.graph.nbytes
        return self.columns.nbytes + self.vectors.nbytes + self.row_doc.nbytes + self.postings.nbytes + signs + graph


def load(stored: TableProject, limits: StoreLimits) -> ProjectView:
    """Load the view of a project as the transaction sees it. Raises: RecordDamaged."""
    seq, content_seq, _ = stored.progress()
    memories, postings = _memories(stored, limits)
    row_doc = np.repeat(np.arange(len(memories.rows), dtype=np.int32), memories.rows["chunk_count"])
    return ProjectView(
        number=stored.number,
        seq=seq,
        content_seq=content_seq,
        settings=stored.settings(),
        columns=Columns.empty().extended(memories.rows, memories.ids, 0),
        vectors=memories.halves,
        row_doc=Growing.of(row_doc[:0]).extended(row_doc),
        postings=postings,
        domain_names=Lazy(DomainNames.read),
        given_names=Lazy(read_given_names),
        plans=limits.plans,
        signs=SignBits.of(memories.halves.values) if len(row_doc) >= limits.plans.sign_rows else None,
    )


def _memories(stored: TableProject, limits: StoreLimits) -> tuple[StoredMemories, Postings]:
    """All memories and their term index; a large index is built while the vectors are read."""
    with ThreadPoolExecutor(1, "postings") as beside:
        made: list[Callable[[], Postings]] = []

        def listed(rows: NDArray[np.void], lists: Sequence[ForwardLists]) -> None:
            lengths = rows["length"].astype(np.float32)
            if len(rows) > limits.most_outside(0):
                made.append(beside.submit(Postings.of, lists, lengths, inverted=True).result)
            else:
                made.append(partial(Postings.of, lists, lengths, inverted=False))

        memories = _whole(stored.number, stored.memories(listed))
        return memories, made[-1]()


def is_too_old(view: ProjectView, stored: TableProject) -> bool:
    """Whether the view cannot be caught up: it misses operations no longer kept, or is ahead of the store."""
    seq, _, ops_after = stored.progress()
    return view.seq < ops_after or seq < view.seq


def catch_up(view: ProjectView, stored: TableProject, limits: StoreLimits) -> ProjectView:
    """The view after all writes that the transaction sees.

    Missing operations are applied; if they are no longer kept, the project is loaded again. It is also loaded again
    if the store has gone back, as after a failover to a database replica that lacked the last writes.
    """
    seq, content_seq, _ = stored.progress()
    if seq == view.seq:
        return view
    if is_too_old(view, stored):
        return load(stored, limits)
    changes = stored.changes(view.seq)
    newer = replace(_reduced(view, changes), seq=seq, content_seq=content_seq, settings=stored.settings())
    if changes.judged:
        newer = _judged(newer, changes.judged, stored)
    if changes.embedded:
        newer = _embedded(newer, changes.embedded, stored)
    if changes.put:
        newer = _extended(newer, _whole(view.number, stored.memories_of(changes.put)))
    return _with_names(newer, view, changes)


def _with_names(newer: ProjectView, view: ProjectView, changes: Changes) -> ProjectView:
    """The newer view, with name caches reset if named memories were added or removed."""
    come = newer.columns.kind[len(view.columns) :]
    gone = view.columns.kind[view.columns.ordinals(changes.removed)] if len(changes.removed) else come[:0]
    if (come == MemoryKind.DOMAIN_KNOWLEDGE).any():
        newer = replace(newer, domain_names=Lazy(DomainNames.read))
    if np.isin(come, NAMING_KINDS).any() or np.isin(gone, NAMING_KINDS).any():
        newer = replace(newer, given_names=Lazy(read_given_names))
    return newer


def _whole(number: int, memories: StoredMemories) -> StoredMemories:
    """Return the memories after checking that their parts match in number. Raises: RecordDamaged."""
    chunks = int(memories.rows["chunk_count"].sum(dtype=np.int64))
    lists = sum(map(len, memories.lists))
    if lists != len(memories.rows) or chunks != memories.halves.size:
        raise RecordDamaged(
            number,
            f"{len(memories.rows)} memories of {chunks} chunks have {lists} term lists and "
            f"{memories.halves.size} vectors",
        )
    return memories


def _extended(view: ProjectView, memories: StoredMemories) -> ProjectView:
    ordinals: NDArray[np.int64] = np.arange(len(view.columns), len(view.columns) + len(memories.rows))
    columns = view.columns.extended(memories.rows, memories.ids, view.row_doc.size)
    postings = view.postings.extended(concatenated(memories.lists))
    return _with_rows(view, columns, postings, memories, ordinals)


def _embedded(view: ProjectView, docs: list[int], stored: TableProject) -> ProjectView:
    """The view with vectors for memories that had none; their rows come after all others."""
    memories = _whole(view.number, stored.memories_of(docs))
    ordinals = view.columns.ordinals(np.array(docs, np.int64))
    if len(ordinals) != len(docs):
        raise RecordDamaged(view.number, f"of {len(docs)} memories that got vectors {len(ordinals)} were known")
    columns = view.columns.embedded(ordinals, memories.rows, view.row_doc.size)
    return _with_rows(view, columns, view.postings, memories, ordinals)


def _judged(view: ProjectView, docs: list[int], stored: TableProject) -> ProjectView:
    rows = stored.memories_of(docs).rows
    ordinals = view.columns.ordinals(rows["doc"])
    if len(ordinals) != len(docs):
        raise RecordDamaged(view.number, f"of {len(docs)} memories that were judged {len(ordinals)} were known")
    return replace(view, columns=view.columns.judged(ordinals, rows))


def _with_rows(
    view: ProjectView, columns: Columns, postings: Postings, memories: StoredMemories, ordinals: NDArray[np.int64]
) -> ProjectView:
    """The view with these columns and postings, and the vectors of some memories at their ordinals."""
    halves = memories.halves.values
    return replace(
        view,
        columns=columns,
        postings=postings,
        vectors=view.vectors.extended(halves),
        signs=None if view.signs is None else view.signs.extended(halves),
        row_doc=view.row_doc.extended(np.repeat(ordinals, memories.rows["chunk_count"])),
    )


def _reduced(view: ProjectView, changes: Changes) -> ProjectView:
    if not len(changes.removed):
        return view
    ordinals = view.columns.ordinals(changes.removed)
    if len(ordinals) != len(changes.removed):
        raise RecordDamaged(view.number, f"of {len(changes.removed)} removed memories {len(ordinals)} were known")
    return replace(view, columns=view.columns.without(ordinals), postings=view.postings.without(changes.removed_terms))


def is_rebuild_due(view: ProjectView, limits: StoreLimits) -> bool:
    """Whether too many memories are removed or unindexed, or needed sign bits are missing."""
    return (
        has_many_dead(view, limits)
        or view.postings.delta > limits.most_outside(view.postings.base)
        or _lacks_signs(view)
    )


def has_many_dead(view: ProjectView, limits: StoreLimits) -> bool:
    """Whether enough memories are removed to compact the view."""
    dead = len(view.columns) - view.columns.live
    return dead >= limits.dead_docs and dead > limits.dead_share * len(view.columns)


def rebuilt(view: ProjectView, limits: StoreLimits) -> ProjectView:
    """Rebuild the view's index; the lineage stays the same only if every memory keeps its place."""
    return _compacted(view) if has_many_dead(view, limits) else _indexed(view)


def caught_up(made: ProjectView, newest: ProjectView, stored: TableProject, limits: StoreLimits) -> ProjectView:
    """The view made by `rebuilt`, after all writes that the transaction sees.

    `newest` is the view in use by readers, whose writes the transaction sees; `made` was built from its lineage.
    """
    return _joined(made, newest) if made.lineage is newest.lineage else catch_up(made, stored, limits)


def _indexed(view: ProjectView) -> ProjectView:
    return replace(
        view,
        postings=view.postings.inverted(view.columns.alive, view.columns.length, renumbered=False),
        signs=SignBits.of(view.vectors.values) if _lacks_signs(view) else view.signs,
    )


def _joined(made: ProjectView, newest: ProjectView) -> ProjectView:
    """The newest view with the index of an older one of its lineage."""
    signs = newest.signs
    if signs is None and made.signs is not None:
        signs = made.signs.extended(newest.vectors.values[made.signs.size :])
    return replace(newest, postings=newest.postings.behind(made.postings), signs=signs)


def _compacted(view: ProjectView) -> ProjectView:
    """A compacted copy. It shares nothing that grows, so both views can be caught up from here."""
    alive = view.columns.alive
    kept = np.flatnonzero(alive[view.row_doc.values])
    # Rows of vectors that were added later move next to their memories' other rows.
    kept = kept[np.argsort(view.row_doc.values[kept], kind="stable")]
    places = np.cumsum(alive, dtype=np.int32) - 1
    vectors = view.vectors.taken(kept)
    row_doc = view.row_doc.taken(kept)
    row_doc.values[:] = places[row_doc.values]
    return replace(
        view,
        lineage=object(),
        event_times=EventTimes(),
        columns=view.columns.compacted(),
        vectors=vectors,
        signs=SignBits.of(vectors.values) if vectors.size >= view.plans.sign_rows else None,
        row_doc=row_doc,
        postings=view.postings.inverted(alive, view.columns.length, renumbered=True),
    )


def _lacks_signs(view: ProjectView) -> bool:
    return view.signs is None and view.vectors.size >= view.plans.sign_rows
