"""Settings of a project: defaults for values that its requests leave unset.

Settings are stored as arrays of their fields: a new field goes to the end and has a default.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from hummock.core.memory import Origin, SecretPolicy
from hummock.core.recall import DecayMode, Preset
from hummock.core.render import PartialQuotas, RenderForm
from hummock.core.review import ReviewPolicy

Value: TypeAlias = int | float | str | frozenset[Origin] | IntEnum | None
"""A value of a setting; None leaves it open."""


class SettingOrigin(IntEnum):
    """Source of a value that a request leaves open."""

    DEFAULT = 1
    PROJECT = 2


class PresetSettings(Struct, array_like=True, frozen=True, kw_only=True):
    """Settings of recalls under one preset; fields as in `RecallQuery`.

    `origins` apply if a filter names none.
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
    writer_cap: int | None = None


class FormBudgets(Struct, array_like=True, frozen=True, kw_only=True):
    """Tokens that a rendering may take, by its form, and its pinned memories together in any form."""

    context: int | None = None
    waterfall: int | None = None
    index: int | None = None
    memories: int | None = None
    messages: int | None = None
    pinned: int | None = None

    def of(self, form: RenderForm) -> int | None:
        """The budget of a form."""
        found: int | None = getattr(self, form.name.lower())
        return found


class HistorySettings(Struct, array_like=True, frozen=True, kw_only=True):
    """The newest messages of a session that a rendering shows: so many, and of so many characters together."""

    max_messages: int | None = None
    max_characters: int | None = None


class SecretSettings(Struct, array_like=True, frozen=True, kw_only=True):
    """Policy for secrets in texts to be stored."""

    policy: SecretPolicy | None = None


class RetentionSettings(Struct, array_like=True, frozen=True, kw_only=True):
    """Limits on a project's memories and sessions; indexed memories are exempt. None is no limit.

    The age is that of memories since their create time, and of sessions since their newest message. Of memories the
    newest writes are kept; `max_bytes` are those of their texts and raw texts in UTF-8.
    """

    max_age_days: float | None = None
    max_memories: int | None = None
    max_bytes: int | None = None


class ReviewSettings(Struct, array_like=True, frozen=True, kw_only=True):
    """Policy for holding memories for review."""

    policy: ReviewPolicy | None = None


class TimeSettings(Struct, array_like=True, frozen=True, kw_only=True):
    """The users' time zone, in which words such as "yesterday" are read and times are shown."""

    zone: str | None = None


class SmallTalkPolicy(IntEnum):
    """SKIP makes no memories of small talk in turns, KEEP does."""

    SKIP = 1
    KEEP = 2


class IndexPolicy(IntEnum):
    """Index of vectors in a large project: SIGNS alone, a GRAPH beside them, or with AUTO one that proves itself."""

    AUTO = 1
    SIGNS = 2
    GRAPH = 3


class TurnSettings(Struct, array_like=True, frozen=True, kw_only=True):
    """What of a turn becomes a memory."""

    small_talk: SmallTalkPolicy | None = None


class ProjectSettings(Struct, array_like=True, frozen=True, kw_only=True):
    """All that a project may set. A value's path is its group and its name, for example "chat.top_k"."""

    chat: PresetSettings = PresetSettings()
    code: PresetSettings = PresetSettings()
    agent: PresetSettings = PresetSettings()
    budget_tokens: FormBudgets = FormBudgets()
    quotas: PartialQuotas = PartialQuotas()
    history: HistorySettings = HistorySettings()
    codex: PresetSettings = PresetSettings()
    secrets: SecretSettings = SecretSettings()
    retention: RetentionSettings = RetentionSettings()
    review: ReviewSettings = ReviewSettings()
    times: TimeSettings = TimeSettings()
    turns: TurnSettings = TurnSettings()

    def preset(self, preset: Preset) -> PresetSettings:
        """The settings for one preset."""
        found: PresetSettings = getattr(self, preset.name.lower())
        return found

    def secret_policy(self) -> SecretPolicy:
        """The policy that applies."""
        return SECRET_POLICY if self.secrets.policy is None else self.secrets.policy

    def review_policy(self) -> ReviewPolicy:
        """The policy that applies."""
        return REVIEW_POLICY if self.review.policy is None else self.review.policy

    def keeps_small_talk(self) -> bool:
        """Whether small talk in turns becomes memories."""
        return self.turns.small_talk is SmallTalkPolicy.KEEP

    def pinned_tokens(self) -> int:
        """Most tokens of the pinned memories of a prompt together, as `Memory.token_count` counts them."""
        return PINNED_TOKENS if self.budget_tokens.pinned is None else self.budget_tokens.pinned

    def value(self, path: str) -> Value:
        """The value at a path of `SETTING_PATHS`."""
        group, name = path.split(".")
        found: Value = getattr(getattr(self, group), name)
        return found

    def changed(self, values: ProjectSettings, paths: Collection[str]) -> ProjectSettings:
        """Replace the settings at these paths by those of `values`; None unsets one."""
        groups = {}
        for group in self.__struct_fields__:
            names = [path.removeprefix(f"{group}.") for path in paths if path.startswith(f"{group}.")]
            source = getattr(values, group)
            groups[group] = replace(getattr(self, group), **{name: getattr(source, name) for name in names})
        return ProjectSettings(**groups)


SECRET_POLICY: Final = SecretPolicy.REDACT
REVIEW_POLICY: Final = ReviewPolicy.HOLD
"""Policy of a project without a setting for it."""

PINNED_TOKENS: Final = 500
"""A dozen facts of a person: an eighth of the context form's budget, a quarter of the others'."""

NO_SETTINGS: Final = ProjectSettings()
"""Settings of a project that has set nothing; always this object."""

_SHOWN: Final = (
    *("chat", "code", "agent", "codex", "budget_tokens", "quotas"),
    *("history", "secrets", "retention", "review", "times", "turns"),
)
SETTING_PATHS: Final = tuple(
    f"{group}.{name}" for group in _SHOWN for name in getattr(NO_SETTINGS, group).__struct_fields__
)
"""Every path, in display order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The effective default of one setting, and the default without the project's own value."""

    path: str
    value: Value
    origin: SettingOrigin
    default: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsShown:
    """A project's own settings, and all effective values."""

    own: ProjectSettings
    settings: tuple[Setting, ...]
    seq: int
    content_seq: int
