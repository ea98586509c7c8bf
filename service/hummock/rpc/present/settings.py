"""A project's settings in replies."""

from __future__ import annotations

from collections.abc import Iterable

from hummock.core.recall import DecayMode
from hummock.core.settings import SETTING_PATHS, ProjectSettings, Setting, Value
from hummock.rpc.present import values
from hummock.v1 import settings_pb2 as pb


def project_settings(own: ProjectSettings) -> pb.ProjectSettings:
    """What a project says itself; all else is unset."""
    message = pb.ProjectSettings()
    for path in SETTING_PATHS:
        value = own.value(path)
        if value is None:
            continue
        group, name = path.split(".")
        if isinstance(value, frozenset):
            getattr(getattr(message, group), name).extend(sorted(value))
        else:
            setattr(getattr(message, group), name, value)
    return message


def settings(shown: Iterable[Setting]) -> list[pb.Setting]:
    """Every value that applies."""
    return [
        pb.Setting(
            path=setting.path,
            value=values.json_value(_plain(setting.value)),
            origin=pb.SettingOrigin.ValueType(setting.origin),
            default_value=values.json_value(_plain(setting.default)),
        )
        for setting in shown
    ]


def _plain(value: Value) -> object:
    match value:
        case frozenset():
            return [origin.name for origin in sorted(value)]
        case DecayMode():
            return value.name
        case _:
            return value
