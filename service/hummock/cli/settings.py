"""`hummock projects settings`: what a project says where its requests say nothing."""

from __future__ import annotations

import json as json_lib
import uuid
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from rich.text import Text

from hummock.cli.connection import CALL_TIMEOUT_S, DEFAULT_TARGET, connect
from hummock.cli.options import JsonFlag, TargetOption, utf8
from hummock.cli.output import new_table, print_json, print_table, printable
from hummock.v1 import project_service_pb2 as pb
from hummock.v1 import settings_pb2

__all__ = ["settings"]

settings = typer.Typer(no_args_is_help=True, help="Show and change what a project's requests mean by default.")

_Name = Annotated[str, typer.Argument(metavar="PROJECT", callback=utf8)]
_Values = Annotated[
    list[str],
    typer.Argument(metavar="PATH=VALUE...", help='For example chat.top_k=8, "chat.origins=manual,ai_output".'),
]
_Paths = Annotated[list[str], typer.Argument(metavar="PATH...", help="For example chat.top_k, or chat for all of it.")]


@settings.command("get")
def get(
    name: _Name,
    path: Annotated[str, typer.Argument(metavar="[PATH]", help="One setting, or a group such as chat.")] = "",
    json: JsonFlag = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Show every value that applies, and who says it."""
    with connect(target) as service:
        request = pb.ProjectServiceGetSettingsRequest(project=name)
        response = service.projects.GetSettings(request, timeout=CALL_TIMEOUT_S)
    if path:
        chosen = [value for value in response.values if value.path == path or value.path.startswith(f"{path}.")]
        if not chosen:
            raise typer.BadParameter(f"there is no setting {path!r}; `hummock projects settings get {name}` lists them")
        del response.values[:]
        response.values.extend(chosen)
    if json:
        print_json(response)
    else:
        _print_values(response.values)


@settings.command("set")
def set_values(name: _Name, values: _Values, json: JsonFlag = False, target: TargetOption = DEFAULT_TARGET) -> None:
    """Give settings values; the next request follows them. Creates the project when it does not exist."""
    chosen = settings_pb2.ProjectSettings()
    paths = [_read(chosen, given) for given in values]
    _change(name, chosen, paths, target, json=json)


@settings.command("unset")
def unset(name: _Name, paths: _Paths, json: JsonFlag = False, target: TargetOption = DEFAULT_TARGET) -> None:
    """Let settings return to their defaults."""
    _change(name, settings_pb2.ProjectSettings(), paths, target, json=json)


def _change(name: str, chosen: settings_pb2.ProjectSettings, paths: Sequence[str], target: str, *, json: bool) -> None:
    request = pb.ProjectServiceUpdateSettingsRequest(
        project=name, request_id=str(uuid.uuid4()), settings=chosen, update_mask=FieldMask(paths=paths)
    )
    with connect(target) as service:
        response = service.projects.UpdateSettings(request, timeout=CALL_TIMEOUT_S)
    if json:
        print_json(response)
    else:
        _print_values([value for value in response.values if _is_named(value.path, paths)])


def _is_named(path: str, paths: Sequence[str]) -> bool:
    return any(path == named or path.startswith(f"{named}.") for named in paths)


def _read(chosen: settings_pb2.ProjectSettings, given: str) -> str:
    """Puts one PATH=VALUE into the message; returns the path."""
    path, equals, text = given.partition("=")
    group, _, field_name = path.partition(".")
    is_group = bool(equals) and group in chosen.DESCRIPTOR.fields_by_name
    field = getattr(chosen, group).DESCRIPTOR.fields_by_name.get(field_name) if is_group else None
    if field is None:
        raise typer.BadParameter(f"{given!r} is not PATH=VALUE with a path such as chat.top_k")
    try:
        ParseDict({field_name: _value(field, text)}, getattr(chosen, group))
    except (ParseError, ValueError) as error:
        raise typer.BadParameter(f"{path}: {text!r} is not one of its values; it takes {_wanted(field)}") from error
    return path


def _value(field: FieldDescriptor, text: str) -> Any:
    if field.enum_type is None:
        return json_lib.loads(text)
    prefix = _prefix(field.enum_type)
    names = [prefix + name.strip().upper() for name in text.split(",")]
    return names if field.is_repeated else ",".join(names)


def _wanted(field: FieldDescriptor) -> str:
    if field.enum_type is None:
        return "a number"
    names = [name.removeprefix(_prefix(field.enum_type)).lower() for name in field.enum_type.values_by_name]
    return ", ".join(names[1:]) + (", or several with commas between" if field.is_repeated else "")


def _prefix(enum: EnumDescriptor) -> str:
    """What the names of an enum's values begin with; the first one is ..._UNSPECIFIED."""
    return str(enum.values[0].name).removesuffix("UNSPECIFIED")


def _print_values(values: Sequence[settings_pb2.Setting]) -> None:
    table = new_table()
    table.add_column("setting", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("said by", no_wrap=True)
    table.add_column("default", overflow="fold")
    for value in values:
        is_own = value.origin == settings_pb2.SETTING_ORIGIN_PROJECT
        default = _shown(value.default_value) if is_own else ""
        table.add_row(value.path, Text(_shown(value.value)), "project" if is_own else "default", Text(default))
    print_table(table)


def _shown(value: Any) -> str:
    plain = MessageToDict(value)
    if isinstance(plain, list):
        return printable(", ".join(str(item).lower() for item in plain))
    return f"{plain:g}" if isinstance(plain, float) else printable(str(plain).lower())
