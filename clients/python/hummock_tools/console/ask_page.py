"""Pages for a recall with its explanation, and for the prompt rendered from one.

A service joins the paths' scores, each divided by its pool's best, by shares that the receipt has on average. Of
one hit the parts of the bar are therefore estimates; whatever they leave of the score came from its neighbours, its
time, its name or the cross-encoder. The numbers alongside the bar are those of the hit itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from google.protobuf import json_format
from starlette.responses import Response

from hummock_client import HummockCallError
from hummock_client.time_zone import own_zone
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import explain_pb2, memory_pb2, recall_pb2
from hummock_tools.console.guard import BadInput, Fields
from hummock_tools.console.view import View, link, milliseconds, status_of

NUMBERS: Final = ("relevance_weight", "min_similarity", "half_life_days")
"""Fields of the tuning that the forms of both columns have, as sliders where scripts run."""

PRESETS: Final = tuple(recall_pb2.Preset.values())[1:]
DECAY_MODES: Final = tuple(recall_pb2.DecayMode.values())[1:]

_LARGEST_BASE = 64 * 1024


def recall_of(project: str, fields: Fields, prefix: str = "") -> recall_pb2.RecallRequest:
    """Build the recall of a form.

    Args:
        project: Project to ask; the project of a request in `recall` is ignored.
        fields: Fields of the form. `recall` may hold a whole request as JSON; the form's own fields replace its values.
            Without a `q` the request is taken as it is.
        prefix: Prefix of the names of settings, not of `q` and `recall`.

    Raises:
        BadInput: A field that no form of ours sends.
    """
    request = _base(fields.text("recall"))
    request.project = project
    request.view = memory_pb2.MEMORY_VIEW_FULL
    if "q" not in fields:
        return request
    request.query_text = fields.text("q")
    request.time_zone = request.time_zone or own_zone()
    preset = fields.choice(f"{prefix}preset", PRESETS)
    request.preset = recall_pb2.Preset.ValueType(preset)
    for name in NUMBERS:
        _set_or_clear(request.tuning, name, fields.number(f"{prefix}{name}"))
    _set_or_clear(request.tuning, "top_k", fields.whole(f"{prefix}top_k"))
    mode = fields.choice(f"{prefix}decay_mode", DECAY_MODES)
    request.tuning.decay_mode = recall_pb2.DecayMode.ValueType(mode)
    return request


def as_text(request: recall_pb2.RecallRequest) -> str:
    """The request as an address carries it."""
    return json_format.MessageToJson(request, indent=None, ensure_ascii=False)


def _base(text: str) -> recall_pb2.RecallRequest:
    request = recall_pb2.RecallRequest()
    if not text:
        return request
    if len(text) > _LARGEST_BASE:
        raise BadInput("the recall of this address is too long")
    try:
        json_format.Parse(text, request, ignore_unknown_fields=True)
    except json_format.ParseError as error:
        raise BadInput("the recall of this address cannot be read") from error
    return request


def _set_or_clear(tuning: recall_pb2.RecallTuning, name: str, value: float | None) -> None:
    if value is None:
        tuning.ClearField(name)  # type: ignore[arg-type] # names of this message's fields
    else:
        setattr(tuning, name, value)


WIDTH: Final = 200.0
"""Largest width of a bar, in units of its drawing."""

PARTS: Final = ("vector", "words", "late", "beside", "lost")
"""Parts in the order of the bar. The last is what age and verdicts took away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A segment of a bar: the part's name, its share of the score, and its position."""

    part: str
    worth: float
    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A stage of a recall: its duration and its position."""

    stage: int
    took_ms: float
    x: float
    width: float


def score_bars(hits: Sequence[recall_pb2.Hit], receipt: recall_pb2.Receipt) -> list[list[Segment]]:
    """The bar of each hit of a group; equal lengths are equal scores."""
    best_similarity = max((hit.similarity for hit in hits), default=0.0)
    best_keyword = max((hit.keyword_score for hit in hits), default=0.0)
    best_late = max((hit.late_interaction_score for hit in hits), default=0.0)
    vector, late = receipt.vector_weight, receipt.late_interaction_weight
    bars = []
    for hit in hits:
        own_late = late if hit.late_interaction_score > 0 else 0.0
        own_vector = vector if hit.similarity > 0 else 0.0
        parts = [
            (1 - own_late) * own_vector * _of_best(hit.similarity, best_similarity),
            (1 - own_late) * (1 - own_vector) * _of_best(hit.keyword_score, best_keyword),
            own_late * _of_best(hit.late_interaction_score, best_late),
        ]
        bars.append(_bar(hit, parts))
    return bars


def waterfall(stages: Sequence[recall_pb2.StageTime]) -> list[Step]:
    """The stages one after the other, over the whole width."""
    total_ms = sum(milliseconds(stage.elapsed) for stage in stages)
    steps, at = [], 0.0
    for stage in stages:
        took_ms = milliseconds(stage.elapsed)
        width = WIDTH * took_ms / total_ms if total_ms > 0 else 0.0
        steps.append(Step(stage=stage.stage, took_ms=took_ms, x=round(at, 2), width=round(max(width, 0.5), 2)))
        at += width
    return steps


def _bar(hit: recall_pb2.Hit, parts: list[float]) -> list[Segment]:
    factor = hit.decay * (hit.verdict or 1.0)
    before = hit.score / factor if factor > 0 else hit.score
    estimated = sum(parts)
    if estimated > before > 0:
        parts = [part * before / estimated for part in parts]
    beside = max(0.0, before - sum(parts))
    # The bar ends where the score does; after it stands what it would have had.
    kept = hit.score / before if before > 0 else 0.0
    worths = [part * kept for part in (*parts, beside)]
    worths.append(max(0.0, min(before, 1.0) - hit.score))
    segments, at = [], 0.0
    for name, worth in zip(PARTS, worths, strict=True):
        width = WIDTH * worth
        if width >= 0.1:
            segments.append(Segment(part=name, worth=worth, x=round(at, 2), width=round(width, 2)))
        at += width
    return segments


def _of_best(value: float, best: float) -> float:
    return max(value, 0.0) / best if best > 0 else 0.0


FORMS: Final = tuple(pb.RenderForm.values())[1:]
PLACEMENTS: Final = tuple(pb.Placement.values())[1:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Lines that are in both texts, in the turn before alone ("del") or in this one alone ("ins")."""

    tag: str
    text: str


