"""Parts of requests: options, ids, masks and vectors."""

from __future__ import annotations

import sys
import uuid
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypedDict

from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from hummock_client.time_zone import named_zone
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import memory_pb2, recall_pb2, settings_pb2

_TUNING = frozenset(recall_pb2.RecallTuning.DESCRIPTOR.fields_by_name)


class RecallOptions(TypedDict, total=False):
    """Fields of a RecallRequest and of its tuning, other than the project and the text.

    The contract says what each unset one means.
    """

    query_vector: memory_pb2.Embedding
    preset: recall_pb2.Preset.ValueType
    top_k: int
    candidates: int
    min_similarity: float
    filter: memory_pb2.MemoryFilter
    paths: Sequence[recall_pb2.RecallPath.ValueType]
    origins: Sequence[memory_pb2.Origin.ValueType]
    decay_mode: recall_pb2.DecayMode.ValueType
    half_life_days: float
    decay_floor: float
    decay_exempt_origins: Sequence[memory_pb2.Origin.ValueType]
    relevance_weight: float
    near_twin_bar: float
    writer_cap: int
    mmr_relevance: recall_pb2.MmrRelevance.ValueType
    late_interaction: bool
    cross_encoder: recall_pb2.CrossEncoder.ValueType
    as_of: Timestamp
    min_seq: int
    view: memory_pb2.MemoryView.ValueType
    intent: recall_pb2.Intent
    code_top_k: int
    domain_top_k: int
    time_words: bool
    context_window: int
    keyword_mode: recall_pb2.KeywordMode.ValueType
    intent_mode: recall_pb2.IntentMode.ValueType
    session_id: str
    window_turns: int
    echo_window: Duration
    allow_missing: bool
    include_superseded: bool
    allow_stale: bool
    time_zone: str


class RenderOptions(TypedDict, total=False):
    """Fields of a RenderRequest other than its source."""

    form: context_pb.RenderForm.ValueType
    budget_tokens: int
    locale: str
    prompt: str
    template: context_pb.PromptTemplate.ValueType
    target: context_pb.PromptTarget.ValueType
    history: Sequence[context_pb.PromptMessage]
    current: context_pb.PromptMessage
    read_ids: Sequence[str]
    quotas: settings_pb2.SectionQuotas
    placement: context_pb.Placement.ValueType
    prefix_token: bytes
    rebase: bool
    as_of: Timestamp
    utc_offset_minutes: int
    read_tool: context_pb.ReadTool.ValueType
    session: context_pb.SessionHistory
    allow_missing: bool


class SearchOptions(TypedDict, total=False):
    """Fields of a SearchRequest other than the project and the text."""

    top_k: int
    scope: context_pb.SearchScope.ValueType
    filter: memory_pb2.MemoryFilter
    min_seq: int
    as_of: Timestamp
    session_id: str
    unseen_first: bool
    allow_missing: bool
    allow_stale: bool
    time_zone: str


class FeedbackOptions(TypedDict, total=False):
    """Fields of a FeedbackRequest other than the project and the verdicts."""

    query_text: str
    note: str
    session_id: str


class ReadOptions(TypedDict, total=False):
    """Options for reading memories by id."""

    view: memory_pb2.MemoryView.ValueType
    min_seq: int


class EnumNames(Protocol):
    """An enum of the contract."""

    def items(self) -> Iterable[tuple[str, int]]:
        """Names and numbers."""


def enum_word(enum: EnumNames, number: int) -> str:
    """Return a value's name without its enum's prefix; the number if only a newer service knows the value."""
    names = {value: name for name, value in enum.items()}
    return names.get(number, str(number)).removeprefix(names[0].removesuffix("UNSPECIFIED")).lower()


def new_request_id() -> str:
    """An id that makes a write safe to repeat."""
    return str(uuid.uuid4())


def note(text: str, tags: Iterable[str] = (), *, pinned: bool = False) -> memory_pb2.Memory:
    """A remembered sentence; a pinned one is in every prompt of the project."""
    return memory_pb2.Memory(
        kind=memory_pb2.MEMORY_KIND_NOTE, tags=tags, content=text, pinned=pinned, time_zone=named_zone()
    )


def vector(values: Iterable[float], emb_space: str) -> memory_pb2.Embedding:
    """A vector as the service reads it.

    Args:
        values: Components, rounded to float32; need not have length 1.
        emb_space: The space in which they may be compared, as AdminService.Status names it.
    """
    packed = array("f", values)
    if sys.byteorder == "big":
        packed.byteswap()
    return memory_pb2.Embedding(values=packed.tobytes(), emb_space=emb_space)


def components(sent: memory_pb2.Embedding) -> list[float]:
    """The components of a vector."""
    read = array("f")
    read.frombytes(sent.values)
    if sys.byteorder == "big":
        read.byteswap()
    return read.tolist()


def recall(project: str, text: str, options: RecallOptions) -> recall_pb2.RecallRequest:
    """A recall; a project that does not exist is read as an empty one unless the options say otherwise.

    Nothing is wrong where a program asks before anything was learnt.
    """
    tuning = {name: value for name, value in options.items() if name in _TUNING}
    others = {name: value for name, value in options.items() if name not in _TUNING}
    defaults = {"allow_missing": True, "time_zone": named_zone()}
    request = recall_pb2.RecallRequest(**{**defaults, **others})  # type: ignore[arg-type] # by their names
    request.project, request.query_text = project, text
    if tuning:
        request.tuning.MergeFrom(recall_pb2.RecallTuning(**tuning))  # type: ignore[arg-type]
    return request


def render(
    project: str, source: str | Sequence[str] | recall_pb2.RecallRequest, options: RenderOptions
) -> context_pb.RenderRequest:
    """A rendering of what a text recalls, of a recall, or of the memories with these ids; projects as in `recall`."""
    options = {"allow_missing": True, **options}
    if isinstance(source, str):
        source = recall_pb2.RecallRequest(query_text=source, time_zone=named_zone())
    if isinstance(source, recall_pb2.RecallRequest):
        return context_pb.RenderRequest(project=project, recall=source, **options)
    return context_pb.RenderRequest(project=project, memories=context_pb.MemorySelection(ids=source), **options)


def turn_side(said: str | context_pb.TurnSide) -> context_pb.TurnSide:
    """One side of a turn; a string is its text."""
    return context_pb.TurnSide(text=said) if isinstance(said, str) else said


def id_or_new(request_id: str | None) -> str:
    """The id of a write; a new one when none is given."""
    return new_request_id() if request_id is None else request_id


def mask_of(fields: Mapping[str, object]) -> FieldMask:
    """The mask that changes the fields with a value; None keeps what is there."""
    return FieldMask(paths=[name for name, value in fields.items() if value is not None])
