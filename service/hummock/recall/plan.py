"""Makes a plan with every number filled in, from a query, its preset and its project's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from hummock.core.candidates import SessionWindow
from hummock.core.memory import Filter, MemoryKind, Origin
from hummock.core.recall import (
    CAPPED,
    Decay,
    DecayMode,
    GroupPlan,
    Intent,
    KeywordMode,
    MmrRelevance,
    Plan,
    Preset,
    RecallPath,
    RecallQuery,
    TimeInterval,
    Wanted,
)
from hummock.core.settings import NO_SETTINGS, PresetSettings, ProjectSettings
from hummock.text.event_reference import EventReference, parse_event_reference
from hummock.text.keywords import keywords
from hummock.text.question import Question, question_of
from hummock.text.questions import MOST_SMALL_TALK_CHARACTERS, is_only_of_times, is_small_talk, wanted_by
from hummock.text.time_words import HINTS, time_intervals
from hummock.text.word_lists import ENGLISH_STOP_WORDS

MAIN, CODE, DOMAINS = "main", "code", "domains"
"""The groups of hits."""

ALL_KINDS = frozenset(MemoryKind)
ALL_ORIGINS = frozenset(Origin)
NO_TWINS = 2.0
"""A bar that no cosine reaches."""

TIME_SHARE: Final = 0.4
"""Share of the time match in the score, if the query names a time."""

ONLY_TIME_SHARE: Final = 0.8
"""Share of the time match if the query names nothing else: memories of that time rank above similar texts."""

LITERAL_CANDIDATES: Final = 20
"""Pool of the chat document's algorithm (S4-19)."""

KEEPS_ALL: Final = -1.0
"""A minimum that every similarity reaches."""
LITERAL_MINIMUM: Final = 0.30
"""Minimum similarity of the chat document's algorithm (S4-21)."""

SHORTEST_ASCII_CHARACTERS = 3
MAX_KEYWORDS: Final = 5
T = TypeVar("T")