async def prompt(view: View) -> Response:
    """Show a preview of the prompt, which is not counted."""
    earlier = view.query.text("before").strip()
    request = _request_of(view, view.query.text("q"))
    reply, before, titles = None, None, {}
    problem, status = "", 200
    if request.recall.query_text:
        try:
            if earlier:
                before = await view.client.send(_request_of(view, earlier))
                request.prefix_token = before.prefix.token
            reply = await view.client.send(request)
            titles = await _titles(view, reply)
        except HummockCallError as error:
            problem, status = view.said(error), status_of(error)
    values = {
        "request": request,
        "reply": reply,
        "earlier": earlier,
        "changes": list(_changes(before.text, reply.text)) if before and reply else [],
        "keeps_prefix": _keeps_prefix(before, reply),
        "titles": titles,
        "problem": problem,
        "presets": PRESETS,
        "forms": FORMS,
        "placements": PLACEMENTS,
    }
    return view.page("prompt.html", values, status)


def _keeps_prefix(before: pb.RenderResponse | None, reply: pb.RenderResponse | None) -> bool:
    """True if this turn begins with the same prefix as the turn before, so that a prompt cache can be reused."""
    if before is None or reply is None or not before.prefix.text:
        return False
    return reply.prefix.text == before.prefix.text


def _changes(before: str, now: str) -> Iterator[Stretch]:
    old, new = before.splitlines(), now.splitlines()
    for tag, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            yield Stretch(tag="", text="\n".join(old[old_from:old_to]))
            continue
        if old_from < old_to:
            yield Stretch(tag="del", text="\n".join(old[old_from:old_to]))
        if new_from < new_to:
            yield Stretch(tag="ins", text="\n".join(new[new_from:new_to]))


def _request_of(view: View, question: str) -> pb.RenderRequest:
    fields = view.query
    form = pb.RenderForm.ValueType(fields.choice("form", FORMS))
    return pb.RenderRequest(
        project=view.project,
        recall=recall_pb2.RecallRequest(
            query_text=question,
            preset=recall_pb2.Preset.ValueType(fields.choice("preset", PRESETS)),
            time_zone=own_zone(),
        ),
        form=form,
        budget_tokens=fields.whole("budget_tokens"),
        placement=pb.Placement.ValueType(fields.choice("placement", PLACEMENTS)),
        current=pb.PromptMessage(role=pb.PROMPT_ROLE_USER, content=question)
        if form == pb.RENDER_FORM_MESSAGES
        else None,
    )


