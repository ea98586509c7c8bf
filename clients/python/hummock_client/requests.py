"""Requests from plain arguments; both clients send what these make."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from hummock.v1 import context_service_pb2 as context_pb
from hummock.v1 import explain_pb2, learning_pb2, memory_pb2, recall_pb2, settings_pb2
from hummock.v1 import memory_service_pb2 as memories_pb
from hummock.v1 import project_service_pb2 as projects_pb


class RecallOptions(TypedDict, total=False):
    """Fields of a RecallRequest beside the project and the text; the contract says what each unset one means."""

    query_vector: memory_pb2.Vector
    preset: recall_pb2.Preset.ValueType
    top_k: int
    candidates: int
    min_similarity: float
    filter: memory_pb2.Filter
    paths: Sequence[recall_pb2.RecallPath.ValueType]
    decay: recall_pb2.Decay
    relevance_weight: float
    near_twin_bar: float
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


class RenderOptions(TypedDict, total=False):
    """Fields of a RenderRequest beside its source."""

    form: context_pb.RenderForm.ValueType
    budget_tokens: int
    locale: context_pb.Locale.ValueType
    prompt: str
    template: context_pb.PromptTemplate.ValueType
    target: context_pb.PromptTarget.ValueType
    history: Sequence[context_pb.PromptMessage]
    current: context_pb.PromptMessage
    read_ids: Sequence[str]
    quotas: context_pb.SectionQuotas
    placement: context_pb.Placement.ValueType
    prefix_token: bytes
    rebase: bool
    as_of: Timestamp
    utc_offset_minutes: int
    read_tool: str
    session: context_pb.SessionHistory
    commit: learning_pb2.RenderCommit


class SearchOptions(TypedDict, total=False):
    """Fields of a SearchRequest beside the project and the text."""

    top_k: int
    scope: context_pb.SearchScope.ValueType
    filter: memory_pb2.Filter
    min_seq: int
    as_of: Timestamp
    session_id: str
    unseen_first: bool


class FeedbackOptions(TypedDict, total=False):
    """Fields of a FeedbackRequest beside the project and the verdicts."""

    query_text: str
    note: str
    session_id: str


class ReadOptions(TypedDict, total=False):
    """How memories are read by id."""

    view: memory_pb2.MemoryView.ValueType
    min_seq: int


def new_request_id() -> str:
    """An id that makes a write safe to repeat."""
    return str(uuid.uuid4())


def recall(project: str, text: str, options: RecallOptions) -> recall_pb2.RecallRequest:
    """A recall."""
    return recall_pb2.RecallRequest(project=project, query_text=text, **options)


def render(
    project: str, source: str | Sequence[str] | recall_pb2.RecallRequest, options: RenderOptions
) -> context_pb.RenderRequest:
    """A rendering of what a text recalls, of a recall, or of the memories with these ids.

    A commit without a request_id is given one, so that sending it again counts once.
    """
    if "commit" in options and not options["commit"].request_id:
        commit = learning_pb2.RenderCommit(request_id=new_request_id())
        commit.MergeFrom(options["commit"])
        options = {**options, "commit": commit}
    if isinstance(source, str):
        source = recall_pb2.RecallRequest(query_text=source)
    if isinstance(source, recall_pb2.RecallRequest):
        return context_pb.RenderRequest(project=project, recall=source, **options)
    return context_pb.RenderRequest(project=project, memories=context_pb.MemorySelection(ids=source), **options)


def learn(project: str, memories: Iterable[memory_pb2.MemoryInput], request_id: str | None) -> context_pb.LearnRequest:
    """A Learn; a request_id is made when none is given."""
    return context_pb.LearnRequest(
        project=project, memories=memories, request_id=new_request_id() if request_id is None else request_id
    )


def note(text: str, tags: Iterable[str] = ()) -> memory_pb2.MemoryInput:
    """A remembered sentence."""
    return memory_pb2.MemoryInput(
        kind=memory_pb2.MEMORY_KIND_NOTE,
        index=memory_pb2.MemoryIndex(tags=tags),
        payload=memory_pb2.MemoryPayload(content=text),
    )


def search(project: str, text: str, options: SearchOptions) -> context_pb.SearchRequest:
    """A search."""
    return context_pb.SearchRequest(project=project, query_text=text, **options)


def explain(project: str, text: str, memory_id: str, options: RecallOptions) -> explain_pb2.ExplainRequest:
    """The question what a recall does with a memory."""
    return explain_pb2.ExplainRequest(recall=recall(project, text, options), memory_id=memory_id)


def get(project: str, memory_id: str, options: ReadOptions) -> memories_pb.MemoryServiceGetRequest:
    """One memory."""
    return memories_pb.MemoryServiceGetRequest(project=project, id=memory_id, **options)


def batch_get(project: str, ids: Iterable[str], options: ReadOptions) -> memories_pb.MemoryServiceBatchGetRequest:
    """Several memories."""
    return memories_pb.MemoryServiceBatchGetRequest(project=project, ids=ids, **options)


def watch_memories(
    project: str,
    where: memory_pb2.Filter | None,
    after_seq: int | None,
    view: memory_pb2.MemoryView.ValueType,
) -> memories_pb.MemoryServiceWatchRequest:
    """A watch of a project's memories; None means behind the newest write."""
    return memories_pb.MemoryServiceWatchRequest(project=project, filter=where, after_seq=after_seq, view=view)