_VECTOR: Final = frozenset({RecallPath.VECTOR})
_KEYWORD: Final = frozenset({RecallPath.KEYWORD})
_DOMAIN: Final = frozenset({RecallPath.DOMAIN})
_BOTH: Final = _VECTOR | _KEYWORD
_DOMAINS: Final = frozenset({MemoryKind.DOMAIN_KNOWLEDGE})
_CODE: Final = frozenset({MemoryKind.CODE_FRAGMENT})
_NONE: Final[frozenset[MemoryKind]] = frozenset()
_OF_TALK: Final = frozenset({Preset.CHAT, Preset.AGENT})
_KEPT: Final = 256
_ORIGINS: Final = "origins"
_WINDOW: Final = "window_turns"
_NUMBERS: Final = tuple(name for name in PresetSettings.__struct_fields__ if name != _ORIGINS)
"""Fields of a preset's settings that a query has under the same name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """Defaults of a preset, field by field as in `Plan`; `main_kinds` are the kinds of the main group.

    Fields not given are those of AGENT. `code_bar` is for `bar.above_bar`. `min_of_best` is the minimum for a candidate
    that stands out: a paraphrase may have a low similarity and still be by far the nearest.
    """

    main_kinds: frozenset[MemoryKind] = ALL_KINDS
    origins: frozenset[Origin] = ALL_ORIGINS
    candidates: int = 50
    top_k: int = 10
    code_top_k: int = 0
    domain_top_k: int = 0
    min_similarity: float = KEEPS_ALL
    code_bar: float | None = None
    min_of_best: float = KEEPS_ALL
    decay_mode: DecayMode = DecayMode.OFF
    half_life_days: float = 14.0
    decay_floor: float = 0.0
    relevance_weight: float = 0.7
    writer_cap: int = 4
    window_turns: int = 0


PRESETS: Mapping[Preset, Defaults] = {
    Preset.CHAT: Defaults(
        origins=frozenset({Origin.MANUAL, Origin.SUMMARY, Origin.USER_INPUT}),
        candidates=50,
        top_k=5,
        min_similarity=0.15,
        min_of_best=0.08,
        decay_mode=DecayMode.EXPONENTIAL,
        decay_floor=0.9,
        relevance_weight=1.0,
        window_turns=10,
    ),
    Preset.CODE: Defaults(
        main_kinds=frozenset({MemoryKind.LEARNING_RECORD, MemoryKind.NOTE, MemoryKind.ENTRY}),
        code_top_k=10,
        domain_top_k=3,
        min_similarity=0.15,
        code_bar=0.96,
        min_of_best=0.08,
    ),
    Preset.AGENT: Defaults(),
    Preset.CODEX: Defaults(
        main_kinds=frozenset({MemoryKind.ENTRY}), top_k=20, min_similarity=0.60, min_of_best=0.60, relevance_weight=1.0
    ),
}


def apply_settings(query: RecallQuery, settings: ProjectSettings) -> tuple[RecallQuery, tuple[str, ...]]:
    """The query with the project's settings for its preset, and the paths of the fields set by them.

    Values of the query take precedence, as do the origins of its filter.
    """
    if settings is NO_SETTINGS:
        return query, ()
    said = settings.preset(query.preset)
    # A window means nothing to a query without a session.
    numbers = [name for name in _NUMBERS if query.session_id or name != _WINDOW]
    filled = [name for name in numbers if getattr(said, name) is not None and getattr(query, name) is None]
    values = {name: getattr(said, name) for name in filled}
    if said.origins is not None and not query.filter.origins:
        filled.append(_ORIGINS)
        values["filter"] = replace(query.filter, origins=said.origins)
    group = query.preset.name.lower()
    paths = tuple(f"{group}.{name}" for name in filled)
    if settings.times.zone and not query.time_zone:
        values["time_zone"], paths = settings.times.zone, (*paths, "times.zone")
    return (replace(query, **values), paths) if paths else (query, ())


def make_plan(query: RecallQuery, question: Question, given: Intent | None, near_twin_bar: float, now: float) -> Plan:
    """Fill in what the query leaves unset.

    Args:
        query: The query.
        question: Its text.
        given: Its intent, from the caller or a language model. Keywords that it lacks are those of the text; domains
            that it lacks are matched by the store.
        near_twin_bar: The model's cosine from which texts are versions of each other.
        now: Unix seconds, used when the query names no `as_of`.
    """
    known = given or _UNKNOWN
    usual = _usual_plan(_options(query), query.filter.kinds, bool(known.domains), near_twin_bar)
    as_of, joins = now if query.as_of is None else query.as_of, usual.neighbours
    times = times_of(query, question, as_of, joins_paths=joins)
    wanted = wanted_by(question) if joins else Wanted.NOTHING
    named = known.keywords or keywords(question, MAX_KEYWORDS)
    return replace(
        usual,
        groups=_groups(query, question, usual),
        filter=query.filter if query.filter.origins else _filter(query, question, wanted, joins_paths=joins),
        # Without keywords, as for a single character, the whole text.
        substrings=named or (query.text.strip(),) if query.keyword_mode is KeywordMode.SUBSTRING else (),
        times=times,
        time_share=_time_share(question, times) if times else TIME_SHARE,
        wanted=wanted,
        intent=Intent(domains=known.domains, action=known.action, keywords=named, times=times),
        as_of=as_of,
        window=window_of(query),
    )


_UNKNOWN: Final = Intent()
_OPTIONS: Final = tuple(
    name
    for name in RecallQuery.__struct_fields__
    if name
    not in {"project", "text", "vector", "filter", "intent", "as_of", "session_id", "min_seq", "before", "until_s"}
)
"""Fields of a query that many queries have the same values of."""
_options: Final = attrgetter(*_OPTIONS)


@lru_cache(_KEPT)
def _usual_plan(
    options: tuple[Any, ...], kinds: frozenset[MemoryKind], names_domains: bool, near_twin_bar: float
) -> Plan:
    """The plan of queries with these options, without what their texts, times, filters and sessions say.

    Args:
        options: Values of `_OPTIONS`.
        kinds: Kinds that are asked for; empty for all.
        names_domains: Whether the intent names domains.
        near_twin_bar: See `make_plan`.
    """
    query = RecallQuery(project="", text="-", filter=Filter(kinds=kinds), **dict(zip(_OPTIONS, options, strict=True)))
    defaults, joins, is_newest_first = PRESETS[query.preset], joins_paths(query), _is_newest_first(query)
    is_to_the_letter = is_newest_first or _is_literal_chat(query)
    min_similarity, code_bar, min_of_best = _minima(query, defaults)
    return Plan(
        preset=query.preset,
        groups=_usual_groups(query, defaults, names_domains=names_domains),
        filter=query.filter,
        min_similarity=min_similarity,
        code_bar=code_bar,
        min_of_best=min_of_best,
        decay=decay_of(query),
        relevance_weight=_or(query.relevance_weight, 1.0 if is_newest_first else defaults.relevance_weight),
        near_twin_bar=_or(query.near_twin_bar, NO_TWINS if is_to_the_letter else near_twin_bar),
        writer_cap=_or(query.writer_cap, CAPPED if is_to_the_letter else defaults.writer_cap),
        mmr_relevance=_or(query.mmr_relevance, MmrRelevance.SCORE),
        late_interaction=_or(query.late_interaction, joins),
        neighbours=joins,
        substrings=(),
        times=(),
        include_superseded=query.include_superseded,
        intent=Intent(),
        as_of=0.0,
        echo_window_s=query.echo_window_s,
    )


def _minima(query: RecallQuery, defaults: Defaults) -> tuple[float, float | None, float]:
    """Return minimum similarity, bar for code, and minimum for an outstanding candidate; the caller's replaces all."""
    given = LITERAL_MINIMUM if query.min_similarity is None and _is_literal_chat(query) else query.min_similarity
    if given is not None:
        return given, None, given
    return defaults.min_similarity, defaults.code_bar, defaults.min_of_best


