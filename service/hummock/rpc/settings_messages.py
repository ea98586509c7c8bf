"""Messages of a project's settings, parsed and presented."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from google.protobuf.message import Message

from hummock.core.errors import InvalidRequest
from hummock.core.memory import Origin, SecretPolicy
from hummock.core.recall import DecayMode
from hummock.core.review import ReviewPolicy
from hummock.core.settings import NO_SETTINGS, SETTING_PATHS, ProjectSettings, SettingsShown, SmallTalkPolicy, Value
from hummock.rpc import values
from hummock_client.v1 import settings_pb2

_MOST_SHOWN: Final = 64
_CONVERTED: Final[Mapping[str, Callable[[Any], object]]] = {
    "origins": lambda numbers: frozenset(map(Origin, numbers)),
    "decay_mode": DecayMode,
    "secrets.policy": SecretPolicy,
    "review.policy": ReviewPolicy,
    "small_talk": SmallTalkPolicy,
    "zone": lambda zone: values.time_zone("settings.times.zone", zone) or None,
}
"""What makes a value of a message's, by the names of settings or their paths."""


def project_settings(sent: settings_pb2.ProjectSettings) -> ProjectSettings:
    """The settings that are set in a message. Raises: InvalidRequest: an unknown time zone."""
    return ProjectSettings(**{group.name: _group(group.name, given) for group, given in sent.ListFields()})


def _group(group: str, given: Message) -> Any:
    parts: dict[str, object] = {}
    for field, value in given.ListFields():
        convert = _CONVERTED.get(f"{group}.{field.name}") or _CONVERTED.get(field.name)
        parts[field.name] = value if convert is None else convert(value)
    return type(getattr(NO_SETTINGS, group))(**parts)


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
