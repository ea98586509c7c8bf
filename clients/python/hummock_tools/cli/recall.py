"""The questions: `hummock recall`, `render`, `search`, `explain` and `feedback`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, TypeAlias

import typer
from google.protobuf.duration_pb2 import Duration
from rich.console import Console
from rich.table import Table
from typer import Option

from hummock_client.channel import DEFAULT_TARGET
from hummock_client.requests import enum_word, new_request_id
from hummock_client.time_zone import own_zone
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import explain_pb2, recall_pb2
from hummock_tools.cli import options
from hummock_tools.cli.output import (
    age,
    ask,
    cell,
    kind_word,
    new_table,
    note,
    one_line,
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


# The contract's forms of a rendered section, but MESSAGES, which is for programs; languages of headings; scopes.
FormName: TypeAlias = Literal["context", "waterfall", "index", "memories"]
LocaleName: TypeAlias = Literal["zh", "en"]
ScopeName: TypeAlias = Literal["code", "knowledge", "both"]


def recall(
    text: options.Query,
    project: options.Project,
    preset: options.Preset = None,
    top_k: options.TopK = None,
    tag: options.Tags = None,
    path: options.Paths = None,
    since: options.Since = None,
    until: options.Until = None,
    include_superseded: Annotated[
        bool, Option("--include-superseded", help="Also those that others replace; each says which.")
    ] = False,
    allow_stale: options.Stale = False,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Find the memories that bear on a text, and why."""
    request = options.recall_request(project, text, preset, top_k, tag, since, until, path)
    request.include_superseded, request.allow_stale = include_superseded, allow_stale
    response = ask(target, lambda service: service.context.Recall, request, json=json)
    print_recall(response, project)


