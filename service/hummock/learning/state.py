"""A project's learning: its state, settings and log, and replays of its history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from msgspec.structs import replace

from hummock.core.deadline import NO_DEADLINE, Deadline
from hummock.core.errors import InvalidRequest, MemoryNotFound
from hummock.core.learning import (
    KeywordsSet,
    LearningSettings,
    LearningState,
    LoggedEvent,
    SettingsChanged,
    Switched,
    next_turn,
)
from hummock.core.learning_requests import (
    EntryState,
    LearningCommand,
    LearningPage,
    LearningUpdated,
    Replayed,
    SettingsChanges,
)
from hummock.core.memory import MemoryKind
from hummock.learning.inject import ScopeUsage, decide, idle, plain
from hummock.learning.log import ForkedHistory, Rebuilt, digest, record, without_gaps
from hummock.learning.references import ENTRIES, Entries
from hummock.ports.learning import LearningReader
from hummock.ports.store import Snapshot, Store
from hummock.ports.writes import UnitOfWork, WriteRequest

_EVENTS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReply:
    """Stored reply of a change, for repeats of its request_id."""

    state: LearningState
    missed_turns: int
    has_begun: bool = False


class Learning:
    """Shows and changes how projects learn. Safe to call from several threads."""

    def __init__(self, store: Store, entries: Entries, switched_on: Callable[[str], str]) -> None:
        """`switched_on` is called with a project that has begun to learn.

        It must return at once, with the reason why entries without keywords are not read now, or "" if they are.
        """
        self._store = store
        self._entries = entries
        self._switched_on = switched_on

    def page(self, project: str, scope: str, turn: int | None, after: int, limit: int) -> LearningPage:
        """Return at most `limit` entries after position `after` (0: the first), as the scope's turn would inject them.

        A turn of None is the one after the scope's newest. An unknown project has learnt nothing.
        """
        page = self._store.page(project, ENTRIES, after, limit, full=False)
        titles = {memory.id: memory.index.title for memory in page.memories}
        state, turn, entries = self._read(project, scope, turn, titles)
        return LearningPage(state=state, turn=turn, entries=entries, next_after=page.next_after)

    def whole(self, project: str, scope: str) -> LearningPage:
        """Return all entries, as the turn after the scope's newest would inject them."""
        entries_now = self._store.read(project, partial(self._entries.of, project))
        titles = {entry.memory_id: entry.title for entry in entries_now}
        state, turn, entries = self._read(project, scope, None, titles)
        return LearningPage(state=state, turn=turn, entries=entries, next_after=None)

    def version(self, project: str) -> tuple[int, int] | None:
        """Return the version of the result of `whole`, which is unchanged while the version is.

        None while a write of entries is durable but not yet visible to all reads.
        """

        def read(snapshot: Snapshot) -> tuple[int, int] | None:
            entries_seq, _ = snapshot.entries_version
            return (entries_seq, snapshot.learning().state().events) if snapshot.seq >= entries_seq else None

        return self._store.read(project, read)

    def events(self, project: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        """Return the next `limit` events after number `after` (0: the first), without damaged ones."""
        return self._store.read_learning(project, lambda learning: learning.events(after, limit))

    def event_count(self, project: str) -> int:
        """Events in the log."""
        return self._store.read_learning(project, lambda learning: learning.state().events)

    def update(self, command: LearningCommand) -> LearningUpdated:
        """Apply all changes or none; values that are already set log no event.

        Raises: InvalidRequest, MemoryNotFound, RequestIdReused, StorageFull.
        """

        def apply(work: UnitOfWork) -> UpdateReply:
            before = work.learning.state()
            _change_settings(work, command.changes)
            for keywords in command.keywords:
                _set_keywords(work, keywords)
            is_switched = command.enabled is not None and command.enabled != before.enabled
            if is_switched:
                record(work.learning, Switched(enabled=not before.enabled))
            has_begun = is_switched and bool(command.enabled)
            missed = before.missed_turns if has_begun else 0
            return UpdateReply(state=work.learning.state(), missed_turns=missed, has_begun=has_begun)

        request = WriteRequest(
            request_id=command.request_id, fingerprint=command.fingerprint, reply_type=UpdateReply, apply=apply
        )
        written = self._store.write(command.project, request).result()
        reply = written.reply
        skipped = self._switched_on(command.project) if reply.has_begun else ""
        return LearningUpdated(
            seq=written.seq,
            state=reply.state,
            missed_turns=reply.missed_turns,
            cold_start=reply.has_begun and not skipped,
            cold_start_skipped=skipped,
        )

    def replay(self, project: str, fork: SettingsChanges | None, deadline: Deadline = NO_DEADLINE) -> Replayed:
        """Replay the log and compare. With a fork, also decide every turn with its settings.

        Raises: InvalidRequest, in `fork`, when its numbers do not fit those of some time; EventDamaged; DeadlinePassed,
            which is checked before each slice of the log.
        """
        count, live = self._store.read_learning(project, lambda learning: (learning.state().events, digest(learning)))
        rebuilt = Rebuilt()
        history = None if fork is None else ForkedHistory(_changing(fork, "fork."))
        for logged in self._log(project, count, deadline):
            rebuilt.apply(logged.event)
            if history is not None:
                history.apply(logged)
        return Replayed(
            events=count,
            digest=live,
            replayed_digest=digest(rebuilt),
            fork=None if history is None else history.report(),
        )

    def _log(self, project: str, count: int, deadline: Deadline) -> Iterator[LoggedEvent]:
        """The first events. They never change, so that they need not be read at one moment. Raises: EventDamaged."""
        for after in range(0, count, _EVENTS_AT_ONCE):
            deadline.check()
            last = min(after + _EVENTS_AT_ONCE, count)
            yield from without_gaps(self.events(project, after, last - after), after, last)

    def _read(
        self, project: str, scope: str, turn: int | None, titles: dict[str, str]
    ) -> tuple[LearningState, int, tuple[EntryState, ...]]:
        def read(learning: LearningReader) -> tuple[LearningState, int, tuple[EntryState, ...]]:
            state = learning.state()
            asked = next_turn(learning.turn(scope)) if turn is None else turn
            usage = learning.usage(scope)
            rows = decide(ScopeUsage.of(usage), (), asked, state.settings) if state.enabled else ()
            table = {row.memory_id: row for row in rows}
            entries = tuple(
                EntryState(
                    memory_id=one,
                    title=title,
                    profile=profile if (profile := learning.profile(one)) and profile.was_learnt else None,
                    injection=(table.get(one) or idle(one)) if state.enabled else plain(one, usage.get(one)),
                )
                for one, title in titles.items()
            )
            return state, asked, entries

        return self._store.read_learning(project, read)


def _changing(changes: SettingsChanges, prefix: str) -> Callable[[LearningSettings], LearningSettings]:
    named = {name: value for name, value in asdict(changes).items() if value is not None}

    def changed(settings: LearningSettings) -> LearningSettings:
        try:
            return replace(settings, **named)
        except InvalidRequest as error:
            error.move_into(prefix)
            raise

    return changed


def _change_settings(work: UnitOfWork, changes: SettingsChanges) -> None:
    before = work.learning.state().settings
    after = _changing(changes, "settings.")(before)
    if after != before:
        record(work.learning, SettingsChanged(settings=after))


def _set_keywords(work: UnitOfWork, keywords: KeywordsSet) -> None:
    memory = work.get(keywords.memory_id)
    if memory is None or memory.kind is not MemoryKind.ENTRY:
        raise MemoryNotFound(keywords.memory_id)
    known = work.learning.profile(keywords.memory_id)
    if keywords.keywords != (() if known is None else known.words):
        record(work.learning, keywords)