def _groups(query: RecallQuery, question: Question, usual: Plan) -> tuple[GroupPlan, ...]:
    """Return the usual groups; none for a query that says too little.

    Only words can find anything for a letter or two in an editor, and for signs: to a model they are like all texts.
    """
    is_short = query.preset is Preset.CODE and _is_short(query)
    if is_short and says_too_little(query):
        return ()
    if not usual.neighbours or not (is_short or question.is_of_signs):
        return usual.groups
    return tuple([replace(group, paths=group.paths - _VECTOR) for group in usual.groups])


def _usual_groups(query: RecallQuery, defaults: Defaults, *, names_domains: bool) -> tuple[GroupPlan, ...]:
    """Return the groups; the one with domains comes before code, which adds the key files of named domains.

    An intent that names domains gets only those, and none if the project does not know them (S0-10).
    """
    usual = LITERAL_CANDIDATES if _is_literal_chat(query) else defaults.candidates
    top_k, domain_top_k = _or(query.top_k, defaults.top_k), _or(query.domain_top_k, defaults.domain_top_k)
    code_top_k, paths, kinds = _or(query.code_top_k, defaults.code_top_k), query.paths, kinds_of(query)
    pool = max(_or(query.candidates, usual), top_k)
    domain_kinds = _DOMAINS if domain_top_k else _NONE
    code_kinds = _CODE if code_top_k else _NONE
    by_name = _DOMAIN & paths if names_domains else frozenset()
    groups = (
        (DOMAINS, domain_kinds, domain_top_k, by_name or paths),
        (MAIN, defaults.main_kinds - domain_kinds - code_kinds, top_k, paths),
        (CODE, code_kinds, code_top_k, paths & _BOTH),
    )
    return tuple(
        GroupPlan(
            name=name,
            kinds=wanted,
            top_k=top_k,
            paths=paths,
            pool=max(pool, top_k),
            with_key_files=name == CODE and RecallPath.DOMAIN in query.paths,
        )
        for name, group_kinds, top_k, paths in groups
        if (wanted := group_kinds & kinds)
    )


def kinds_of(query: RecallQuery) -> frozenset[MemoryKind]:
    """The kinds of memories that a query may find."""
    return _kinds_of(query.preset, query.domain_top_k, query.code_top_k, query.filter.kinds or ALL_KINDS)


@lru_cache(_KEPT)
def _kinds_of(
    preset: Preset, domain_top_k: int | None, code_top_k: int | None, kinds: frozenset[MemoryKind]
) -> frozenset[MemoryKind]:
    defaults = PRESETS[preset]
    domains = _DOMAINS if _or(domain_top_k, defaults.domain_top_k) else _NONE
    code = _CODE if _or(code_top_k, defaults.code_top_k) else _NONE
    return (defaults.main_kinds | domains | code) & kinds


def says_too_little(query: RecallQuery) -> bool:
    """Whether the text is too short for a recall: a letter or two. Two Chinese characters are a word (S0-36, 1.1-2).

    The name of a language, such as C#, Go or R, is enough: it is searched for as it is written.
    """
    is_word = joins_paths(query) and query.text.strip().lower() not in ENGLISH_STOP_WORDS
    return _is_short(query) and not is_word