def render(
    project: options.Project,
    text: Annotated[str, options.text_argument("[TEXT]", "What to recall for.")] = "",
    memory_id: Annotated[list[str] | None, Option("--id", help="Render this memory instead; repeatable.")] = None,
    form: Annotated[FormName, Option("--form", help="The form of the section.")] = "context",
    budget: Annotated[int | None, options.count_option("--budget", "Upper bound on its tokens.")] = None,
    locale: Annotated[LocaleName | None, Option("--locale", help="Language of its headings.")] = None,
    read: Annotated[list[str] | None, Option("--read", help="Put this memory in full first; repeatable.")] = None,
    preset: options.Preset = None,
    top_k: options.TopK = None,
    tag: options.Tags = None,
    path: options.Paths = None,
    since: options.Since = None,
    until: options.Until = None,
    allow_stale: options.Stale = False,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Write the prompt section for a text: the section goes to stdout, what is known about it to stderr."""
    if bool(text) == bool(memory_id):
        raise typer.BadParameter("give either TEXT or --id")
    request = pb.RenderRequest(
        project=project,
        form=pb.RenderForm.Value(f"RENDER_FORM_{form.upper()}"),
        budget_tokens=budget,
        locale=locale or "",
        read_ids=read or (),
    )
    if memory_id:
        request.memories.ids.extend(memory_id)
    else:
        request.recall.CopyFrom(options.recall_request(project, text, preset, top_k, tag, since, until, path))
        request.recall.allow_stale = allow_stale
    response = ask(target, lambda service: service.context.Render, request, json=json)
    if response.text:
        # A pipe gets the exact bytes; a terminal must not obey control sequences in a memory.
        print(printable(response.text) if sys.stdout.isatty() else response.text, flush=True)
    print_rendered(response, project)


def search(
    text: options.Query,
    project: options.Project,
    scope: Annotated[ScopeName, Option("--scope", help="What to look through.")] = "both",
    top_k: options.TopK = None,
    tag: options.Tags = None,
    path: options.Paths = None,
    since: options.Since = None,
    until: options.Until = None,
    session: Annotated[
        str, Option("--session", help="A conversation: what leans on its earlier searches is read with them.")
    ] = "",
    unseen_first: Annotated[bool, Option("--unseen-first", help="What the session has shown comes last.")] = False,
    allow_stale: options.Stale = False,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Search code and knowledge together: the tool that an agent is given."""
    request = pb.SearchRequest(
        project=project,
        query_text=text,
        top_k=top_k,
        scope=pb.SearchScope.Value(f"SEARCH_SCOPE_{scope.upper()}"),
        filter=options.filter_of(tag, since=since, until=until, paths=path),
        session_id=session,
        unseen_first=unseen_first,
        allow_stale=allow_stale,
        time_zone=own_zone(),
    )
    response = ask(target, lambda service: service.context.Search, request, json=json)
    table = _results(response.results, wide=Console().width >= _WIDE_COLUMNS)
    print_page(table, f"nothing was found in project {project}")
    if response.together_with:
        note(f"read together with: {'; '.join(response.together_with)}")
    _print_nothing_known(response)
    _print_receipt(response.receipt)
    _print_degraded(response.degraded)


def explain(
    text: options.Query,
    project: options.Project,
    memory_id: Annotated[str, options.text_option("--id", "The memory that is asked about.")],
    preset: options.Preset = None,
    top_k: options.TopK = None,
    tag: options.Tags = None,
    path: options.Paths = None,
    since: options.Since = None,
    until: options.Until = None,
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Say why a recall brings back a memory or loses it, and what would bring it back."""
    request = explain_pb2.ExplainRequest(
        recall=options.recall_request(project, text, preset, top_k, tag, since, until, path), memory_id=memory_id
    )
    response = ask(target, lambda service: service.context.Explain, request, json=json)
    print_line(response.sentence)
    for change in response.changes:
        print_line(f"{change.field} = {change.value}" if change.value else f"{change.field} cleared")
    if response.HasField("numbers"):
        note(_numbers(response.numbers))
    _print_degraded(response.degraded)


def feedback(
    project: options.Project,
    query: Annotated[str, options.text_option("--query", "What was asked.")] = "",
    helpful: Annotated[_Ids, Option("--helpful", metavar="ID", help="It was of use; repeatable.")] = None,
    not_helpful: Annotated[
        _Ids, Option("--not-helpful", metavar="ID", help="It has nothing to do with it; repeatable.")
    ] = None,
    wrong: Annotated[_Ids, Option("--wrong", metavar="ID", help="It is not so; repeatable.")] = None,
    words: Annotated[str, options.text_option("--note", "In your own words.")] = "",
    session: Annotated[str, options.text_option("--session", "The session in which it was asked.")] = "",
    json: options.Json = False,
    target: options.Target = DEFAULT_TARGET,
) -> None:
    """Say which memories were of use for a query."""
    judged = {pb.JUDGEMENT_HELPFUL: helpful, pb.JUDGEMENT_NOT_HELPFUL: not_helpful, pb.JUDGEMENT_WRONG: wrong}
    verdicts = [
        pb.FeedbackVerdict(memory_id=options.utf8(memory_id), judgement=judgement)
        for judgement, ids in judged.items()
        for memory_id in ids or ()
    ]
    if not verdicts and not words:
        raise typer.BadParameter("nothing to say: give --helpful, --not-helpful, --wrong or --note")
    request = pb.FeedbackRequest(
        project=project,
        request_id=new_request_id(),
        query_text=query,
        verdicts=verdicts,
        note=words,
        session_id=session,
    )
    response = ask(target, lambda service: service.context.Feedback, request, json=json)
    print_line(f"kept {response.recorded_count} verdicts{' and the note' if words else ''}")
    if response.unknown_ids:
        note(f"the project has no memory {', '.join(response.unknown_ids)}")


def print_recall(response: recall_pb2.RecallResponse, project: str) -> None:
    """Hits, code fragments and domains as tables to stdout; the receipt to stderr."""
    if not (response.hits or response.code_fragments or response.domains):
        note(f"nothing was recalled in project {project}")
    groups = {"": response.hits, "code fragments": response.code_fragments, "domains": response.domains}
    for title, hits in groups.items():
        if hits:
            print_table(_hits(title, hits, wide=Console().width >= _WIDE_COLUMNS))
    _print_nothing_known(response)
    _print_receipt(response.receipt)
    _print_degraded(response.degraded)


def print_rendered(response: pb.RenderResponse, project: str) -> None:
    """Prints the tier of each memory, tokens and times to stderr."""
    for memory in response.memories:
        marks = (enum_word(pb.MemoryMark, mark).replace("_", " ") for mark in memory.marks)
        note(
            f"{enum_word(pb.Tier, memory.tier):<8}{memory.score:.2f}  {memory.token_count:>5} tokens  "
            f"{kind_word(memory.kind):<7}{memory.memory_id}  ({', '.join([memory.reason, *marks])})"
        )
    if not (response.memories or response.missing_ids):
        note(f"nothing was recalled in project {project}")
    for missing in response.missing_ids:
        warn(f"missing: {missing}")
    _print_nothing_known(response)
    if response.instructions:
        note(response.instructions)
    over = ", over the budget" if response.over_budget else ""
    elapsed = _milliseconds(response.render_elapsed)
    counted = f" by {response.counter}" if response.counter else ""
    note(f"{response.token_count}/{response.budget_tokens} tokens{counted}{over}; rendered in {elapsed}")
    if response.HasField("receipt"):
        _print_receipt(response.receipt)
    _print_degraded(response.degraded)


def _print_nothing_known(response: recall_pb2.RecallResponse | pb.SearchResponse | pb.RenderResponse) -> None:
    """One line to stderr if nothing stored answers: how sure that is, the nearest memory, and why it is not enough."""
    if not response.HasField("nothing_known"):
        return
    known = response.nothing_known
    nearest = f'; the nearest is {known.nearest_id} "{known.nearest_title}"' if known.nearest_id else ""
    note(f"nothing known answers this ({known.confidence:.0%}){nearest}: {known.reason}")


def _print_receipt(receipt: recall_pb2.Receipt) -> None:
    """One line to stderr: the time that the recall and each of its stages took, and how much was searched."""
    stages = " · ".join(
        f"{enum_word(recall_pb2.RecallStage, each.stage)} {_milliseconds(each.elapsed)}" for each in receipt.stages
    )
    searched = sum(group.searched for group in receipt.groups)
    note(f"{_milliseconds(receipt.elapsed)}: {stages} · {searched} searched")


def _print_degraded(degraded: Iterable[recall_pb2.Degradation]) -> None:
    for each in degraded:
        reason = enum_word(recall_pb2.DegradationReason, each.reason)
        warn(f"degraded: {enum_word(recall_pb2.DegradedPart, each.part)}: {each.message or reason}")


def _hits(title: str, hits: Sequence[recall_pb2.Hit], *, wide: bool) -> Table:
    numbers = dict.fromkeys(("score", "sim", "words"), "right")
    table = new_table({**numbers, "kind": "left", "title": 3, "why": 2, "age": "right", **_id_column(wide)}, title)
    for hit in hits:
        table.add_row(
            cell(f"{hit.score:.2f}", "bold"),
            f"{hit.similarity:.2f}",
            f"{hit.keyword_score:.1f}",
            kind_word(hit.memory.kind),
            title_of(hit.memory, whole_path=wide),
            cell(_why(hit), "dim"),
            age(hit.age_days),
            *([cell(hit.memory.id)] if wide else []),
        )
    return table


def _results(results: Iterable[pb.SearchResult], *, wide: bool) -> Table:
    table = new_table({"score": "right", "type": "left", "title": 2, "content": 3, **_id_column(wide)})
    for result in results:
        table.add_row(
            f"{result.score:.2f}",
            enum_word(pb.SearchScope, result.scope),
            cell(result.title, "dim" if result.seen_before else ""),
            cell(" ".join(printable(result.content).split()), "dim"),
            *([cell(result.memory_id)] if wide else []),
        )
    return table


def _why(hit: recall_pb2.Hit) -> str:
    paths = "+".join(enum_word(recall_pb2.RecallPath, path) for path in hit.paths)
    terms = one_line(" ".join(hit.matched_terms))
    taken = one_line(" ".join(f"{each.asked} → {each.meant}" for each in hit.corrections))
    twin = "another version" if hit.near_twin else ""
    over = "its writer has enough before it" if hit.over_writer_cap else ""
    replaced = one_line(f"replaced by {' '.join(hit.memory.superseded_by)}") if hit.memory.superseded_by else ""
    likely = one_line(f"probably replaced by {hit.likely_replaced_by}") if hit.likely_replaced_by else ""
    wrong = f"called wrong by {hit.wrong_count}" if hit.wrong_count else ""
    return ", ".join(part for part in (paths, terms, taken, twin, over, replaced, likely, wrong) if part)


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


def _id_column(wide: bool) -> dict[str, int]:
    return {"id": 2} if wide else {}


def _milliseconds(elapsed: Duration) -> str:
    return f"{elapsed.ToNanoseconds() / 1e6:.1f} ms"
