"""The questions: `hummock recall`, `render`, `search`, `explain` and `feedback`."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated

import typer
from google.protobuf.duration_pb2 import Duration
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hummock_client.channel import DEFAULT_TARGET
from hummock_client.time_zone import own_zone
from hummock_client.v1 import context_service_pb2, explain_pb2, recall_pb2
from hummock_tools.cli.connection import CALL_TIMEOUT_S, connect
from hummock_tools.cli.options import (
    JsonFlag,
    PresetOption,
    ProjectOption,
    QueryArgument,
    SinceOption,
    StaleFlag,
    TagOption,
    TargetOption,
    TopKOption,
    UntilOption,
    count_option,
    filter_of,
    recall_request,
    utf8,
)
from hummock_tools.cli.output import (
    age,
    enum_word,
    kind_word,
    new_table,
    note,
    one_line,
    print_json,
    print_line,
    print_page,
    print_table,
    printable,
    title_of,
    warn,
)

# Below this an id or a whole path would leave no room for the title; --json has them always.
_WIDE_COLUMNS = 110
_Ids = list[str] | None


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
    since: SinceOption = None,
    until: UntilOption = None,
    include_superseded: Annotated[
        bool, typer.Option("--include-superseded", help="Also those that others replace; each says which.")
    ] = False,
    allow_stale: StaleFlag = False,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Find the memories that bear on a text, and why."""
    request = recall_request(project, text, preset, top_k, filter_of(tag, since=since, until=until))
    request.include_superseded, request.allow_stale = include_superseded, allow_stale
    with connect(target) as service:
        response = service.context.Recall(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
    else:
        print_recall(response)


def render(
    project: ProjectOption,
    text: Annotated[str, typer.Argument(metavar="[TEXT]", help="What to recall for.", callback=utf8)] = "",
    memory_id: Annotated[list[str] | None, typer.Option("--id", help="Render this memory instead; repeatable.")] = None,
    form: Annotated[FormName, typer.Option("--form", help="The form of the section.")] = FormName.CONTEXT,
    budget: Annotated[int | None, count_option("--budget", "Upper bound on its tokens.")] = None,
    locale: Annotated[LocaleName | None, typer.Option("--locale", help="Language of its headings.")] = None,
    read: Annotated[list[str] | None, typer.Option("--read", help="Put this memory in full first; repeatable.")] = None,
    preset: PresetOption = None,
    top_k: TopKOption = None,
    tag: TagOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    allow_stale: StaleFlag = False,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Write the prompt section for a text: the section goes to stdout, what is known about it to stderr."""
    if bool(text) == bool(memory_id):
        raise typer.BadParameter("give either TEXT or --id")
    request = context_service_pb2.RenderRequest(
        project=project,
        form=context_service_pb2.RenderForm.Value(f"RENDER_FORM_{form.name}"),
        budget_tokens=budget,
        locale=locale or "",
        read_ids=read or (),
    )
    if memory_id:
        request.memories.ids.extend(memory_id)
    else:
        request.recall.CopyFrom(recall_request(project, text, preset, top_k, filter_of(tag, since=since, until=until)))
        request.recall.allow_stale = allow_stale
    with connect(target) as service:
        response = service.context.Render(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    if response.text:
        # A pipe gets the exact bytes; a terminal must not obey control sequences in a memory.
        print_line(printable(response.text) if sys.stdout.isatty() else response.text)
    print_rendered(response)


def search(
    text: QueryArgument,
    project: ProjectOption,
    scope: Annotated[ScopeName, typer.Option("--scope", help="What to look through.")] = ScopeName.BOTH,
    top_k: TopKOption = None,
    tag: TagOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    session: Annotated[
        str, typer.Option("--session", help="A conversation: what leans on its earlier searches is read with them.")
    ] = "",
    unseen_first: Annotated[
        bool, typer.Option("--unseen-first", help="What the session has shown comes last.")
    ] = False,
    allow_stale: StaleFlag = False,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Search code and knowledge together: the tool that an agent is given."""
    request = context_service_pb2.SearchRequest(
        project=project,
        query_text=text,
        top_k=top_k,
        scope=context_service_pb2.SearchScope.Value(f"SEARCH_SCOPE_{scope.name}"),
        filter=filter_of(tag, since=since, until=until),
        session_id=session,
        unseen_first=unseen_first,
        allow_stale=allow_stale,
        time_zone=own_zone(),
    )
    with connect(target) as service:
        response = service.context.Search(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    print_page(_results(response.results, wide=Console().width >= _WIDE_COLUMNS), "nothing was found")
    if response.together_with:
        note(printable(f"read together with: {'; '.join(response.together_with)}"))
    _print_receipt(response.receipt)
    _print_degraded(response.degraded)


def explain(
    text: QueryArgument,
    project: ProjectOption,
    memory_id: Annotated[str, typer.Option("--id", help="The memory that is asked about.", callback=utf8)],
    preset: PresetOption = None,
    top_k: TopKOption = None,
    tag: TagOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Say why a recall brings back a memory or loses it, and what would bring it back."""
    request = explain_pb2.ExplainRequest(
        recall=recall_request(project, text, preset, top_k, filter_of(tag, since=since, until=until)),
        memory_id=memory_id,
    )
    with connect(target) as service:
        response = service.context.Explain(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    print_line(printable(response.sentence))
    for change in response.changes:
        print_line(printable(f"{change.field} = {change.value}" if change.value else f"{change.field} cleared"))
    if response.HasField("numbers"):
        note(_numbers(response.numbers))
    _print_degraded(response.degraded)


def feedback(
    project: ProjectOption,
    query: Annotated[str, typer.Option("--query", help="What was asked.", callback=utf8)] = "",
    helpful: Annotated[_Ids, typer.Option("--helpful", metavar="ID", help="It was of use; repeatable.")] = None,
    not_helpful: Annotated[
        _Ids, typer.Option("--not-helpful", metavar="ID", help="It has nothing to do with it; repeatable.")
    ] = None,
    wrong: Annotated[_Ids, typer.Option("--wrong", metavar="ID", help="It is not so; repeatable.")] = None,
    words: Annotated[str, typer.Option("--note", help="In your own words.", callback=utf8)] = "",
    session: Annotated[str, typer.Option("--session", help="The session in which it was asked.", callback=utf8)] = "",
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Say which memories were of use for a query."""
    judged = (
        (context_service_pb2.JUDGEMENT_HELPFUL, helpful),
        (context_service_pb2.JUDGEMENT_NOT_HELPFUL, not_helpful),
        (context_service_pb2.JUDGEMENT_WRONG, wrong),
    )
    verdicts = [
        context_service_pb2.FeedbackVerdict(memory_id=utf8(memory_id), judgement=judgement)
        for judgement, ids in judged
        for memory_id in ids or ()
    ]
    if not verdicts and not words:
        raise typer.BadParameter("nothing to say: give --helpful, --not-helpful, --wrong or --note")
    request = context_service_pb2.FeedbackRequest(
        project=project,
        request_id=str(uuid.uuid4()),
        query_text=query,
        verdicts=verdicts,
        note=words,
        session_id=session,
    )
    with connect(target) as service:
        response = service.context.Feedback(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
        return
    print_line(f"kept {response.recorded_count} verdicts{' and the note' if words else ''}")
    if response.unknown_ids:
        note(printable(f"the project has no memory {', '.join(response.unknown_ids)}"))


def print_recall(response: recall_pb2.RecallResponse) -> None:
    """Hits, code fragments and domains as tables to stdout; the receipt to stderr."""
    if not (response.hits or response.code_fragments or response.domains):
        note("nothing was recalled")
    for title, hits in (
        ("", response.hits),
        ("code fragments", response.code_fragments),
        ("domains", response.domains),
    ):
        if hits:
            print_table(_hits(title, hits, wide=Console().width >= _WIDE_COLUMNS))
    _print_receipt(response.receipt)
    _print_degraded(response.degraded)


def print_rendered(response: context_service_pb2.RenderResponse) -> None:
    """Prints the tier of each memory, tokens and times to stderr."""
    for memory in response.memories:
        tier = context_service_pb2.Tier.Name(memory.tier).removeprefix("TIER_").lower()
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
    elapsed = _milliseconds(response.render_elapsed)
    counted = f" by {response.counter}" if response.counter else ""
    note(f"{response.token_count}/{response.budget_tokens} tokens{counted}{over}; rendered in {elapsed}")
    if response.HasField("receipt"):
        _print_receipt(response.receipt)
    _print_degraded(response.degraded)


def _print_receipt(receipt: recall_pb2.Receipt) -> None:
    """One line to stderr: the time that the recall and each of its stages took, and how much was searched."""
    stages = " · ".join(
        f"{enum_word(recall_pb2.RecallStage, each.stage)} {_milliseconds(each.elapsed)}" for each in receipt.stages
    )
    searched = sum(group.searched for group in receipt.groups)
    note(f"{_milliseconds(receipt.elapsed)}: {stages} · {searched} searched")


def _print_degraded(degraded: Iterable[recall_pb2.Degradation]) -> None:
    """Prints the parts that the service left out to stderr."""
    for each in degraded:
        reason = enum_word(recall_pb2.DegradationReason, each.reason)
        warn(f"degraded: {enum_word(recall_pb2.DegradedPart, each.part)}: {each.message or reason}")


def _hits(title: str, hits: Sequence[recall_pb2.Hit], *, wide: bool) -> Table:
    table = new_table(title=title)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("sim", justify="right", no_wrap=True)
    table.add_column("words", justify="right", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("title", ratio=3, overflow="fold")
    table.add_column("why", ratio=2, overflow="fold")
    table.add_column("age", justify="right", no_wrap=True)
    if wide:
        table.add_column("id", ratio=2, overflow="fold")
    for hit in hits:
        table.add_row(
            Text(f"{hit.score:.2f}", style="bold"),
            f"{hit.similarity:.2f}",
            f"{hit.keyword_score:.1f}",
            kind_word(hit.memory.kind),
            Text(title_of(hit.memory, whole_path=wide)),
            Text(_why(hit), style="dim"),
            age(hit.age_days),
            *([Text(printable(hit.memory.id))] if wide else []),
        )
    return table


def _results(results: Iterable[context_service_pb2.SearchResult], *, wide: bool) -> Table:
    table = new_table()
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("type", no_wrap=True)
    table.add_column("title", ratio=2, overflow="fold")
    table.add_column("content", ratio=3, overflow="fold")
    if wide:
        table.add_column("id", ratio=2, overflow="fold")
    for result in results:
        content = " ".join(printable(result.content).split())
        title = Text(printable(result.title), style="dim" if result.seen_before else "")
        table.add_row(
            f"{result.score:.2f}",
            enum_word(context_service_pb2.SearchScope, result.scope),
            title,
            Text(content, style="dim"),
            *([Text(printable(result.memory_id))] if wide else []),
        )
    return table


def _why(hit: recall_pb2.Hit) -> str:
    paths = "+".join(recall_pb2.RecallPath.Name(path).removeprefix("RECALL_PATH_").lower() for path in hit.paths)
    terms = one_line(" ".join(hit.matched_terms))
    taken = one_line(" ".join(f"{each.asked} → {each.meant}" for each in hit.corrections))
    twin = "another version" if hit.near_twin else ""
    over = "its writer has enough before it" if hit.over_writer_cap else ""
    replaced = one_line(f"replaced by {' '.join(hit.memory.superseded_by)}") if hit.memory.superseded_by else ""
    wrong = f"called wrong by {hit.wrong_count}" if hit.wrong_count else ""
    return ", ".join(part for part in (paths, terms, taken, twin, over, replaced, wrong) if part)


def _mark_words(mark: context_service_pb2.MemoryMark.ValueType) -> str:
    if mark not in context_service_pb2.MemoryMark.values():  # of a newer service
        return str(int(mark))
    return context_service_pb2.MemoryMark.Name(mark).removeprefix("MEMORY_MARK_").lower().replace("_", " ")


def _numbers(numbers: explain_pb2.ExplainNumbers) -> str:
    """Ranks and scores by stage on one line; unknown ranks as a dash."""
    ranks = f"by meaning {numbers.vector_rank or '-'}, by words {numbers.keyword_rank or '-'} of {numbers.searched}"
    scores = (
        f"cosine {numbers.cosine:.3f} · similarity {numbers.similarity:.3f} · words {numbers.keyword_score:.2f} · "
        f"evidence {numbers.evidence:.2f} · "
        f"late interaction {numbers.late_interaction_score:.3f} · decay {numbers.decay:.3f} · "
        f"verdicts {numbers.verdict:.3f} · "
        f"relevance {numbers.relevance:.3f} · score {numbers.score:.3f}"
    )
    return f"{ranks} · {scores}"


def _milliseconds(elapsed: Duration) -> str:
    """A duration as "3.1 ms"."""
    return f"{elapsed.ToNanoseconds() / 1e6:.1f} ms"
