"""Requests that change how a project learns."""

from __future__ import annotations

from collections.abc import Sequence

from hummock.core.errors import InvalidRequest
from hummock.core.learning_events import KeywordsSet
from hummock.core.learning_queries import LearningCommand, SettingsChanges
from hummock.core.observe import ObserveCommand
from hummock.rpc.parse import values
from hummock.v1 import learning_pb2
from hummock.v1 import learning_service_pb2 as pb

_OF_INJECTION = frozenset({"high_above", "mid_above", "mid_cooldown_turns", "low_cooldown_turns"})


def learning_command(request: pb.LearningServiceUpdateSettingsRequest) -> LearningCommand:
    """A change of how a project learns. Keywords have no space around, and none is there twice."""
    if not (request.HasField("enabled") or request.HasField("settings") or request.keywords):
        raise InvalidRequest("", "one of enabled, settings and keywords is required")
    return LearningCommand(
        project=values.project_name("project", request.project),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request),
        enabled=request.enabled if request.HasField("enabled") else None,
        changes=settings_changes(request.settings),
        keywords=tuple(_keywords_set(f"keywords[{place}]", sent) for place, sent in enumerate(request.keywords)),
    )


def observe_command(request: pb.LearningServiceObserveTurnRequest) -> ObserveCommand:
    """A turn that is over."""
    return ObserveCommand(
        project=values.project_name("project", request.project),
        scope=values.identifier("scope", request.scope),
        turn=request.turn,
        user_text=request.user_text,
        assistant_text=request.assistant_text,
        used_ids=tuple(
            values.identifier(f"used_memory_ids[{place}]", one) for place, one in enumerate(request.used_memory_ids)
        ),
        request_id=values.request_id(request.request_id),
        fingerprint=values.fingerprint(request),
    )


def settings_changes(sent: learning_pb2.LearningSettings) -> SettingsChanges:
    """The numbers that are set."""
    return SettingsChanges(
        high_above=sent.high_above if sent.HasField("high_above") else None,
        mid_above=sent.mid_above if sent.HasField("mid_above") else None,
        mid_cooldown_turns=sent.mid_cooldown_turns if sent.HasField("mid_cooldown_turns") else None,
        low_cooldown_turns=sent.low_cooldown_turns if sent.HasField("low_cooldown_turns") else None,
        min_similarity=sent.min_similarity if sent.HasField("min_similarity") else None,
        candidates=sent.candidates if sent.HasField("candidates") else None,
        analysis_cooldown_turns=sent.analysis_cooldown_turns if sent.HasField("analysis_cooldown_turns") else None,
        keyword_target=sent.keyword_target if sent.HasField("keyword_target") else None,
        cold_start_pause_s=values.seconds(sent.cold_start_pause) if sent.HasField("cold_start_pause") else None,
    )


def fork_of(request: pb.LearningServiceReplayRequest) -> SettingsChanges | None:
    """The numbers of the fork that is asked for; None when none is."""
    if not request.HasField("fork"):
        return None
    for field, _ in request.fork.ListFields():
        if field.name not in _OF_INJECTION:
            raise InvalidRequest(f"fork.{field.name}", "decides nothing about what is injected; leave it out")
    return settings_changes(request.fork)


def _keywords_set(field: str, sent: pb.EntryKeywords) -> KeywordsSet:
    return KeywordsSet(
        memory_id=values.identifier(f"{field}.memory_id", sent.memory_id),
        keywords=_keywords(f"{field}.keywords", sent.keywords),
    )


def _keywords(field: str, sent: Sequence[str]) -> tuple[str, ...]:
    keywords: dict[str, None] = {}
    for place, keyword in enumerate(sent):
        stripped = values.identifier(f"{field}[{place}]", keyword.strip())
        if not stripped:
            raise InvalidRequest(f"{field}[{place}]", "is blank")
        keywords[stripped] = None
    return tuple(keywords)
