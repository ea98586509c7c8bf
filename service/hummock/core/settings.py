"""What a project sets for itself: values that its requests may leave open."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from typing import Final, TypeAlias

from hummock.core.memory import Origin
from hummock.core.recall import DecayMode, Preset
from hummock.core.render import PartialQuotas, RenderForm

Value: TypeAlias = int | float | frozenset[Origin] | DecayMode | None
"""None means that nobody says anything."""


class SettingOrigin(IntEnum):
    """Who says a value where a request does not."""

    DEFAULT = 1
    PROJECT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetSettings:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FormBudgets:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """The newest messages of a session that a rendering shows: so many, and of so many characters together."""

    messages: int | None = None
    characters: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSettings:
    """All that a project may set. A value's path is its group and its name, for example "chat.top_k"."""

    chat: PresetSettings = field(default_factory=PresetSettings)
    code: PresetSettings = field(default_factory=PresetSettings)
    agent: PresetSettings = field(default_factory=PresetSettings)
    codex: PresetSettings = field(default_factory=PresetSettings)
    budget_tokens: FormBudgets = field(default_factory=FormBudgets)
    quotas: PartialQuotas = field(default_factory=PartialQuotas)
    history: HistorySettings = field(default_factory=HistorySettings)

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
        for group in fields(self):
            names = [path.removeprefix(f"{group.name}.") for path in paths if path.startswith(f"{group.name}.")]
            source = getattr(values, group.name)
            groups[group.name] = replace(getattr(self, group.name), **{name: getattr(source, name) for name in names})
        return ProjectSettings(**groups)


NO_SETTINGS: Final = ProjectSettings()
"""Of a project that says nothing, always this object."""

SETTING_PATHS: Final = tuple(
    f"{group.name}.{value.name}" for group in fields(NO_SETTINGS) for value in fields(getattr(NO_SETTINGS, group.name))
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
