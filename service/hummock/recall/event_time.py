"""Resolves a time relative to an event ("two weeks after the launch") by searching for the event first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from hummock.core.candidates import Candidates
from hummock.core.recall import CrossEncoding, DecayMode, Intent, IntentMode, KeywordMode, Preset, RecallQuery
from hummock.recall.fuse import Fused, told_time
from hummock.recall.plan import joins_paths
from hummock.text.event_reference import EventReference, parse_event_reference
from hummock.text.question import question_of
from hummock.text.time_words import time_intervals

_MOST_LOOKED_AT = 3
"""Number of memories searched for the event's time; the first that states one decides."""


def parse_event_time(query: RecallQuery) -> EventReference | None:
    """Parse the event that a query's time is relative to; None if the time needs no search for an event."""
    if query.time_words is False or query.keyword_mode is not KeywordMode.TERMS or not joins_paths(query):
        return None
    if query.intent is not None and query.intent.times:
        return None
    question = question_of(query.text)
    told = parse_event_reference(question)
    # The calendar takes precedence: "two weeks before Christmas" needs no search.
    return None if told is None or time_intervals(question, query.as_of or 0.0, query.zone) else told


def event_query(query: RecallQuery, told: EventReference) -> RecallQuery:
    """The query that finds the event, whatever its age.

    Its preset is CHAT, which returns nothing if nothing is similar.
    """
    return RecallQuery(
        project=query.project,
        text=told.event,
        preset=Preset.CHAT,
        top_k=_MOST_LOOKED_AT,
        filter=query.filter,
        decay_mode=DecayMode.OFF,
        time_words=False,
        cross_encoding=CrossEncoding.OFF,
        intent_mode=IntentMode.LEXICAL,
        as_of=query.as_of,
        min_seq=query.min_seq,
        full=False,
        session_id=query.session_id,
        window_turns=query.window_turns,
    )


def at_event(query: RecallQuery, told: EventReference, found: Sequence[tuple[Fused, NDArray[np.int64]]]) -> RecallQuery:
    """Add the resolved time to the query; unchanged if no memory found states the event's time.

    Args:
        query: The original query.
        told: Its event.
        found: The ranked groups that `event_query` found, with the places of their hits.
    """
    for ranked, places in found:
        candidates: Candidates = ranked.candidates
        times = told_time(candidates)[ranked.row[places]]
        for happened_s in times[~np.isnan(times)].tolist()[:1]:
            interval = told.interval(happened_s, query.zone)
            if interval is not None:
                return replace(query, intent=replace(query.intent or Intent(), times=(interval,)))
    return query
