"""A project's settings as they lie in the store: one record a project, none where it says nothing.

As in `codec`, records evolve by addition only. What this version does not know, it skips.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TypeVar

import lmdb
import msgspec

from hummock.core.memory import Origin
from hummock.core.recall import DecayMode
from hummock.core.render import PartialQuotas
from hummock.core.settings import NO_SETTINGS, FormBudgets, HistorySettings, PresetSettings, ProjectSettings
from hummock.store.lmdb import keys
from hummock.store.lmdb.environment import Tables

Member = TypeVar("Member", bound=IntEnum)


class PresetSettingsRecord(msgspec.Struct, array_like=True, frozen=True):
    """PresetSettings; enums by their numbers."""

    candidates: int | None = None
    top_k: int | None = None
    code_top_k: int | None = None
    domain_top_k: int | None = None
    min_similarity: float | None = None
    origins: tuple[int, ...] = ()
    decay_mode: int | None = None
    half_life_days: float | None = None
    relevance_weight: float | None = None
    near_twin_bar: float | None = None
    window_turns: int | None = None


class FormBudgetsRecord(msgspec.Struct, array_like=True, frozen=True):
    """FormBudgets."""

    context: int | None = None
    waterfall: int | None = None
    index: int | None = None
    memories: int | None = None
    messages: int | None = None


class PartialQuotasRecord(msgspec.Struct, array_like=True, frozen=True):
    """PartialQuotas."""

    domains: int | None = None
    learning_records: int | None = None
    code_fragments: int | None = None


class HistorySettingsRecord(msgspec.Struct, array_like=True, frozen=True):
    """HistorySettings."""

    messages: int | None = None
    characters: int | None = None


class SettingsRecord(msgspec.Struct, array_like=True, frozen=True):
    """ProjectSettings."""

    chat: PresetSettingsRecord = PresetSettingsRecord()
    code: PresetSettingsRecord = PresetSettingsRecord()
    agent: PresetSettingsRecord = PresetSettingsRecord()
    budget_tokens: FormBudgetsRecord = FormBudgetsRecord()
    quotas: PartialQuotasRecord = PartialQuotasRecord()
    history: HistorySettingsRecord = HistorySettingsRecord()
    codex: PresetSettingsRecord = PresetSettingsRecord()


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(SettingsRecord).decode


def read_settings(txn: lmdb.Transaction[bytes], tables: Tables, number: int) -> ProjectSettings:
    """The settings of a project; `NO_SETTINGS` where it has none."""
    value = txn.get(keys.project_prefix(number), db=tables.settings)
    return NO_SETTINGS if value is None else unpack(value)


def write_settings(txn: lmdb.Transaction[bytes], tables: Tables, number: int, settings: ProjectSettings) -> None:
    """Replaces the settings of a project."""
    key = keys.project_prefix(number)
    if settings == NO_SETTINGS:
        txn.delete(key, db=tables.settings)
    else:
        txn.put(key, pack(settings), db=tables.settings)


def pack(settings: ProjectSettings) -> bytes:
    """The record of settings as bytes."""
    budgets, quotas = settings.budget_tokens, settings.quotas
    record = SettingsRecord(
        chat=_preset_record(settings.chat),
        code=_preset_record(settings.code),
        agent=_preset_record(settings.agent),
        codex=_preset_record(settings.codex),
        budget_tokens=FormBudgetsRecord(
            context=budgets.context,
            waterfall=budgets.waterfall,
            index=budgets.index,
            memories=budgets.memories,
            messages=budgets.messages,
        ),
        quotas=PartialQuotasRecord(
            domains=quotas.domains,
            learning_records=quotas.learning_records,
            code_fragments=quotas.code_fragments,
        ),
        history=HistorySettingsRecord(messages=settings.history.messages, characters=settings.history.characters),
    )
    return _encode(record)


def unpack(value: bytes) -> ProjectSettings:
    """Inverse of `pack`."""
    record = _decode(value)
    budgets, quotas = record.budget_tokens, record.quotas
    return ProjectSettings(
        chat=_preset_of(record.chat),
        code=_preset_of(record.code),
        agent=_preset_of(record.agent),
        codex=_preset_of(record.codex),
        budget_tokens=FormBudgets(
            context=budgets.context,
            waterfall=budgets.waterfall,
            index=budgets.index,
            memories=budgets.memories,
            messages=budgets.messages,
        ),
        quotas=PartialQuotas(
            domains=quotas.domains,
            learning_records=quotas.learning_records,
            code_fragments=quotas.code_fragments,
        ),
        history=HistorySettings(messages=record.history.messages, characters=record.history.characters),
    )


def _preset_record(preset: PresetSettings) -> PresetSettingsRecord:
    return PresetSettingsRecord(
        candidates=preset.candidates,
        top_k=preset.top_k,
        code_top_k=preset.code_top_k,
        domain_top_k=preset.domain_top_k,
        min_similarity=preset.min_similarity,
        origins=tuple(sorted(map(int, preset.origins or ()))),
        decay_mode=None if preset.decay_mode is None else int(preset.decay_mode),
        half_life_days=preset.half_life_days,
        relevance_weight=preset.relevance_weight,
        near_twin_bar=preset.near_twin_bar,
        window_turns=preset.window_turns,
    )


def _preset_of(record: PresetSettingsRecord) -> PresetSettings:
    origins = frozenset(_ORIGINS[number] for number in record.origins if number in _ORIGINS)
    return PresetSettings(
        candidates=record.candidates,
        top_k=record.top_k,
        code_top_k=record.code_top_k,
        domain_top_k=record.domain_top_k,
        min_similarity=record.min_similarity,
        origins=origins or None,
        decay_mode=None if record.decay_mode is None else _DECAY_MODES.get(record.decay_mode),
        half_life_days=record.half_life_days,
        relevance_weight=record.relevance_weight,
        near_twin_bar=record.near_twin_bar,
        window_turns=record.window_turns,
    )


def _by_number(kind: type[Member]) -> Mapping[int, Member]:
    return {int(member): member for member in kind}


_ORIGINS = _by_number(Origin)
_DECAY_MODES = _by_number(DecayMode)
