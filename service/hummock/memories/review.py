"""Review: shows, approves and rejects held memories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hummock.core.review import Quarantined, QuarantinedPage
from hummock.memories.learn import store_one
from hummock.memories.preparation import Preparation
from hummock.ports.models import Clock
from hummock.ports.store import Store
from hummock.ports.writes import UnitOfWork, WriteRequest, Written
from hummock.text.template import as_draft


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewCommand:
    """Decision on ids under which something is or was held."""

    project: str
    request_id: str
    fingerprint: bytes
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """Number of decisions, and the ids under which nothing is held; kept for repeats."""

    count: int
    missing_ids: tuple[str, ...]


class Review:
    """Shows what is held and decides on it. Safe to call from several threads."""

    def __init__(self, store: Store, preparation: Preparation, clock: Clock) -> None:
        self._store = store
        self._preparation = preparation
        self._clock = clock

    def page(self, project: str, after: str, limit: int) -> QuarantinedPage:
        """At most `limit` held memories after an id; empty is the beginning."""
        return self._store.review.page(project, after, limit)

    def approve(self, command: ReviewCommand) -> Written[Decided]:
        """Makes memories of what is held, as it is when this begins; what is sent meanwhile is held again.

        Raises: ProjectNotFound, RequestIdReused, StorageFull.
        """
        held = self._held(command)
        policy = self._store.settings(command.project).secret_policy()
        drafts = [as_draft(one.memory) for one in held]
        prepared = self._preparation.prepare(command.project, drafts, policy)
        ready = list(zip(held, prepared, self._preparation.embed(prepared), strict=True))
        now = self._clock.now()

        def apply(work: UnitOfWork) -> Decided:
            approved = set()
            for one, made, vectors in ready:
                if work.review.get(one.memory.id) == one:
                    store_one(work, made, vectors, now)
                    work.review.delete(one.memory.id)
                    approved.add(one.memory.id)
            return _decided(command.ids, approved)

        return self._written(command, apply)

    def reject(self, command: ReviewCommand) -> Written[Decided]:
        """Removes what is held. Raises: ProjectNotFound, RequestIdReused."""

        def apply(work: UnitOfWork) -> Decided:
            return _decided(command.ids, {one for one in command.ids if work.review.delete(one)})

        return self._written(command, apply)

    def _held(self, command: ReviewCommand) -> list[Quarantined]:
        found = self._store.review.get(command.project, list(dict.fromkeys(command.ids)))
        return [one for one in found if one is not None]

    def _written(self, command: ReviewCommand, apply: Callable[[UnitOfWork], Decided]) -> Written[Decided]:
        request = WriteRequest(
            request_id=command.request_id,
            fingerprint=command.fingerprint,
            reply_type=Decided,
            apply=apply,
            creates=False,
        )
        return self._store.write(command.project, request).result()


def _decided(ids: Sequence[str], done: set[str]) -> Decided:
    missing = tuple(one for one in dict.fromkeys(ids) if one not in done)
    return Decided(count=len(done), missing_ids=missing)
