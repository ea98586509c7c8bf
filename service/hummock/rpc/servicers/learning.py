"""LearningService: how projects learn."""

from __future__ import annotations

from collections.abc import Callable

from hummock.core.learning_queries import LearningPage
from hummock.core.observe import ObserveCommand
from hummock.rpc.page_token import page_number, page_token
from hummock.rpc.parse import learning as parse_learning
from hummock.rpc.parse import values
from hummock.rpc.present import events as present_events
from hummock.rpc.present import learning as present_learning
from hummock.rpc.reply_stream import UNTIL_WRITTEN, Steps
from hummock.rpc.servicers.scan_keywords import asked_scan, told
from hummock.rpc.use_cases import BeginScan, Learning
from hummock.v1 import learning_service_pb2 as pb

_DEFAULT_PAGE_SIZE = 100
_WATCHED_AT_ONCE = 500


class LearningServicer:
    """Each method is a call of one use case."""

    def __init__(self, learning: Learning, observe: Callable[[ObserveCommand], int], scan: BeginScan) -> None:
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
            state=present_learning.state(page.state),
            turn=page.turn,
            entries=map(present_learning.entry_state, page.entries),
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
        return present_learning.update_response(self._learning.update(parse_learning.learning_command(request)))

    def ObserveTurn(self, request: pb.LearningServiceObserveTurnRequest) -> pb.LearningServiceObserveTurnResponse:
        """Writes down that a turn is over."""
        return pb.LearningServiceObserveTurnResponse(seq=self._observe(parse_learning.observe_command(request)))

    def LearnKeywords(self, request: pb.LearningServiceLearnKeywordsRequest) -> Steps:
        """Has entries read, and tells of each."""
        yield from told(self._scan(*asked_scan(request)))

    def Replay(self, request: pb.LearningServiceReplayRequest) -> pb.LearningServiceReplayResponse:
        """Rebuilds the state from the log."""
        project = values.project_name("project", request.project)
        return present_learning.replay_response(self._learning.replay(project, parse_learning.fork_of(request)))

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
            events=map(present_events.logged_event, found),
            next_page_token="" if is_last else page_token(request, str(next_position)),
        )


def _differences(shown: LearningPage | None, page: LearningPage) -> Steps:
    """Messages that make what was shown what it is now; at least one."""
    before = {entry.memory_id: entry for entry in shown.entries} if shown else {}
    changed = [entry for entry in page.entries if before.get(entry.memory_id) != entry]
    gone = before.keys() - {entry.memory_id for entry in page.entries}
    # One message at least: the turn or the settings may be all that is new.
    for start in range(0, max(len(changed), 1), _WATCHED_AT_ONCE):
        yield pb.LearningServiceWatchStateResponse(
            state=present_learning.state(page.state),
            turn=page.turn,
            entries=map(present_learning.entry_state, changed[start : start + _WATCHED_AT_ONCE]),
            removed_ids=() if start else sorted(gone),
        )
