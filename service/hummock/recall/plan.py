"""From a query and its preset to a plan with every number filled in."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from hummock.core.candidates import SessionWindow
from hummock.core.memory import Filter, MemoryKind, Origin
from hummock.core.recall import Decay, GroupPlan, Intent, KeywordMode, Plan, Preset, RecallPath, RecallQuery
from hummock.recall.presets import ALL_ORIGINS, PRESETS, Defaults
from hummock.recall.times import times_of

MAIN, CODE, DOMAINS = "main", "code", "domains"
NO_TWINS = 2.0
SHORTEST_ASCII_CHARACTERS = 3
T = TypeVar("T")

_CODE_PATHS = frozenset({RecallPath.VECTOR, RecallPath.KEYWORD})


def make_plan(query: RecallQuery, intent: Intent, near_twin_bar: float, now: float) -> Plan:
    """Fill in what the query leaves open.

    Args:
        query: As it was asked for.
        intent: What it was taken to mean.
        near_twin_bar: The model's cosine from which texts are versions of one another.
        now: Unix seconds, used when the query names no `as_of`.
    """
    defaults = PRESETS[query.preset]
    as_of = _or(query.as_of, now)
    times = times_of(query, as_of, joins_paths=joins_paths(query))
    return Plan(
        preset=query.preset,
        groups=_groups(query, defaults),
        filter=_filter(query.filter, defaults.origins),
        min_similarity=_or(query.min_similarity, defaults.min_similarity),
        decay=decay_of(query),
        relevance_weight=_or(query.relevance_weight, 1.0 if _is_newest_first(query) else defaults.relevance_weight),
        near_twin_bar=_or(query.near_twin_bar, NO_TWINS if _is_to_the_letter(query) else near_twin_bar),
        late_interaction=_or(query.late_interaction, joins_paths(query)),
        neighbours=joins_paths(query),
        substrings=_substrings(query, intent),
        times=times,
        intent=replace(intent, times=times) if times else intent,
        as_of=as_of,
        window=_window(query, defaults),
        echo_window_s=query.echo_window_s,
    )


def _filter(asked: Filter, origins: frozenset[Origin]) -> Filter:
    """The query's filter, with the preset's origins where it names none; no condition where those are all."""
    return asked if asked.origins or origins == ALL_ORIGINS else replace(asked, origins=origins)


def _window(query: RecallQuery, defaults: Defaults) -> SessionWindow | None:
    """What was said last need not be recalled: whoever asks has it in the history (S4-55)."""
    turns = _or(query.window_turns, defaults.window_turns)
    return SessionWindow(session_id=query.session_id, turns=turns) if query.session_id and turns else None


def decay_of(query: RecallQuery) -> Decay:
    """How scores fall with age: what the query says, else its preset."""
    defaults = PRESETS[query.preset]
    return Decay(
        mode=_or(query.decay_mode, defaults.decay_mode),
        half_life_days=_or(query.half_life_days, defaults.half_life_days),
        exempt_origins=query.decay_exempt_origins,
    )


def _groups(query: RecallQuery, defaults: Defaults) -> tuple[GroupPlan, ...]:
    """The group that holds domains comes before the code, which pulls the key files of those that the query names."""
    if says_too_little(query):
        return ()
    top_k = _or(query.top_k, defaults.top_k)
    pool = max(_or(query.candidates, defaults.candidates), top_k)
    code_top_k = _or(query.code_top_k, defaults.code_top_k)
    domain_top_k = _or(query.domain_top_k, defaults.domain_top_k)
    main_kinds = defaults.main_kinds
    groups: list[GroupPlan] = []
    if domain_top_k:
        main_kinds -= {MemoryKind.DOMAIN_KNOWLEDGE}
        kinds = frozenset({MemoryKind.DOMAIN_KNOWLEDGE})
        groups.append(_group(DOMAINS, kinds, domain_top_k, query.paths, max(pool, domain_top_k)))
    if code_top_k:
        main_kinds -= {MemoryKind.CODE_FRAGMENT}
    groups.append(_group(MAIN, main_kinds, top_k, query.paths, pool))
    if code_top_k:
        kinds = frozenset({MemoryKind.CODE_FRAGMENT})
        code = _group(CODE, kinds, code_top_k, query.paths & _CODE_PATHS, max(pool, code_top_k))
        groups.append(replace(code, with_key_files=RecallPath.DOMAIN in query.paths))
    wanted = query.filter.kinds
    if wanted:
        groups = [replace(group, kinds=group.kinds & wanted) for group in groups]
    return tuple([group for group in groups if group.kinds])


def joins_paths(query: RecallQuery) -> bool:
    """Late interaction belongs to the joined order; who asks for one path wants that path's order (1.1-10)."""
    return query.paths >= {RecallPath.VECTOR, RecallPath.KEYWORD}


def _substrings(query: RecallQuery, intent: Intent) -> tuple[str, ...]:
    """The keywords, or the whole text where it has none (a single character)."""
    if query.keyword_mode is not KeywordMode.SUBSTRING:
        return ()
    return intent.keywords or (query.text.strip(),)


def _is_to_the_letter(query: RecallQuery) -> bool:
    return _is_literal_chat(query) or _is_newest_first(query)


def _is_newest_first(query: RecallQuery) -> bool:
    """The first document's keyword path to the letter: any keyword in the text, the newest first (S0-11, 1.1-13)."""
    return query.keyword_mode is KeywordMode.SUBSTRING and query.paths == {RecallPath.KEYWORD}


def _is_literal_chat(query: RecallQuery) -> bool:
    """The chat document's algorithm to the letter, which orders by similarity and age and by nothing else (1.1-10)."""
    return query.preset is Preset.CHAT and query.paths == {RecallPath.VECTOR}


def says_too_little(query: RecallQuery) -> bool:
    """A letter or two in an editor is nothing to recall for; two Chinese characters are a word (S0-36, 1.1-2)."""
    text = query.text.strip()
    is_short = text.isascii() and len(text) < SHORTEST_ASCII_CHARACTERS
    return is_short and query.preset is Preset.CODE and query.intent is None


def _group(name: str, kinds: frozenset[MemoryKind], top_k: int, paths: frozenset[RecallPath], pool: int) -> GroupPlan:
    return GroupPlan(name=name, kinds=kinds, top_k=top_k, paths=paths, pool=pool)


def _or(given: T | None, default: T) -> T:
    return default if given is None else given
