"""Pages for a recall with its explanation, and for the prompt rendered from one.

A service joins the paths' scores, each divided by its pool's best, by shares that the receipt has on average. Of
one hit the parts of the bar are therefore estimates; whatever they leave of the score came from its neighbours, its
time, its name or the cross-encoder. The numbers alongside the bar are those of the hit itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from google.protobuf import json_format
from starlette.responses import Response

from hummock_client import HummockCallError
from hummock_client.time_zone import own_zone
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import explain_pb2, memory_pb2, recall_pb2
from hummock_tools.console.view import BadInput, Fields, View, link, milliseconds, status_of, titles_of

NUMBERS: Final = ("relevance_weight", "min_similarity", "half_life_days")
"""Fields of the tuning that the forms of both columns have, as sliders where scripts run."""

PRESETS: Final = tuple(recall_pb2.Preset.values())[1:]
DECAY_MODES: Final = tuple(recall_pb2.DecayMode.values())[1:]

_LARGEST_BASE = 64 * 1024


def recall_of(project: str, fields: Fields, prefix: str = "") -> recall_pb2.RecallRequest:
    """Build the recall of a form. Raises: BadInput, for a field that no form of ours sends.

    Its field `recall` may hold a whole request as JSON, of any project; the form's own fields replace its values, and
    without a `q` it is taken as it is. `prefix` is that of the names of settings, not of `q` and `recall`.
    """
    request = _base(fields.text("recall"))
    request.project = project
    request.view = memory_pb2.MEMORY_VIEW_FULL
    if "q" not in fields:
        return request
    request.query_text = fields.text("q")
    request.time_zone = request.time_zone or own_zone()
    request.preset = recall_pb2.Preset.ValueType(fields.choice(f"{prefix}preset", PRESETS))
    for name in NUMBERS:
        _set_or_clear(request.tuning, name, fields.number(f"{prefix}{name}"))
    _set_or_clear(request.tuning, "top_k", fields.whole(f"{prefix}top_k"))
    request.tuning.decay_mode = recall_pb2.DecayMode.ValueType(fields.choice(f"{prefix}decay_mode", DECAY_MODES))
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


class Segment(NamedTuple):
    """A segment of a bar: the part's name, its share of the score, and its position."""

    part: str
    worth: float
    x: float
    width: float


class Step(NamedTuple):
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
        steps.append(Step(stage.stage, took_ms, round(at, 2), round(max(width, 0.5), 2)))
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
            segments.append(Segment(name, worth, round(at, 2), round(width, 2)))
        at += width
    return segments


def _of_best(value: float, best: float) -> float:
    return max(value, 0.0) / best if best > 0 else 0.0


FORMS: Final = tuple(pb.RenderForm.values())[1:]
PLACEMENTS: Final = tuple(pb.Placement.values())[1:]


class Stretch(NamedTuple):
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
            titles = await titles_of(view, [each.memory_id for each in reply.memories])
        except HummockCallError as error:
            problem, status = view.said(error), status_of(error)
    values = {
        "request": request,
        "reply": reply,
        "earlier": earlier,
        "changes": list(_changes(before.text, reply.text)) if before and reply else [],
        # True if a prompt cache can be reused.
        "keeps_prefix": bool(before and reply and before.prefix.text and reply.prefix.text == before.prefix.text),
        "titles": titles,
        "problem": problem,
        "presets": PRESETS,
        "forms": FORMS,
        "placements": PLACEMENTS,
    }
    return view.page("prompt.html", values, status)


def _changes(before: str, now: str) -> Iterator[Stretch]:
    old, new = before.splitlines(), now.splitlines()
    for tag, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new).get_opcodes():
        if old_from < old_to:
            yield Stretch("" if tag == "equal" else "del", "\n".join(old[old_from:old_to]))
        if new_from < new_to and tag != "equal":
            yield Stretch("ins", "\n".join(new[new_from:new_to]))


def _request_of(view: View, question: str) -> pb.RenderRequest:
    fields = view.query
    form = pb.RenderForm.ValueType(fields.choice("form", FORMS))
    preset = recall_pb2.Preset.ValueType(fields.choice("preset", PRESETS))
    current = pb.PromptMessage(role=pb.PROMPT_ROLE_USER, content=question)
    return pb.RenderRequest(
        project=view.project,
        recall=recall_pb2.RecallRequest(query_text=question, preset=preset, time_zone=own_zone()),
        form=form,
        budget_tokens=fields.whole("budget_tokens"),
        placement=pb.Placement.ValueType(fields.choice("placement", PLACEMENTS)),
        current=current if form == pb.RENDER_FORM_MESSAGES else None,
    )


_SLIDERS: Final = {"relevance_weight": (0, 1, 0.05), "min_similarity": (-1, 1, 0.05), "half_life_days": (1, 365, 1)}
"""Least, largest and step of each of NUMBERS, as its slider has them; the field takes what the service takes."""


class Row(NamedTuple):
    """A hit with its bar, its rank and where the other column has it; 0: nowhere, None: there is no other column."""

    hit: recall_pb2.Hit
    bar: list[Segment]
    rank: int
    other_rank: int | None


class Group(NamedTuple):
    """The hits of one group."""

    group: int
    rows: list[Row]


class Column(NamedTuple):
    """One recall and its answer."""

    request: recall_pb2.RecallRequest
    reply: recall_pb2.RecallResponse
    groups: list[Group]
    steps: list[Step]


class Missing(NamedTuple):
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
        Column(request, reply, _groups(reply, other), waterfall(reply.receipt.stages))
        for request, reply, other in zip(requests, replies, others, strict=True)
    ]


async def _missing(view: View, request: recall_pb2.RecallRequest) -> Missing | None:
    if not (memory_id := view.query.text("why").strip()):
        return None
    reply = await view.client.send(explain_pb2.ExplainRequest(recall=request, memory_id=memory_id))
    again = ""
    if reply.HasField("changed_recall"):
        again = link("/ask", project=view.project, recall=as_text(reply.changed_recall), why=memory_id)
    return Missing(memory_id, reply, again)


def _hits_by_group(reply: recall_pb2.RecallResponse) -> list[tuple[int, Sequence[recall_pb2.Hit]]]:
    groups = recall_pb2.HIT_GROUP_MAIN, recall_pb2.HIT_GROUP_CODE, recall_pb2.HIT_GROUP_DOMAINS
    return list(zip(groups, (reply.hits, reply.code_fragments, reply.domains), strict=True))


def _ranks(reply: recall_pb2.RecallResponse) -> dict[tuple[int, str], int]:
    return {
        (group, hit.memory.id): rank for group, hits in _hits_by_group(reply) for rank, hit in enumerate(hits, start=1)
    }


def _groups(reply: recall_pb2.RecallResponse, other: dict[tuple[int, str], int] | None) -> list[Group]:
    groups = []
    for group, hits in _hits_by_group(reply):
        others = [None if other is None else other.get((group, hit.memory.id), 0) for hit in hits]
        ranks = range(1, len(hits) + 1)
        rows = [Row(*row) for row in zip(hits, score_bars(hits, reply.receipt), ranks, others, strict=True)]
        if hits or group == recall_pb2.HIT_GROUP_MAIN:
            groups.append(Group(group, rows))
    return groups
