"""`hummock learning run`: entries are read for keywords, and what becomes of each is printed."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from google.protobuf.json_format import MessageToJson

from hummock.cli.connection import DEFAULT_TARGET, connect
from hummock.cli.failure import CommandFailed
from hummock.cli.meter import Meter
from hummock.cli.options import ProjectOption, TargetOption, utf8
from hummock.cli.output import note, print_line, printable
from hummock.v1 import learning_service_pb2 as pb

__all__ = ["run"]

_OUTCOMES = {
    pb.ENTRY_OUTCOME_LEARNT: "learnt",
    pb.ENTRY_OUTCOME_NOTHING_NEW: "nothing new",
    pb.ENTRY_OUTCOME_FAILED: "failed",
    pb.ENTRY_OUTCOME_GONE: "no such entry",
}


def run(
    project: ProjectOption,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Entries to read; those without keywords if unset.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Read all entries.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print each message as a line of JSON.")] = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Have entries read for keywords, and show what becomes of each; it goes on after Ctrl-C."""
    if ids and every:
        raise typer.BadParameter("give either IDs or --all")
    request = pb.LearningServiceLearnKeywordsRequest(
        project=project,
        scope=pb.SCAN_SCOPE_ALL if every else pb.SCAN_SCOPE_UNSPECIFIED,
        memory_ids=[utf8(one) for one in ids or ()],
    )
    last = pb.LearningServiceLearnKeywordsResponse()
    with connect(target) as service, Meter() as meter:
        try:
            for last in service.learning.LearnKeywords(request):
                if json:
                    print_line(MessageToJson(last, ensure_ascii=False, indent=None))
                elif last.HasField("entry"):
                    print_line(_line(last.entry))
                meter.show("reading", last.done, last.total)
                # Whoever reads a pipe shall not wait for a full buffer.
                sys.stdout.flush()
        except KeyboardInterrupt:
            note(f"{last.done} of {last.total} are read; the service goes on, and the same command joins it")
            return
    _conclude(last)


def _line(entry: pb.EntryLearnt) -> str:
    said = ", ".join(entry.keywords) or entry.reason
    return printable(f"{_OUTCOMES.get(entry.outcome, '?')}  {entry.memory_id}" + (f"  {said}" if said else ""))


def _conclude(last: pb.LearningServiceLearnKeywordsResponse) -> None:
    if last.end == pb.SCAN_END_DONE:
        note(f"{last.done} entries were read" if last.total else "there was nothing to read")
        return
    fix = "; switch it on with: hummock learning on" if last.end == pb.SCAN_END_OFF else ""
    raise CommandFailed(f"{last.reason}{fix}")
