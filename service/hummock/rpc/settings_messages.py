"""Messages of a project's settings, parsed and presented."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from google.protobuf.message import Message

from hummock.core.errors import InvalidRequest
from hummock.core.memory import Origin, SecretPolicy
from hummock.core.recall import DecayMode
from hummock.core.render import PartialQuotas
from hummock.core.review import ReviewPolicy
from hummock.core.settings import (
    SETTING_PATHS,
    FormBudgets,
    HistorySettings,
    PresetSettings,
    ProjectSettings,
    RetentionSettings,
    ReviewSettings,
    SecretSettings,
    SettingsShown,
    SmallTalkPolicy,
    TimeSettings,
    TurnSettings,
    Value,
)
from hummock.rpc import values
from hummock_client.v1 import settings_pb2

_MOST_SHOWN: Final = 64
_CONVERTED: Final[Mapping[str, Callable[[Any], object]]] = {
    "origins": lambda numbers: frozenset(map(Origin, numbers)),
    "decay_mode": lambda number: DecayMode(number) if number else None,
}


def project_settings(sent: settings_pb2.ProjectSettings) -> ProjectSettings:
    """The settings that are set in a message."""
    return ProjectSettings(
        chat=PresetSettings(**_said(sent.chat)),
        code=PresetSettings(**_said(sent.code)),
        agent=PresetSettings(**_said(sent.agent)),
        codex=PresetSettings(**_said(sent.codex)),
        budget_tokens=FormBudgets(**_said(sent.budget_tokens)),
        quotas=PartialQuotas(**_said(sent.quotas)),
        history=HistorySettings(**_said(sent.history)),
        secrets=SecretSettings(policy=SecretPolicy(sent.secrets.policy) if sent.secrets.policy else None),
        retention=RetentionSettings(**_said(sent.retention)),
        review=ReviewSettings(policy=ReviewPolicy(sent.review.policy) if sent.review.policy else None),
        turns=TurnSettings(small_talk=SmallTalkPolicy(sent.turns.small_talk) if sent.turns.small_talk else None),
        times=TimeSettings(zone=values.time_zone("settings.times.zone", sent.times.zone) or None),
    )


def setting_paths(mask: Sequence[str]) -> frozenset[str]:
    """The paths that a mask names; a group includes all of its own. Raises: InvalidRequest."""
    if not mask:
        raise InvalidRequest("update_mask", 'names no setting; it may name paths such as "chat.top_k", or "chat"')
    paths: set[str] = set()
    for named in mask:
        found = [path for path in SETTING_PATHS if path == named or path.startswith(f"{named}.")]
        if not found:
            raise InvalidRequest("update_mask", f"names {named[:_MOST_SHOWN]!r}, which is no setting")
        paths.update(found)
    return frozenset(paths)


def own_settings(own: ProjectSettings) -> settings_pb2.ProjectSettings:
    """The settings that the project itself has; all others are unset."""
    return _settings((path, own.value(path)) for path in SETTING_PATHS)


def effective_settings(shown: SettingsShown) -> settings_pb2.ProjectSettings:
    """Every value that applies."""
    return _settings((setting.path, setting.value) for setting in shown.settings)


def default_settings(shown: SettingsShown) -> settings_pb2.ProjectSettings:
    """The settings that would apply if the project had none."""
    return _settings((setting.path, setting.default) for setting in shown.settings)


def _settings(said: Iterable[tuple[str, Value]]) -> settings_pb2.ProjectSettings:
    message = settings_pb2.ProjectSettings()
    for path, value in said:
        if value is None:
            continue
        group, name = path.split(".")
        if isinstance(value, frozenset):
            getattr(getattr(message, group), name).extend(sorted(value))
        else:
            setattr(getattr(message, group), name, value)
    return message


def _said(group: Message) -> dict[str, Any]:
    return {field.name: _CONVERTED.get(field.name, _itself)(value) for field, value in group.ListFields()}


def _itself(value: Any) -> object:
    return value
