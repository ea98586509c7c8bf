"""`hummock recall`, `hummock render` and `hummock search`: the questions."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer
from rich.text import Text

from hummock.cli.connection import CALL_TIMEOUT_S, DEFAULT_TARGET, connect
from hummock.cli.hits import kind_word, print_degraded, print_recall, print_receipt
from hummock.cli.options import (
    JsonFlag,
    PresetOption,
    ProjectOption,
    QueryArgument,
    TagOption,
    TargetOption,
    TopKOption,
    unsigned,
    utf8,
)
from hummock.cli.output import milliseconds, new_table, note, print_json, print_line, print_table, printable, warn
from hummock.cli.requests import filter_of, recall_request
from hummock.v1 import context_service_pb2 as pb

__all__ = ["FormName", "print_rendered", "recall", "render", "search"]


class FormName(StrEnum):
    """The contract's forms of a rendered section; MESSAGES is for programs."""

    CONTEXT = "context"
    WATERFALL = "waterfall"
    INDEX = "index"
    MEMORIES = "memories"


class LocaleName(StrEnum):
    """The contract's languages of headings."""

    ZH = "zh"
    EN = "en"


class ScopeName(StrEnum):
    """The contract's scopes of a search."""

    CODE = "code"
    KNOWLEDGE = "knowledge"
    BOTH = "both"


def recall(
    text: QueryArgument,
    project: ProjectOption,
    preset: PresetOption = None,
    top_k: TopKOption = None,
    tag: TagOption = None,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Find the memories that bear on a text, and why."""
    with connect(target) as service:
        response = service.context.Recall(recall_request(project, text, preset, top_k, tag), timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
    else:
        print_recall(response)


def render(
    project: ProjectOption,
    text: Annotated[str, typer.Argument(metavar="[TEXT]", help="What to recall for.", callback=utf8)] = "",
    memory_id: Annotated[list[str] | None, typer.Option("--id", help="Render this memory instead; repeatable.")] = None,
    form: Annotated[FormName, typer.Option("--form", help="The form of the section.")] = FormName.CONTEXT,
    budget: Annotated[
        int | None, typer.Option("--budget", help="Upper bound on its tokens.", callback=unsigned(32))
    ] = None,
    locale: Annotated[LocaleName | None, typer.Option("--locale", help="Language of its headings.")] = None,
    read: Annotated[list[str] | None, typer.Option("--read", help="Put this memory in full first; repeatable.")] = None,
    preset: PresetOption = None,
    top_k: TopKOption = None,
    tag: TagOption = None,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Write the prompt section for a text: the section goes to stdout, what is known about it to stderr."""
    if bool(text) == bool(memory_id):
        raise typer.BadParameter("give either TEXT or --id")
    request = pb.RenderRequest(
        project=project,
        form=pb.RenderForm.Value(f"RENDER_FORM_{form.name}"),
        budget_tokens=budget,
        locale=pb.Locale.Value(f"LOCALE_{locale.name}") if locale else pb.LOCALE_UNSPECIFIED,
        read_ids=read or (),
    )
    if memory_id:
        request.memories.ids.extend(memory_id)
    else:
        request.recall.CopyFrom(recall_request(project, text, preset, top_k, tag))
    with connect(target) as service:
        response = service.context.Render(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    if response.text:
        # A pipe gets the very bytes; a terminal must not obey what a memory says.
        print_line(printable(response.text) if sys.stdout.isatty() else response.text)
    print_rendered(response)


def print_rendered(response: pb.RenderResponse) -> None:
    """What became of each memory, tokens and times, to stderr."""
    for memory in response.memories:
        tier = pb.Tier.Name(memory.tier).removeprefix("TIER_").lower()
        where = printable(memory.memory_id)
        note(
            f"{tier:<8}{memory.score:.2f}  {memory.token_count:>5} tokens  {kind_word(memory.kind):<7}"
            f"{where}  ({', '.join([memory.reason, *map(_mark_words, memory.marks)])})"
        )
    for missing in response.missing_ids:
        warn(f"missing: {printable(missing)}")
    if response.instructions:
        note(response.instructions)
    over = ", over the budget" if response.over_budget else ""
    elapsed = milliseconds(response.render_elapsed)
    counted = f" by {response.counter}" if response.counter else ""
    note(f"{response.token_count}/{response.budget_tokens} tokens{counted}{over}; rendered in {elapsed}")
    if response.HasField("receipt"):
        print_receipt(response.receipt)
    print_degraded(response.degraded)


def _mark_words(mark: pb.MemoryMark.ValueType) -> str:
    if mark not in pb.MemoryMark.values():  # of a newer service
        return str(int(mark))
    return pb.MemoryMark.Name(mark).removeprefix("MEMORY_MARK_").lower().replace("_", " ")


def search(
    text: QueryArgument,
    project: ProjectOption,
    scope: Annotated[ScopeName, typer.Option("--scope", help="What to look through.")] = ScopeName.BOTH,
    top_k: TopKOption = None,
    tag: TagOption = None,
    session: Annotated[
        str, typer.Option("--session", help="A conversation: what leans on its earlier searches is read with them.")
    ] = "",
    unseen_first: Annotated[
        bool, typer.Option("--unseen-first", help="What the session has shown comes last.")
    ] = False,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Search code and knowledge together: the tool that an agent is given."""
    request = pb.SearchRequest(
        project=project,
        query_text=text,
        top_k=top_k,
        scope=pb.SearchScope.Value(f"SEARCH_SCOPE_{scope.name}"),
        filter=filter_of(tag),
        session_id=session,
        unseen_first=unseen_first,
    )
    with connect(target) as service:
        response = service.context.Search(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    table = new_table()
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("type", no_wrap=True)
    table.add_column("title", ratio=2, overflow="fold")
    table.add_column("content", ratio=3, overflow="fold")
    for result in response.results:
        content = " ".join(printable(result.content).split())
        title = Text(printable(result.title), style="dim" if result.seen_before else "")
        table.add_row(f"{result.score:.2f}", result.type, title, Text(content, style="dim"))
    if response.results:
        print_table(table)
    else:
        note("nothing was found")
    if response.together_with:
        note(printable(f"read together with: {'; '.join(response.together_with)}"))
    print_receipt(response.receipt)
    print_degraded(response.degraded)
