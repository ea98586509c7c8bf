"""`hummock learning`: how a project learns of its entries. What stores memories is `hummock learn`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import typer
from typer import Argument, Option

from hummock_client.channel import DEFAULT_TARGET
from hummock_client.requests import enum_word, new_request_id
from hummock_client.v1 import learning_pb2
from hummock_client.v1 import learning_service_pb2 as pb
from hummock_tools.cli import options
from hummock_tools.cli.connection import CommandFailed, connect
from hummock_tools.cli.output import Meter, ask, cell, new_table, note, print_json, print_line, print_page, print_table

app = typer.Typer(no_args_is_help=True, help="Show and change how a project learns of its entries.")

_OUTCOMES = {
    pb.ENTRY_OUTCOME_LEARNT: "learnt",
    pb.ENTRY_OUTCOME_NOTHING_NEW: "nothing new",
    pb.ENTRY_OUTCOME_FAILED: "failed",
    pb.ENTRY_OUTCOME_GONE: "no such entry",
}
_STATUS = {
    learning_pb2.INJECTION_STATUS_INJECTING: "injecting",
    learning_pb2.INJECTION_STATUS_COOLING_DOWN: "cooling down",
    learning_pb2.INJECTION_STATUS_IDLE: "idle",
}

ScopeOption = Annotated[str, options.text_option("--scope", "A session's id; the project itself if unset.")]
HighOption = Annotated[int | None, options.count_option("--high-above", "Referenced more often: in every turn.")]
MidOption = Annotated[int | None, options.count_option("--mid-above", "Referenced more often: middle cooldown.")]
MidTurnsOption = Annotated[int | None, options.count_option("--mid-cooldown", "Turns of the middle cooldown.")]
LowTurnsOption = Annotated[int | None, options.count_option("--low-cooldown", "Turns of the low cooldown.")]


@app.command("run")
def run(
    project: options.Project,
    ids: Annotated[
        list[str] | None, Argument(metavar="[ID]...", help="Entries to read; those without keywords if unset.")
    ] = None,
    every: Annotated[bool, Option("--all", help="Read all entries.")] = False,
    json: options.JsonLines = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Have entries read for keywords, and show what becomes of each; it goes on after Ctrl-C."""
    if ids and every:
        raise typer.BadParameter("give either IDs or --all")
    request = pb.LearnKeywordsRequest(
        project=project,
        scope=pb.SCAN_SCOPE_ALL if every else pb.SCAN_SCOPE_UNSPECIFIED,
        memory_ids=[options.utf8(one) for one in ids or ()],
    )
    last = pb.LearnKeywordsResponse()
    with connect(target) as service, Meter() as meter:
        try:
            for last in service.learning.LearnKeywords(request):
                if json:
                    print_json(last, indent=None)
                elif last.HasField("entry"):
                    print_line(_entry_line(last.entry))
                meter.show("reading", last.done, last.total)
        except KeyboardInterrupt:
            note(f"{last.done} of {last.total} are read; the service goes on, and the same command joins it")
            return
    _conclude(last)


