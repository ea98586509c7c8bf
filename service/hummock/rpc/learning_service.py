"""LearningService: what a project has learnt about its entries, and keyword scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b

from hummock.core.errors import InvalidRequest
from hummock.core.learning import LoggedEvent
from hummock.core.learning_requests import LearningPage, ObserveCommand, ScanScope
from hummock.learning.background import Scan
from hummock.learning.state import Learning
from hummock.rpc import learning_messages, values
from hummock.rpc.call import CallContext, Require, project_read, that_fits
from hummock.rpc.conversion import message_of
from hummock.rpc.streams import UNTIL_WRITTEN, Steps
from hummock.rpc.tokens import page_number, page_token
from hummock_client.v1 import learning_service_pb2 as pb

_SCOPES = {
    pb.SCAN_SCOPE_UNSPECIFIED: ScanScope.UNLEARNED,
    pb.SCAN_SCOPE_UNLEARNED: ScanScope.UNLEARNED,
    pb.SCAN_SCOPE_ALL: ScanScope.ALL,
}
_WATCHED_AT_ONCE = 250
"""Entries of a message: with all keywords and hints that they may have, they stay below 4 MiB."""


class LearningServicer:
    """Each method is a call of one use case."""

    def __init__(
        self,
        learning: Learning,
        observe: Callable[[ObserveCommand], int],
        scan: Callable[[str, ScanScope, Sequence[str]], Scan],
        require: Require,
    ) -> None:
        self._learning = learning
        self._require = require
        self._observe = observe
        self._scan = scan

    def GetLearningState(self, request: pb.GetLearningStateRequest, call: CallContext) -> pb.GetLearningStateResponse:
        """Returns what a project has learnt, and what its next turn would inject."""
        project = project_read(request, self._require)
        scope = values.identifier("scope", request.scope)
        after = page_number(request, request.page_token) or 0

        def page_of(size: int) -> pb.GetLearningStateResponse:
            page = self._learning.page(project, scope, request.turn if request.HasField("turn") else None, after, size)
            return pb.GetLearningStateResponse(
                state=message_of(pb.LearningState, page.state),
                turn=page.turn,
                entries=map(learning_messages.entry_state, page.entries),
                next_page_token=page_token(request, page.next_after),
            )

        return that_fits(page_of, values.page_size(request.page_size))

    def WatchLearningState(self, request: pb.WatchLearningStateRequest, call: CallContext) -> Steps:
        """Sends the state, then whatever changes."""
        project = project_read(request, self._require)
        scope = values.identifier("scope", request.scope)
        shown: LearningPage | None = None
        seen: tuple[int, int] | None = None
        while True:
            if shown is not None:
                # It may have been deleted meanwhile.
                project_read(request, self._require)
            # Most writes to a project are none to its learning, and a page of many entries takes long.
            version = self._learning.version(project)
            page = shown if version is not None and version == seen else self._learning.whole(project, scope)
            seen = version
            if page is None or page == shown:
                yield UNTIL_WRITTEN
                continue
            token = "" if version is None else _state_token(project, scope, version)
            if shown is None and token and token == request.state_token:
                # The previous stream has sent this state.
                shown = page
            yield from _differences(shown, page, token)
            shown = page

    def UpdateLearningSettings(
        self, request: pb.UpdateLearningSettingsRequest, call: CallContext
    ) -> pb.UpdateLearningSettingsResponse:
        """Switches learning, changes its numbers, sets keywords."""
        updated = self._learning.update(learning_messages.learning_command(request))
        return message_of(pb.UpdateLearningSettingsResponse, updated)

    def ObserveTurn(self, request: pb.ObserveTurnRequest, call: CallContext) -> pb.ObserveTurnResponse:
        """Writes down that a turn is over."""
        return pb.ObserveTurnResponse(seq=self._observe(learning_messages.observe_command(request)))

    def LearnKeywords(self, request: pb.LearnKeywordsRequest, call: CallContext) -> Steps:
        """Starts a scan of entries for keywords, and reports on each entry."""
        asked = asked_scan(request)
        self._require(asked[0])
        yield from told(self._scan(*asked))

    def ReplayLearning(self, request: pb.ReplayLearningRequest, call: CallContext) -> pb.ReplayLearningResponse:
        """Rebuilds the state from the log."""
        project = project_read(request, self._require)
        replayed = self._learning.replay(project, learning_messages.fork_of(request), call.deadline)
        return message_of(pb.ReplayLearningResponse, replayed)

    def ListLearningEvents(
        self, request: pb.ListLearningEventsRequest, call: CallContext
    ) -> pb.ListLearningEventsResponse:
        """Returns the log in pages, shorter ones where a page would not fit into a reply."""
        project = project_read(request, self._require)
        position = page_number(request, request.page_token)

        def page_of(size: int) -> pb.ListLearningEventsResponse:
            found, next_position = self._events(project, position, size, newest_first=request.newest_first)
            return pb.ListLearningEventsResponse(
                events=map(learning_messages.logged_event, found), next_page_token=page_token(request, next_position)
            )

        return that_fits(page_of, values.page_size(request.page_size))

    def _events(
        self, project: str, position: int | None, size: int, *, newest_first: bool
    ) -> tuple[list[LoggedEvent], int | None]:
        """At most `size` events from a position on, and the position of the next page, if there is one."""
        if newest_first:
            end = position or self._learning.event_count(project)
            start = max(0, end - size)
            return list(reversed(self._learning.events(project, start, end - start))), start or None
        start = position or 0
        count = self._learning.event_count(project)
        # Damaged events are left out, so a page may be shorter than `size`.
        return list(self._learning.events(project, start, size)), start + size if start + size < count else None


def asked_scan(request: pb.LearnKeywordsRequest) -> tuple[str, ScanScope, tuple[str, ...]]:
    """The project, which entries, and their ids where they are named."""
    project = values.project_name("project", request.project)
    chosen = values.identifiers("memory_ids", request.memory_ids)
    if chosen and request.scope != pb.SCAN_SCOPE_UNSPECIFIED:
        raise InvalidRequest("scope", "must be unset where entries are named by memory_ids")
    return project, ScanScope.CHOSEN if chosen else _SCOPES[request.scope], chosen


def told(scan: Scan) -> Steps:
    """Report the position, then each entry as it is read, then the end; entries read before count as done."""
    before = scan.since(0)
    done = len(before.learnt)
    if before.end is None:
        yield pb.LearnKeywordsResponse(total=before.total, done=done)
    while True:
        progress = scan.since(done)
        for one in progress.learnt:
            done += 1
            yield pb.LearnKeywordsResponse(total=progress.total, done=done, entry=message_of(pb.EntryLearnt, one))
        if progress.end is not None:
            yield pb.LearnKeywordsResponse(
                total=progress.total, done=done, end=pb.ScanEnd.ValueType(progress.end), reason=progress.reason
            )
            return
        if not progress.learnt:
            yield UNTIL_WRITTEN


def _state_token(project: str, scope: str, version: tuple[int, int]) -> str:
    """A token that stays equal as long as a watch has nothing new to report."""
    named = blake2b(f"{project}\0{scope}".encode(), digest_size=8).hexdigest()
    return f"{named}.{version[0]}.{version[1]}"


def _differences(shown: LearningPage | None, page: LearningPage, token: str) -> Steps:
    """Yield messages that turn the shown page into the current one; at least one."""
    before = {entry.memory_id: entry for entry in shown.entries} if shown else {}
    changed = [entry for entry in page.entries if before.get(entry.memory_id) != entry]
    gone = before.keys() - {entry.memory_id for entry in page.entries}
    # One message at least: the turn or the settings may be the only change.
    for start in range(0, max(len(changed), 1), _WATCHED_AT_ONCE):
        is_last = start + _WATCHED_AT_ONCE >= len(changed)
        yield pb.WatchLearningStateResponse(
            state=message_of(pb.LearningState, page.state),
            turn=page.turn,
            entries=map(learning_messages.entry_state, changed[start : start + _WATCHED_AT_ONCE]),
            removed_ids=() if start else sorted(gone),
            reset=shown is None and start == 0,
            caught_up=is_last,
            state_token=token if is_last else "",
        )