async def _titles(view: View, reply: pb.RenderResponse) -> dict[str, str]:
    """Return titles by id of memories that still exist."""
    ids = [each.memory_id for each in reply.memories]
    if not ids:
        return {}
    found = await view.client.batch_get(view.project, ids[:512], view=memory_pb2.MEMORY_VIEW_INDEX)
    return {memory.id: memory.title for memory in found.memories}


_SLIDERS: Final = {"relevance_weight": (0, 1, 0.05), "min_similarity": (-1, 1, 0.05), "half_life_days": (1, 365, 1)}
"""Least, largest and step of each of NUMBERS, as its slider has them; the field takes what the service takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A hit with its bar, its rank and where the other column has it; 0: nowhere, None: there is no other column."""

    hit: recall_pb2.Hit
    bar: list[Segment]
    rank: int
    other_rank: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The hits of one group."""

    group: int
    rows: list[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One recall and its answer."""

    request: recall_pb2.RecallRequest
    reply: recall_pb2.RecallResponse
    groups: list[Group]
    steps: list[Step]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Why a memory is no hit, and where the recall is asked with the changes that bring it back."""

    memory_id: str
    reply: explain_pb2.ExplainResponse
    again: str


async def ask(view: View) -> Response:
    """The page, with what was asked."""
    request = recall_of(view.project, view.query)
    other = recall_of(view.project, view.query, "b_") if view.query.text("compare") else None
    columns: list[Column] = []
    missing, problem, status = None, "", 200
    if request.query_text:
        try:
            columns = await _columns(view, [request] if other is None else [request, other])
            missing = await _missing(view, request)
        except HummockCallError as error:
            problem, status = view.said(error), status_of(error)
    values = {
        "request": request,
        "other": other or request,
        "is_compared": other is not None,
        "columns": columns,
        "missing": missing,
        "missing_id": view.query.text("why"),
        "problem": problem,
        "base": as_text(request) if view.query.text("recall") else "",
        "presets": PRESETS,
        "decay_modes": DECAY_MODES,
        "numbers": NUMBERS,
        "sliders": _SLIDERS,
    }
    return view.page("ask.html", values, status)


async def _columns(view: View, requests: Sequence[recall_pb2.RecallRequest]) -> list[Column]:
    replies = [await view.client.send(request) for request in requests]
    ranks = [_ranks(reply) for reply in replies]
    others = [None] if len(replies) == 1 else [ranks[1], ranks[0]]
    return [
        Column(request=request, reply=reply, groups=_groups(reply, other), steps=waterfall(reply.receipt.stages))
        for request, reply, other in zip(requests, replies, others, strict=True)
    ]


async def _missing(view: View, request: recall_pb2.RecallRequest) -> Missing | None:
    if not (memory_id := view.query.text("why").strip()):
        return None
    reply = await view.client.send(explain_pb2.ExplainRequest(recall=request, memory_id=memory_id))
    again = ""
    if reply.HasField("changed_recall"):
        again = link("/ask", project=view.project, recall=as_text(reply.changed_recall), why=memory_id)
    return Missing(memory_id=memory_id, reply=reply, again=again)


def _hits_by_group(reply: recall_pb2.RecallResponse) -> list[tuple[int, Sequence[recall_pb2.Hit]]]:
    groups = recall_pb2.HIT_GROUP_MAIN, recall_pb2.HIT_GROUP_CODE, recall_pb2.HIT_GROUP_DOMAINS
    return list(zip(groups, (reply.hits, reply.code_fragments, reply.domains), strict=True))


def _ranks(reply: recall_pb2.RecallResponse) -> dict[tuple[int, str], int]:
    return {
        (group, hit.memory.id): rank for group, hits in _hits_by_group(reply) for rank, hit in enumerate(hits, start=1)
    }


def _groups(reply: recall_pb2.RecallResponse, other: dict[tuple[int, str], int] | None) -> list[Group]:
    return [
        Group(
            group=group,
            rows=[
                Row(
                    hit=hit,
                    bar=bar,
                    rank=rank,
                    other_rank=None if other is None else other.get((group, hit.memory.id), 0),
                )
                for rank, (hit, bar) in enumerate(zip(hits, score_bars(hits, reply.receipt), strict=True), start=1)
            ],
        )
        for group, hits in _hits_by_group(reply)
        if hits or group == recall_pb2.HIT_GROUP_MAIN
    ]