def update(
    project: str, memory: memory_pb2.MemoryInput, paths: Iterable[str], request_id: str | None
) -> memories_pb.MemoryServiceUpdateRequest:
    """New values of the named fields; a request_id is made when none is given."""
    return memories_pb.MemoryServiceUpdateRequest(
        project=project,
        memory=memory,
        update_mask=FieldMask(paths=paths),
        request_id=new_request_id() if request_id is None else request_id,
    )


def delete(project: str, ids: Iterable[str], request_id: str | None) -> memories_pb.MemoryServiceDeleteRequest:
    """The removal of memories; a request_id is made when none is given."""
    return memories_pb.MemoryServiceDeleteRequest(
        project=project, ids=ids, request_id=new_request_id() if request_id is None else request_id
    )


def update_project(
    project: str, tech_stack: Sequence[str] | None, path: str | None, request_id: str | None
) -> projects_pb.ProjectServiceUpdateRequest:
    """New information of a project; None keeps what is there."""
    named = {"tech_stack": tech_stack, "path": path}
    return projects_pb.ProjectServiceUpdateRequest(
        project=project,
        info=projects_pb.ProjectInfo(tech_stack=tech_stack or (), path=path or ""),
        update_mask=FieldMask(paths=[name for name, value in named.items() if value is not None]),
        request_id=new_request_id() if request_id is None else request_id,
    )


def feedback(
    project: str,
    verdicts: Mapping[str, context_pb.Judgement.ValueType],
    options: FeedbackOptions,
    request_id: str | None,
) -> context_pb.FeedbackRequest:
    """What was of use; a request_id is made when none is given."""
    return context_pb.FeedbackRequest(
        project=project,
        request_id=new_request_id() if request_id is None else request_id,
        verdicts=[
            context_pb.FeedbackVerdict(memory_id=memory_id, judgement=judgement)
            for memory_id, judgement in verdicts.items()
        ],
        **options,
    )


def update_settings(
    project: str, settings: settings_pb2.ProjectSettings, paths: Iterable[str], request_id: str | None
) -> projects_pb.ProjectServiceUpdateSettingsRequest:
    """New values of the named settings; a request_id is made when none is given."""
    return projects_pb.ProjectServiceUpdateSettingsRequest(
        project=project,
        settings=settings,
        update_mask=FieldMask(paths=paths),
        request_id=new_request_id() if request_id is None else request_id,
    )