def _is_short(query: RecallQuery) -> bool:
    text = query.text.strip()
    is_short = text.isascii() and len(text) < SHORTEST_ASCII_CHARACTERS
    return is_short and query.preset is Preset.CODE and query.intent is None


def _filter(query: RecallQuery, question: Question, wanted: Wanted, *, joins_paths: bool) -> Filter:
    """Return the filter of a query that names no origins, with its preset's; no condition if those are all origins.

    Turns of the model are added if the query asks for them, and excluded if it is small talk.
    """
    origins = PRESETS[query.preset].origins
    if wanted & Wanted.FROM_ASSISTANT:
        origins |= {Origin.AI_OUTPUT}
    elif joins_paths and not wanted and query.preset in _OF_TALK and is_small_talk(question):
        origins -= {Origin.AI_OUTPUT}
    return query.filter if origins == ALL_ORIGINS else replace(query.filter, origins=origins)


def names_nothing(query: RecallQuery) -> bool:
    """Whether a text of a conversation greets, thanks, agrees or asks to go on, and no intent or origin says more."""
    if len(query.text) > MOST_SMALL_TALK_CHARACTERS or query.intent is not None or query.filter.origins:
        return False
    return query.preset in _OF_TALK and is_small_talk(question_of(query.text)) and joins_paths(query)


def _time_share(question: Question, times: tuple[TimeInterval, ...]) -> float:
    return ONLY_TIME_SHARE if is_only_of_times(question, [each.phrase for each in times]) else TIME_SHARE


def window_of(query: RecallQuery) -> SessionWindow | None:
    """The newest turns of the session, which are excluded: the caller has them in the history (S4-55)."""
    if not query.session_id:
        return None
    turns = _or(query.window_turns, PRESETS[query.preset].window_turns)
    return SessionWindow(session_id=query.session_id, turns=turns) if turns else None


def decay_of(query: RecallQuery) -> Decay:
    """Decay of scores with age: the query's, else its preset's."""
    defaults = PRESETS[query.preset]
    return Decay(
        mode=_or(query.decay_mode, defaults.decay_mode),
        half_life_days=_or(query.half_life_days, defaults.half_life_days),
        floor=_or(query.decay_floor, defaults.decay_floor if joins_paths(query) else 0.0),
        exempt_origins=query.decay_exempt_origins,
    )


def times_of(query: RecallQuery, question: Question, as_of: float, *, joins_paths: bool) -> tuple[TimeInterval, ...]:
    """Return the times that a query is about: those of its intent, else those that its words name.

    Args:
        query: The query.
        question: Its text.
        as_of: Unix seconds that its words are relative to.
        joins_paths: Whether its words count if it leaves `time_words` unset.
    """
    if query.intent is not None and query.intent.times:
        return query.intent.times
    counts = joins_paths if query.time_words is None else query.time_words
    if not counts or HINTS.isdisjoint(question.hints):
        return ()
    return time_intervals(question, as_of, query.zone)


def parse_event_time(query: RecallQuery, question: Question) -> EventReference | None:
    """Parse the event that a query's time is relative to; None if the time needs no search for an event."""
    if query.time_words is False or query.keyword_mode is not KeywordMode.TERMS or not joins_paths(query):
        return None
    if query.intent is not None and query.intent.times:
        return None
    told = parse_event_reference(question)
    # The calendar takes precedence: "two weeks before Christmas" needs no search.
    return None if told is None or time_intervals(question, query.as_of or 0.0, query.zone) else told


def joins_paths(query: RecallQuery) -> bool:
    """Whether paths are joined; a query for one path gets that path's order, without late interaction (1.1-10)."""
    return query.paths >= _BOTH


def _is_newest_first(query: RecallQuery) -> bool:
    """The first document's keyword path to the letter: any keyword in the text, the newest first (S0-11, 1.1-13)."""
    return query.keyword_mode is KeywordMode.SUBSTRING and query.paths == _KEYWORD


def _is_literal_chat(query: RecallQuery) -> bool:
    """The chat document's algorithm to the letter, which orders by similarity and age and by nothing else (1.1-10)."""
    return query.preset is Preset.CHAT and query.paths == _VECTOR


def _or(given: T | None, default: T) -> T:
    return default if given is None else given
