"""Printing the learning log."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from hummock.cli.output import new_table, note, print_table, printable
from hummock.v1 import learning_pb2
from hummock.v1 import learning_service_pb2 as pb

__all__ = ["print_events"]


def print_events(events: Sequence[pb.LearningEvent]) -> None:
    """A line an event: its number, its time, what it is and what it is about."""
    if not events:
        note("no events")
        return
    table = new_table()
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("time", no_wrap=True)
    table.add_column("event", no_wrap=True)
    table.add_column("what", ratio=1, overflow="fold")
    for event in events:
        kind = event.WhichOneof("event") or "unknown"
        happened = event.event_time.ToDatetime().isoformat(" ", "seconds")
        table.add_row(str(event.number), happened, kind.replace("_", " "), Text(printable(_about(event, kind))))
    print_table(table)


def _about(event: pb.LearningEvent, kind: str) -> str:
    match kind:
        case "turn_observed":
            observed = event.turn_observed
            return f"{_turn(observed.scope, observed.turn)}: {observed.user_text}{_ids('used', observed.used_ids)}"
        case "keywords_learned":
            return _learned(event.keywords_learned)
        case "injected":
            injected = event.injected
            ids = _ids("referenced", injected.referenced_ids) + _ids("injected", injected.injected_ids)
            return f"{_turn(injected.scope, injected.turn)}{ids}{_ids('dropped', injected.dropped_ids)}"
        case "keywords_set":
            return f"{event.keywords_set.memory_id}: {', '.join(event.keywords_set.keywords) or 'none'}"
        case "switched":
            return "on" if event.switched else "off"
        case "forgotten":
            return ", ".join(event.forgotten.memory_ids)
        case "feedback_given":
            given = event.feedback_given
            return f"{given.query_text}{_ids('useful', given.useful_ids)}{_ids('useless', given.useless_ids)}"
        case _:
            return ""


def _learned(event: pb.KeywordsLearned) -> str:
    learner = learning_pb2.Learner.Name(event.learner).removeprefix("LEARNER_").lower()
    found = [f"{update.memory_id}: {', '.join(update.keywords)}" for update in event.updates]
    return f"turn {event.turn}, {learner}, {len(event.analyzed_ids)} analysed; {'; '.join(found) or 'nothing found'}"


def _turn(scope: str, turn: int) -> str:
    return f"{scope} turn {turn}" if scope else f"turn {turn}"


def _ids(name: str, ids: Sequence[str]) -> str:
    return f"; {name} {', '.join(ids)}" if ids else ""
