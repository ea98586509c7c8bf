"""Short forms of asking a store."""

from __future__ import annotations

from collections.abc import Sequence

from hummock.core.candidates import Candidates, Gathered, GroupQuery
from hummock.core.memory import Filter
from hummock.ports.store import Reads, Store
from tests.snapshots import at
from tests.strategies import Entry, put_request, unit_vector


def put(store: Store, project: str, *entries: Entry) -> int:
    """Writes memories in one request and gives the seq."""
    return store.write(project, put_request(entries)).result(timeout=30).seq


def ask(
    store: Reads,
    project: str = "p",
    *,
    seed: int | None = None,
    terms: Sequence[str] = (),
    where: Filter | None = None,
    minimum_cosine: float = -1.0,
    domain_names: Sequence[str] = (),
    domain_text: str = "",
    pool: int = 50,
    min_seq: int = 0,
) -> Candidates:
    """One group's candidates."""
    query = GroupQuery(
        name="main",
        filter=where or Filter(),
        vector=None if seed is None else unit_vector(seed),
        minimum_cosine=minimum_cosine,
        terms=tuple(terms),
        domain_names=frozenset(domain_names),
        domain_text=domain_text,
        pool=pool,
    )
    return gather(store, project, query, min_seq=min_seq).groups[0]


def gather(store: Reads, project: str, *queries: GroupQuery, min_seq: int = 0) -> Gathered:
    """All groups' candidates."""
    return at(store, project, min_seq).search(queries)


def ids(candidates: Candidates) -> set[str]:
    """Ids of the candidates."""
    return set(candidates.memory_id)
