"""What a project sets for itself: values that its requests may leave open.

Settings lie in the store as arrays of their fields: a new field goes to the end and has a default.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from hummock.core.memory import Origin
from hummock.core.recall import DecayMode, Preset
from hummock.core.render import PartialQuotas, RenderForm

Value: TypeAlias = int | float | frozenset[Origin] | DecayMode | None
"""None means that nobody says anything."""


class SettingOrigin(IntEnum):
    """Who says a value where a request does not."""

    DEFAULT = 1
    PROJECT = 2


class PresetSettings(Struct, array_like=True, frozen=True, kw_only=True):
    """What recalls under one preset mean where they say nothing; fields as in `RecallQuery`.

    `origins` are those that answer where a filter names none.
    """

    candidates: int | None = None
    top_k: int | None = None
    code_top_k: int | None = None
    domain_top_k: int | None = None
    min_similarity: float | None = None
    origins: frozenset[Origin] | None = None
    decay_mode: DecayMode | None = None
    half_life_days: float | None = None
    relevance_weight: float | None = None
    near_twin_bar: float | None = None
    window_turns: int | None = None
    decay_floor: float | None = None


class FormBudgets(Struct, array_like=True, frozen=True, kw_only=True):
    """Tokens that a rendering may take, by its form."""

    context: int | None = None
    waterfall: int | None = None
    index: int | None = None
    memories: int | None = None
    messages: int | None = None

    def of(self, form: RenderForm) -> int | None:
        """The budget of a form."""
        match form:
            case RenderForm.CONTEXT:
                return self.context
            case RenderForm.WATERFALL:
                return self.waterfall
            case RenderForm.INDEX:
                return self.index
            case RenderForm.MEMORIES:
                return self.memories
            case RenderForm.MESSAGES:
                return self.messages


class HistorySettings(Struct, array_like=True, frozen=True, kw_only=True):
    """The newest messages of a session that a rendering shows: so many, and of so many characters together."""

    max_messages: int | None = None
    max_characters: int | None = None


class ProjectSettings(Struct, array_like=True, frozen=True, kw_only=True):
    """All that a project may set. A value's path is its group and its name, for example "chat.top_k"."""

    chat: PresetSettings = PresetSettings()
    code: PresetSettings = PresetSettings()
    agent: PresetSettings = PresetSettings()
    budget_tokens: FormBudgets = FormBudgets()
    quotas: PartialQuotas = PartialQuotas()
    history: HistorySettings = HistorySettings()
    codex: PresetSettings = PresetSettings()

    def preset(self, preset: Preset) -> PresetSettings:
        """What is set for one preset."""
        match preset:
            case Preset.CHAT:
                return self.chat
            case Preset.CODE:
                return self.code
            case Preset.AGENT:
                return self.agent
            case Preset.CODEX:
                return self.codex

    def value(self, path: str) -> Value:
        """What stands at a path of `SETTING_PATHS`."""
        group, name = path.split(".")
        found: Value = getattr(getattr(self, group), name)
        return found

    def changed(self, values: ProjectSettings, paths: Collection[str]) -> ProjectSettings:
        """With what `values` say at these paths; None there means that the project says nothing any more."""
        groups = {}
        for group in self.__struct_fields__:
            names = [path.removeprefix(f"{group}.") for path in paths if path.startswith(f"{group}.")]
            source = getattr(values, group)
            groups[group] = replace(getattr(self, group), **{name: getattr(source, name) for name in names})
        return ProjectSettings(**groups)


NO_SETTINGS: Final = ProjectSettings()
"""Of a project that says nothing, always this object."""

_SHOWN: Final = ("chat", "code", "agent", "codex", "budget_tokens", "quotas", "history")

SETTING_PATHS: Final = tuple(
    f"{group}.{name}" for group in _SHOWN for name in getattr(NO_SETTINGS, group).__struct_fields__
)
"""Every path, in the order in which people are shown them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value as it applies where a request says nothing, and what it would be if the project said nothing."""

    path: str
    value: Value
    origin: SettingOrigin
    default: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsShown:
    """A project's settings: what it says itself, and every value that applies."""

    own: ProjectSettings
    settings: tuple[Setting, ...]
    seq: int
    content_seq: int
