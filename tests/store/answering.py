"""Asking and waiting for views in memory."""

from __future__ import annotations

from hummock.core.candidates import Candidates
from hummock.ports.store import Reads
from hummock.store import WritableStore
from tests.ports.asking import ask

QUERY = ("tide", "还款", "loan", "先本后息")


def answers(store: Reads, project: str = "p") -> dict[str, tuple[bytes, bytes, int]]:
    """Both scores to the bit, and the matched terms, by memory id."""
    found: Candidates = ask(store, project, seed=3, terms=QUERY)
    return {
        memory_id: (found.cosine[at].tobytes(), found.keyword[at].tobytes(), int(found.matched[at]))
        for at, memory_id in enumerate(found.memory_id)
    }


def rebuild(store: WritableStore) -> None:
    """Waits for the rebuilds that are due, as the writes so far make them."""
    for project in list(store.views._entries):
        store.views.loaded_view(project)
    store.views._maintenance.submit(int).result(30)