@app.command("status")
def status(
    project: options.Project,
    scope: ScopeOption = "",
    turn: Annotated[int | None, options.count_option("--turn", "The scope's next turn if unset.")] = None,
    limit: Annotated[int, Option("--limit", min=1, max=1000, help="Entries of one page.")] = 100,
    page: options.Page = "",
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Show what was learnt and used, and what a turn would inject."""
    request = pb.GetLearningStateRequest(project=project, scope=scope, turn=turn, page_size=limit, page_token=page)
    response = ask(target, lambda service: service.learning.GetLearningState, request, json=json)
    _print_state(response)
    if response.next_page_token:
        note(f"there are more: --page {response.next_page_token}")


@app.command("watch")
def watch(
    project: options.Project,
    scope: ScopeOption = "",
    json: Annotated[bool, Option("--json", help="Print each change as a line of JSON.")] = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Show the state, then whatever changes, until Ctrl-C."""
    with connect(target) as service:
        try:
            for news in service.learning.WatchLearningState(pb.WatchLearningStateRequest(project=project, scope=scope)):
                if json:
                    print_json(news, indent=None)
                else:
                    _print_state(news, news.removed_ids)
        except KeyboardInterrupt:
            note("watched until here")


@app.command("log")
def log(
    project: options.Project,
    oldest: Annotated[bool, Option("--oldest", help="Oldest first.")] = False,
    limit: Annotated[int, Option("--limit", min=1, max=1000, help="Events of one page.")] = 20,
    page: options.Page = "",
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """List the events that the state was made by, the newest first."""
    request = pb.ListLearningEventsRequest(project=project, newest_first=not oldest, page_size=limit, page_token=page)
    response = ask(target, lambda service: service.learning.ListLearningEvents, request, json=json)
    table = new_table({"#": "right", "time": "left", "event": "left", "what": 1})
    for event in response.events:
        kind = event.WhichOneof("event") or "unknown"
        happened = f"{event.event_time.ToDatetime(options.clock()):%Y-%m-%d %H:%M:%S}"
        table.add_row(str(event.number), happened, kind.replace("_", " "), cell(_about(event, kind)))
    print_page(table, f"no events in project {project}", response.next_page_token)


@app.command("replay")
def replay(
    project: options.Project,
    high_above: HighOption = None,
    mid_above: MidOption = None,
    mid_cooldown: MidTurnsOption = None,
    low_cooldown: LowTurnsOption = None,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Play the log again and compare; with a number, say what it would have injected. Changes nothing."""
    fork = learning_pb2.LearningSettings(
        high_above=high_above, mid_above=mid_above, mid_cooldown_turns=mid_cooldown, low_cooldown_turns=low_cooldown
    )
    request = pb.ReplayLearningRequest(project=project, fork=fork if fork.ListFields() else None)
    response = ask(target, lambda service: service.learning.ReplayLearning, request)
    print_json(response) if json else _print_replay(response)
    if not response.matches:
        raise CommandFailed("the state is not what its log gives; restore a backup, and report this")


@app.command("on")
def on(project: options.NamedProject, json: options.Json = False, target: options.Target = DEFAULT_TARGET) -> None:
    """Inject entries by what is said and by use."""
    _change(pb.UpdateLearningSettingsRequest(project=project, enabled=True), target, json=json)


@app.command("off")
def off(project: options.NamedProject, json: options.Json = False, target: options.Target = DEFAULT_TARGET) -> None:
    """Inject every entry; nothing that was learnt is lost."""
    _change(pb.UpdateLearningSettingsRequest(project=project, enabled=False), target, json=json)


@app.command("set")
def set_numbers(
    project: options.NamedProject,
    high_above: HighOption = None,
    mid_above: MidOption = None,
    mid_cooldown: MidTurnsOption = None,
    low_cooldown: LowTurnsOption = None,
    min_similarity: Annotated[
        float | None, Option("--min-similarity", min=0, max=1, help="From which words refer to an entry.")
    ] = None,
    candidates: Annotated[int | None, Option("--candidates", min=1, max=50, help="Analysed after a turn.")] = None,
    analysis_cooldown: Annotated[
        int | None, options.count_option("--analysis-cooldown", "Turns before an entry is analysed again.")
    ] = None,
    keyword_target: Annotated[
        int | None, Option("--keyword-target", min=1, max=64, help="Keywords of an entry that is learnt.")
    ] = None,
    pause: Annotated[
        float | None, Option("--cold-start-pause", min=0, max=3600, help="Seconds between two entries.")
    ] = None,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Change the numbers of the loop; what is not given stays."""
    numbers = learning_pb2.LearningSettings(
        high_above=high_above,
        mid_above=mid_above,
        mid_cooldown_turns=mid_cooldown,
        low_cooldown_turns=low_cooldown,
        min_similarity=min_similarity,
        candidates=candidates,
        analysis_cooldown_turns=analysis_cooldown,
        keyword_target=keyword_target,
    )
    if pause is not None:
        numbers.cold_start_pause.FromNanoseconds(round(pause * 1e9))
    if not numbers.ListFields():
        raise typer.BadParameter("give a number to change, for example --high-above 5")
    _change(pb.UpdateLearningSettingsRequest(project=project, settings=numbers), target, json=json)


@app.command("keywords")
def keywords(
    project: options.NamedProject,
    memory_id: Annotated[str, options.text_argument("ID", "The entry.")],
    words: Annotated[
        list[str] | None, Argument(metavar="[KEYWORD]...", help="All that it shall have; none removes them.")
    ] = None,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Write an entry's keywords by hand, in place of those that it has."""
    chosen = pb.EntryKeywords(memory_id=memory_id, keywords=[options.utf8(word) for word in words or ()])
    _change(pb.UpdateLearningSettingsRequest(project=project, keywords=[chosen]), target, json=json)


def _change(request: pb.UpdateLearningSettingsRequest, target: str, *, json: bool) -> None:
    request.request_id = new_request_id()
    response = ask(target, lambda service: service.learning.UpdateLearningSettings, request, json=json)
    if response.missed_turns:
        note(f"{response.missed_turns} turns came while learning was off")
    if response.cold_start:
        note("entries without keywords are now read; hummock learning run shows how far it is")
    if response.cold_start_skipped:
        note(response.cold_start_skipped)
    print_line(_summary(response.state, None))
    print_line(_numbers(response.state.settings))


def _entry_line(entry: pb.EntryLearnt) -> str:
    said = _words(entry.keywords, entry.hints) or entry.reason
    return f"{_OUTCOMES.get(entry.outcome, '?')}  {entry.memory_id}" + (f"  {said}" if said else "")


def _conclude(last: pb.LearnKeywordsResponse) -> None:
    if last.end == pb.SCAN_END_DONE:
        note(f"{last.done} entries were read" if last.total else "there was nothing to read")
        return
    fix = "; switch it on with: hummock learning on" if last.end == pb.SCAN_END_OFF else ""
    raise CommandFailed(f"{last.reason}{fix}")


def _print_state(
    told: pb.GetLearningStateResponse | pb.WatchLearningStateResponse, removed_ids: Iterable[str] = ()
) -> None:
    numbers = dict.fromkeys(("used", "sent", "p"), "right")
    table = new_table({"entry": 3, "keywords": 3, **numbers, "status": "left", "why": 4})
    for entry in told.entries:
        row, usage = entry.injection, entry.injection.usage
        table.add_row(
            cell(entry.title or entry.memory_id),
            cell(_words(entry.profile.keywords, entry.profile.hints)),
            str(usage.frequency),
            str(usage.last_sent_turn) if usage.HasField("last_sent_turn") else "-",
            f"{row.probability:.2f}",
            _STATUS.get(row.status, ""),
            cell(row.reason),
        )
    if table.row_count:
        print_table(table)
    for memory_id in removed_ids:
        print_line(f"removed {memory_id}")
    note(_summary(told.state, told.turn))


def _summary(state: pb.LearningState, turn: int | None) -> str:
    parts = ["learning is on" if state.enabled else "learning is off: every entry is injected"]
    if turn is not None:
        parts.append(f"turn {turn}")
    parts.append(f"{state.turns} turns seen")
    if state.missed_turns:
        parts.append(f"{state.missed_turns} missed")
    return " · ".join([*parts, f"{state.events} events"])


def _numbers(settings: learning_pb2.LearningSettings) -> str:
    return (
        f"high above {settings.high_above} · "
        f"mid above {settings.mid_above}, after {settings.mid_cooldown_turns} turns · "
        f"low after {settings.low_cooldown_turns} turns · similarity {settings.min_similarity:g} · "
        f"{settings.candidates} candidates, again after {settings.analysis_cooldown_turns} turns · "
        f"{settings.keyword_target} keywords wanted · pause {settings.cold_start_pause.ToNanoseconds() / 1e9:g} s"
    )


def _print_replay(response: pb.ReplayLearningResponse) -> None:
    same = "the same state" if response.matches else "ANOTHER STATE"
    print_line(f"{response.events} events give {same}: {response.replayed_digest}")
    if not response.HasField("fork"):
        return
    fork = response.fork
    print_line(
        f"{fork.differing_count} of {fork.turn_count} turns would have differed: "
        f"{fork.forked_injected_count} injections instead of {fork.injected_count}"
    )
    for turn in fork.differing:
        changes = [*(f"+{added}" for added in turn.added_ids), *(f"-{removed}" for removed in turn.removed_ids)]
        print_line(f"#{turn.event}  {_turn(turn.scope, turn.turn)}  {' '.join(changes)}")


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
    learner = enum_word(learning_pb2.Learner, event.learner)
    found = [f"{update.memory_id}: {', '.join(update.keywords)}" for update in event.updates]
    found += [f"{update.memory_id}: {_words((), update.keywords)}" for update in event.hints]
    return f"turn {event.turn}, {learner}, {len(event.analyzed_ids)} analysed; {'; '.join(found) or 'nothing found'}"


def _words(keywords: Sequence[str], hints: Sequence[str]) -> str:
    return ", ".join((*keywords, *(f"{hint}?" for hint in hints)))


def _turn(scope: str, turn: int) -> str:
    return f"{scope} turn {turn}" if scope else f"turn {turn}"


def _ids(name: str, ids: Sequence[str]) -> str:
    return f"; {name} {', '.join(ids)}" if ids else ""
