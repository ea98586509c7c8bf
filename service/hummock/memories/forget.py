"""Forgetting: memories and sessions for good, with all that was learnt of them, and a receipt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.facets import passes
from hummock.core.learning import Forgotten
from hummock.core.memory import Filter, Memory, WriteCommand
from hummock.core.project import ids_digest
from hummock.learning.log import record
from hummock.learning.redact import Redaction
from hummock.memories.garden import DELETED_AT_ONCE
from hummock.memories.sessions import clear_sessions, written
from hummock.ports.store import Store
from hummock.ports.writes import Claim, UnitOfWork
from hummock.text.normalise import prose
from hummock.text.template import told
from hummock.text.told_days import told_time

_PAGE = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetCommand(WriteCommand):
    """Memories to forget: those that meet every condition, at least one; optionally the sessions of `where` too.

    `claim` is set if no caller asked for it, and guards the write.
    """

    ids: tuple[str, ...] = ()
    where: Filter = Filter()
    contains: str = ""
    with_sessions: bool = False
    claim: Claim | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Result of a forget, or of its dry run; kept for repeats. `ids_digest` is empty if nothing was forgotten."""

    memory_count: int
    remaining_count: int = 0
    session_count: int = 0
    message_count: int = 0
    event_count: int = 0
    ids_digest: str = ""
    held_count: int = 0


class Forget:
    """Forgets. Safe to call from several threads."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, command: ForgetCommand, deadline: Deadline = NO_DEADLINE) -> tuple[Receipt, int]:
        """Forget at most DELETED_AT_ONCE memories in one write. Returns the receipt and the project's seq.

        The deadline limits the search before the write, which itself always completes.

        Raises: ProjectNotFound, RequestIdReused; DeadlinePassed, after which nothing was forgotten.
        """
        chosen = self._chosen(command, deadline)
        taken = list(islice(chosen, DELETED_AT_ONCE))
        left = sum(1 for _ in chosen)
        held, scopes = self._held(command, deadline), _scopes(command)

        def apply(work: UnitOfWork) -> Receipt:
            # Memories changed since the search are skipped.
            there = [one for one in taken if (now := work.get(one.id)) and now.fingerprint == one.fingerprint]
            gone = [one for one in there if work.delete(one.id, keeps_vectors=False)]
            sessions = [found for name in scopes if (found := work.sessions.get(name)) is not None]
            for session in sessions:
                work.sessions.delete(session.id)
            ids = {one.id for one in gone} | (set(command.ids) if _asks_by_id_alone(command) else set())
            return Receipt(
                memory_count=len(gone),
                remaining_count=left,
                session_count=len(sessions),
                message_count=sum(session.message_count for session in sessions),
                event_count=_redact(work, gone, ids, scopes, command.contains),
                ids_digest=digest_of([*(one.id for one in gone), *(session.id for session in sessions)]),
                held_count=sum(work.review.delete(one) for one in held),
            )

        done = written(self._store, command, Receipt, apply, claim=command.claim)
        if done.reply.session_count:
            clear_sessions(self._store, command.project)
        return done.reply, done.seq

    def count(self, command: ForgetCommand, deadline: Deadline = NO_DEADLINE) -> tuple[Receipt, int]:
        """Number of memories that all calls with these conditions would forget, and the project's seq; nothing is done.

        Raises: DeadlinePassed.
        """
        chosen = list(self._chosen(command, deadline))
        ids = {one.id for one in chosen} | (set(command.ids) if _asks_by_id_alone(command) else set())
        sessions = [one for one in self._store.sessions.all(command.project) if one.id in _scopes(command)]
        redaction = _redaction(chosen, ids, dict.fromkeys(_scopes(command), ""), command.contains)
        events = self._store.read_learning(command.project, lambda log: sum(1 for _ in redaction.changed(log)))
        return (
            Receipt(
                memory_count=len(chosen),
                session_count=len(sessions),
                message_count=sum(session.message_count for session in sessions),
                event_count=events,
                held_count=len(self._held(command, deadline)),
            ),
            self._store.generation(command.project).seq,
        )

    def _held(self, command: ForgetCommand, deadline: Deadline) -> list[str]:
        found, after = [], ""
        while True:
            deadline.check()
            page = self._store.review.page(command.project, after, _PAGE)
            found += [one.memory.id for one in page.held if _meets(one.memory, command)]
            after = page.next_after
            if not after:
                return found

    def _chosen(self, command: ForgetCommand, deadline: Deadline) -> Iterator[Memory]:
        if command.ids and not command.contains:
            found = self._store.get(command.project, list(dict.fromkeys(command.ids)), 0, full=True)
            yield from (one for one in found if one is not None and passes(one, command.where, told_time))
            return
        after: int | None = 0
        while after is not None:
            deadline.check()
            page = self._store.page(command.project, command.where, after, _PAGE, full=True, contains=command.contains)
            yield from (one for one in page.memories if not command.ids or one.id in command.ids)
            after = page.next_after


def digest_of(ids: Sequence[str]) -> str:
    """Digest of these ids for a receipt, in whatever order; see `ids_digest`."""
    return ids_digest(sorted(each.encode() for each in ids))


def _meets(held: Memory, command: ForgetCommand) -> bool:
    if command.ids and held.id not in command.ids:
        return False
    payload = held.payload
    texts = (held.index.title, *held.index.tags, told(payload) if payload else "")
    holds = not command.contains or any(_ascii_folded(command.contains) in _ascii_folded(text) for text in texts)
    return holds and passes(held, command.where, told_time)


def _ascii_folded(text: str) -> bytes:
    """With the letters A to Z small, and no others: as the store looks for substrings."""
    return text.encode().lower()


def _scopes(command: ForgetCommand) -> tuple[str, ...]:
    return tuple(dict.fromkeys(command.where.session_ids)) if command.with_sessions else ()


def _asks_by_id_alone(command: ForgetCommand) -> bool:
    """Whether ids are the only condition; then the log is also cleaned of memories that no longer exist."""
    return bool(command.ids) and not command.contains and command.where == Filter()


def _redact(work: UnitOfWork, gone: Sequence[Memory], ids: set[str], scopes: Sequence[str], contains: str) -> int:
    """Redact the memories from the log. Returns the number of changed events."""
    learning = work.learning
    names = {scope: f"\0{learning.state().events}.{place}" for place, scope in enumerate(scopes)}
    redaction = _redaction(gone, ids, names, contains)
    changed = list(redaction.changed(learning))
    for number, event in changed:
        learning.rewrite(number, event)
    if scopes:
        for scope in scopes:
            learning.drop_scope(scope)
        record(learning, Forgotten(memory_ids=(), scopes=tuple(names.values())))
    return len(changed)


def _redaction(gone: Sequence[Memory], ids: set[str], names: dict[str, str], contains: str) -> Redaction:
    texts = [contains, *(one.payload.content for one in gone if one.payload is not None)]
    folded = tuple(dict.fromkeys(filter(None, map(prose, texts))))
    return Redaction(memory_ids=frozenset(ids), scopes=names, texts=folded)
