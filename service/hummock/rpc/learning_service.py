"""LearningService: what a project has learnt of its entries, and scans for more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hummock.core.errors import InvalidRequest
from hummock.core.learning_requests import EntryLearnt, LearningPage, ObserveCommand, ScanScope
from hummock.learning.background import Scan
from hummock.learning.state import Learning
from hummock.rpc import learning_messages, values
from hummock.rpc.streams import UNTIL_WRITTEN, Steps
from hummock.rpc.tokens import page_number, page_token
from hummock.v1 import learning_service_pb2 as pb

_SCOPES = {
    pb.SCAN_SCOPE_UNSPECIFIED: ScanScope.UNLEARNED,
    pb.SCAN_SCOPE_UNLEARNED: ScanScope.UNLEARNED,
    pb.SCAN_SCOPE_ALL: ScanScope.ALL,
}
_DEFAULT_PAGE_SIZE = 100
_WATCHED_AT_ONCE = 500


class LearningServicer:
    """Each method is a call of one use case."""

    def __init__(
        self,
        learning: Learning,
        observe: Callable[[ObserveCommand], int],
        scan: Callable[[str, ScanScope, Sequence[str]], Scan],
    ) -> None:
        self._learning = learning
        self._observe = observe
        self._scan = scan

    def GetState(self, request: pb.LearningServiceGetStateRequest) -> pb.LearningServiceGetStateResponse:
        """Returns what a project has learnt, and what its next turn would inject."""
        page = self._learning.page(
            values.project_name("project", request.project),
            values.identifier("scope", request.scope),
            request.turn if request.HasField("turn") else None,
            page_number(request, request.page_token) or 0,
            request.page_size or _DEFAULT_PAGE_SIZE,
        )
        return pb.LearningServiceGetStateResponse(
            state=learning_messages.state(page.state),
            turn=page.turn,
            entries=map(learning_messages.entry_state, page.entries),
            next_page_token="" if page.next_after is None else page_token(request, str(page.next_after)),
        )

    def WatchState(self, request: pb.LearningServiceWatchStateRequest) -> Steps:
        """Sends the state, then whatever changes."""
        project = values.project_name("project", request.project)
        scope = values.identifier("scope", request.scope)
        shown: LearningPage | None = None
        seen: tuple[int, int] | None = None
        while True:
            # Most writes to a project are none to its learning, and a page of many entries takes long.
            version = self._learning.version(project)
            page = shown if version is not None and version == seen else self._learning.whole(project, scope)
            seen = version
            if page is None or page == shown:
                yield UNTIL_WRITTEN
            else:
                yield from _differences(shown, page)
                shown = page

    def UpdateSettings(
        self, request: pb.LearningServiceUpdateSettingsRequest
    ) -> pb.LearningServiceUpdateSettingsResponse:
        """Switches learning, changes its numbers, sets keywords."""
        return learning_messages.update_response(self._learning.update(learning_messages.learning_command(request)))

    def ObserveTurn(self, request: pb.LearningServiceObserveTurnRequest) -> pb.LearningServiceObserveTurnResponse:
        """Writes down that a turn is over."""
        return pb.LearningServiceObserveTurnResponse(seq=self._observe(learning_messages.observe_command(request)))

    def LearnKeywords(self, request: pb.LearningServiceLearnKeywordsRequest) -> Steps:
        """Has entries read, and tells of each."""
        yield from told(self._scan(*asked_scan(request)))

    def Replay(self, request: pb.LearningServiceReplayRequest) -> pb.LearningServiceReplayResponse:
        """Rebuilds the state from the log."""
        project = values.project_name("project", request.project)
        return learning_messages.replay_response(self._learning.replay(project, learning_messages.fork_of(request)))

    def ListEvents(self, request: pb.LearningServiceListEventsRequest) -> pb.LearningServiceListEventsResponse:
        """Returns the log in pages."""
        project = values.project_name("project", request.project)
        size = request.page_size or _DEFAULT_PAGE_SIZE
        position = page_number(request, request.page_token)
        if request.newest_first:
            end = position or self._learning.event_count(project)
            start = max(0, end - size)
            found = list(reversed(self._learning.events(project, start, end - start)))
            is_last, next_position = start == 0, start
        else:
            start = position or 0
            found = list(self._learning.events(project, start, size))
            is_last, next_position = len(found) < size, start + size
        return pb.LearningServiceListEventsResponse(
            events=map(learning_messages.logged_event, found),
            next_page_token="" if is_last else page_token(request, str(next_position)),
        )


def asked_scan(request: pb.LearningServiceLearnKeywordsRequest) -> tuple[str, ScanScope, tuple[str, ...]]:
    """The project, which entries, and their ids where they are named."""
    project = values.project_name("project", request.project)
    chosen = tuple(values.identifier(f"memory_ids[{place}]", one) for place, one in enumerate(request.memory_ids))
    if chosen and request.scope != pb.SCAN_SCOPE_UNSPECIFIED:
        raise InvalidRequest("scope", "must be unset where entries are named by memory_ids")
    return project, ScanScope.CHOSEN if chosen else _SCOPES[request.scope], chosen


def told(scan: Scan) -> Steps:
    """Where it is now, each entry as it is read, and why it is over. What it has read before counts as done."""
    before = scan.since(0)
    done = len(before.learnt)
    if before.end is None:
        yield pb.LearningServiceLearnKeywordsResponse(total=before.total, done=done)
    while True:
        progress = scan.since(done)
        yield from _entries(progress.learnt, progress.total, done)
        done += len(progress.learnt)
        if progress.end is not None:
            yield pb.LearningServiceLearnKeywordsResponse(
                total=progress.total, done=done, end=pb.ScanEnd.ValueType(progress.end), reason=progress.reason
            )
            return
        if not progress.learnt:
            yield UNTIL_WRITTEN


def _entries(
    learnt: tuple[EntryLearnt, ...], total: int, done: int
) -> Iterator[pb.LearningServiceLearnKeywordsResponse]:
    for number, one in enumerate(learnt, start=done + 1):
        entry = pb.EntryLearnt(
            memory_id=one.memory_id,
            outcome=pb.EntryOutcome.ValueType(one.outcome),
            keywords=one.keywords,
            hints=one.hints,
            reason=one.reason,
        )
        yield pb.LearningServiceLearnKeywordsResponse(total=total, done=number, entry=entry)


def _differences(shown: LearningPage | None, page: LearningPage) -> Steps:
    """Messages that make what was shown what it is now; at least one."""
    before = {entry.memory_id: entry for entry in shown.entries} if shown else {}
    changed = [entry for entry in page.entries if before.get(entry.memory_id) != entry]
    gone = before.keys() - {entry.memory_id for entry in page.entries}
    # One message at least: the turn or the settings may be all that is new.
    for start in range(0, max(len(changed), 1), _WATCHED_AT_ONCE):
        yield pb.LearningServiceWatchStateResponse(
            state=learning_messages.state(page.state),
            turn=page.turn,
            entries=map(learning_messages.entry_state, changed[start : start + _WATCHED_AT_ONCE]),
            removed_ids=() if start else sorted(gone),
        )
