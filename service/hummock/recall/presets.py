"""The defaults of each preset: one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hummock.core.memory import MemoryKind, Origin
from hummock.core.recall import DecayMode, Preset

ALL_KINDS = frozenset(MemoryKind)
ALL_ORIGINS = frozenset(Origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What a preset means, field by field as in `Plan`; `main_kinds` are the kinds of the main group."""

    main_kinds: frozenset[MemoryKind]
    origins: frozenset[Origin]
    candidates: int
    top_k: int
    code_top_k: int
    domain_top_k: int
    min_similarity: float
    decay_mode: DecayMode
    half_life_days: float
    relevance_weight: float
    window_turns: int


PRESETS: Mapping[Preset, Defaults] = {
    Preset.CHAT: Defaults(
        main_kinds=ALL_KINDS,
        origins=frozenset({Origin.MANUAL, Origin.SUMMARY, Origin.USER_INPUT}),
        candidates=20,
        top_k=5,
        code_top_k=0,
        domain_top_k=0,
        min_similarity=0.30,
        decay_mode=DecayMode.EXPONENTIAL,
        half_life_days=14.0,
        relevance_weight=1.0,
        window_turns=10,
    ),
    Preset.CODE: Defaults(
        main_kinds=frozenset({MemoryKind.LEARNING_RECORD, MemoryKind.NOTE, MemoryKind.ENTRY}),
        origins=ALL_ORIGINS,
        candidates=50,
        top_k=10,
        code_top_k=10,
        domain_top_k=3,
        min_similarity=-1.0,
        decay_mode=DecayMode.OFF,
        half_life_days=14.0,
        relevance_weight=0.7,
        window_turns=0,
    ),
    Preset.AGENT: Defaults(
        main_kinds=ALL_KINDS,
        origins=ALL_ORIGINS,
        candidates=50,
        top_k=10,
        code_top_k=0,
        domain_top_k=0,
        min_similarity=-1.0,
        decay_mode=DecayMode.OFF,
        half_life_days=14.0,
        relevance_weight=0.7,
        window_turns=0,
    ),
    Preset.CODEX: Defaults(
        main_kinds=frozenset({MemoryKind.ENTRY}),
        origins=ALL_ORIGINS,
        candidates=50,
        top_k=20,
        code_top_k=0,
        domain_top_k=0,
        min_similarity=0.60,
        decay_mode=DecayMode.OFF,
        half_life_days=14.0,
        relevance_weight=1.0,
        window_turns=0,
    ),
}
