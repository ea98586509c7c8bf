"""The learning page: injections of the next turn, the event log, and replays with other settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Final, NamedTuple

from google.protobuf.message import Message
from starlette.responses import Response

from hummock_client.v1 import learning_pb2
from hummock_client.v1 import learning_service_pb2 as pb
from hummock_tools.console.view import View, link, next_page, titles_of

FORKED: Final = ("high_above", "mid_above", "mid_cooldown_turns", "low_cooldown_turns")
"""The settings that decide on injections."""

_PAGE_SIZE = 100
_EVENTS = 50


class Happened(NamedTuple):
    """An event of the log: name, place, and content as words or ids."""

    event: pb.LearningEvent
    kind: str
    scope: str
    turn: int
    text: str
    ids: list[str]


async def learning(view: View) -> Response:
    """The state of a scope, the newest events, and a replay where numbers for it are given."""
    project, fields = view.project, view.query
    state = await view.client.send(
        pb.GetLearningStateRequest(
            project=project, scope=fields.text("scope"), page_size=_PAGE_SIZE, page_token=fields.text("page")
        )
    )
    events = await view.client.send(
        pb.ListLearningEventsRequest(
            project=project, newest_first=True, page_size=_EVENTS, page_token=fields.text("events")
        )
    )
    high_above, mid_above, mid_cooldown, low_cooldown = (fields.whole(name) for name in FORKED)
    fork = learning_pb2.LearningSettings(
        high_above=high_above, mid_above=mid_above, mid_cooldown_turns=mid_cooldown, low_cooldown_turns=low_cooldown
    )
    replay = await view.client.learning.replay(project, fork=fork) if fork.ListFields() else None
    happened = [_happened(event) for event in events.events]
    scope = fields.text("scope")
    older = link("/learning", project=project, scope=scope, events=events.next_page_token)
    ids = [id_ for each in happened for id_ in each.ids]
    for turn in replay.fork.differing if replay else ():
        ids += [*turn.added_ids, *turn.removed_ids]
    values = {
        "state": state.state,
        "turn": state.turn,
        "live": link("/live/learning", project=project, scope=scope),
        "scope": scope,
        "entries": state.entries,
        "happened": happened,
        "replay": replay,
        "titles": await titles_of(view, ids),
        "forked": FORKED,
        "fork": {name: fields.text(name) for name in FORKED},
        "next_page": next_page("/learning", state.next_page_token, project=project, scope=scope),
        "older_events": older if events.next_page_token else "",
    }
    return view.page("learning.html", values)


async def live_learning(view: View) -> Response:
    """Says whenever the state of a scope has changed, as server-sent events, until the browser hangs up."""
    request = pb.WatchLearningStateRequest(project=view.project, scope=view.query.text("scope"))

    async def changes(news: AsyncIterator[pb.WatchLearningStateResponse]) -> AsyncIterator[str]:
        async for message in news:
            if message.caught_up:
                yield f"event: changed\ndata: {message.turn}\n\n"

    return view.streamed(request, changes)


def _happened(event: pb.LearningEvent) -> Happened:
    kind = event.WhichOneof("event") or ""
    scope, turn, text, ids = "", 0, "", list[str]()
    match kind:
        case "turn_observed":
            said = event.turn_observed
            scope, turn, text, ids = said.scope, said.turn, said.user_text, list(said.used_ids)
        case "keywords_learned":
            learned = event.keywords_learned
            turn, text, ids = learned.turn, _keywords(learned.updates), list(learned.analyzed_ids)
        case "injected":
            sent = event.injected
            scope, turn, ids = sent.scope, sent.turn, list(sent.injected_ids)
        case "keywords_set":
            text, ids = _keywords([event.keywords_set]), [event.keywords_set.memory_id]
        case "settings_changed":
            text = _numbers(event.settings_changed)
        case "forgotten":
            ids = list(event.forgotten.memory_ids)
        case "feedback_given":
            given = event.feedback_given
            text, ids = given.query_text, [*given.useful_ids, *given.useless_ids, *given.wrong_ids]
    return Happened(event, kind, scope, turn, text, ids)


def _keywords(updates: Iterable[pb.EntryKeywords]) -> str:
    return ", ".join(keyword for update in updates for keyword in update.keywords)


def _numbers(settings: Message) -> str:
    return ", ".join(f"{field.name} {value}" for field, value in settings.ListFields()).replace("\n", " ")
