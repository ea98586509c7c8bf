"""Options that several commands have, and requests made of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import typer
from google.protobuf.timestamp_pb2 import Timestamp
from typer import Argument, Option

from hummock_client.time_zone import own_clock, own_zone
from hummock_client.v1 import memory_pb2, recall_pb2
from hummock_tools.cli.connection import packages_of, require_unix
from hummock_tools.project_name import open_folder, project_of, repository_of

PresetName: TypeAlias = Literal["chat", "code", "agent", "codex"]


class KindName(StrEnum):
    """The contract's kinds of memory."""

    LEARNING_RECORD = "learning_record"
    DOMAIN_KNOWLEDGE = "domain_knowledge"
    CODE_FRAGMENT = "code_fragment"
    NOTE = "note"
    ENTRY = "entry"


class AgentName(StrEnum):
    """Agents whose files are known."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    GEMINI = "gemini"
    CURSOR = "cursor"
    OPENCODE = "opencode"
    COPILOT = "copilot"
    CLINE = "cline"
    JUNIE = "junie"
    VSCODE = "vscode"
    CLAUDE = "claude"
    WINDSURF = "windsurf"
    ZED = "zed"


class OriginName(StrEnum):
    """The contract's origins."""

    MANUAL = "manual"
    SUMMARY = "summary"
    USER_INPUT = "user_input"
    AI_OUTPUT = "ai_output"
    INDEXER = "indexer"


Text = TypeVar("Text", str, None)


def utf8(value: Text) -> Text:
    """The value itself; a usage error where the shell passed bytes that are not UTF-8."""
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        raise typer.BadParameter("is not valid UTF-8") from None
    return value


def project_of_repository(folder: Path | None = None) -> str:
    """The project of the repository that holds a folder, by default the open one. Raises: BadParameter."""
    how = "name the project with --project or HUMMOCK_PROJECT"
    try:
        inside = Path(folder or open_folder()).absolute()
    except FileNotFoundError:
        raise typer.BadParameter(f"the current folder is gone; {how}") from None
    project = project_of(inside)
    if project and repository_of(inside):
        return project
    agents = f" (agents that work there use {project})" if project else ""
    raise typer.BadParameter(f"{inside} is in no repository; {how}{agents}")


def _project_or_repository(named: str) -> str:
    return utf8(named) or project_of_repository()


def count_option(name: str, help: str, bits: int = 32) -> Any:
    """An option whose number fits a field of so many bits."""

    def fitting(value: int | None) -> int | None:
        if value is not None and not 0 <= value < 1 << bits:
            raise typer.BadParameter(f"is {value}; it must be 0 to {(1 << bits) - 1}")
        return value

    return Option(name, help=help, callback=fitting)


def text_option(name: str, help: str) -> Any:
    """An option whose text is UTF-8."""
    return Option(name, help=help, callback=utf8)


def text_argument(metavar: str, help: str) -> Any:
    """An argument whose text is UTF-8."""
    return Argument(metavar=metavar, help=help, callback=utf8)


def _since(text: str | datetime) -> datetime:
    """The moment that a day or a time begins at; without an offset it is of the caller's clock."""
    if isinstance(text, datetime):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text} is no day or time such as 2023-05-02 or 2023-05-02T09:30") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=clock())


def clock() -> tzinfo:
    """Return the time zone in which times are parsed and shown."""
    try:
        return own_clock()
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _until(text: str | datetime) -> datetime:
    """The moment that a text names, like `_since`; a day means its end."""
    moment = _since(text)
    return moment + timedelta(days=1) if isinstance(text, str) and len(text) <= len("2023-05-02") else moment


# HUMMOCK_TARGET and HUMMOCK_PROJECT say where to call and are read by typer; config.py reads the service's settings.
Target = Annotated[
    str, Option("--target", envvar="HUMMOCK_TARGET", help="Where the service listens: host:port or unix:path.")
]
Project = Annotated[
    str,
    Option(
        *("--project", "-p"),
        envvar="HUMMOCK_PROJECT",
        help="The project to work on; that of this repository if unset.",
        default_factory=str,
        show_default=False,
        callback=_project_or_repository,
    ),
]
"""For commands that read or add."""
NamedProject = Annotated[
    str, Option("--project", "-p", envvar="HUMMOCK_PROJECT", help="The project to work on.", callback=utf8)
]
"""For commands that change or remove what is stored: a wrong guess would cost something."""
Json = Annotated[bool, Option("--json", help="Print the service's reply as JSON.")]
JsonLines = Annotated[bool, Option("--json", help="Print each message as a line of JSON.")]
Page = Annotated[str, Option("--page", help="The token that the page before ended with.")]
Query = Annotated[str, text_argument("TEXT", "What to look for.")]
Preset = Annotated[PresetName | None, Option("--preset", help="The kind of caller; agent if unset.")]
Kinds = Annotated[list[KindName] | None, Option("--kind", help="Of this kind; repeatable.")]
Origins = Annotated[list[OriginName] | None, Option("--origin", help="Of this origin; repeatable.")]
Sessions = Annotated[list[str] | None, Option("--session", help="Of this session; repeatable.")]
Writers = Annotated[
    list[str] | None, Option("--writer", help="Written with the access token of this name; repeatable.")
]
Tags = Annotated[list[str] | None, Option("--tag", help="A tag that memories must have; repeatable.")]
Paths = Annotated[
    list[str] | None,
    Option(
        "--path",
        help='Only code of this file ("dates.py", "src/dates.py") or folder ("src/"); repeatable, any of them.',
    ),
]
Meta = Annotated[
    list[str] | None, Option("--meta", metavar="NAME=VALUE", help="Metadata that memories must have; repeatable.")
]
Since = Annotated[
    datetime | None,
    Option("--since", help="Told of this day or later: 2023-05-02, or 2023-05-02T09:30.", parser=_since),
]
Until = Annotated[
    datetime | None,
    Option("--until", help="Told of this day (UTC) or earlier; with a time of day, before it.", parser=_until),
]
Stale = Annotated[
    bool, Option("--allow-stale", help="While the database is away, what the service saw last; the reply says so.")
]
Expires = Annotated[
    datetime | None,
    Option("--expires", help="Forget it at this moment (UTC): 2030-05-02, or 2030-05-02T09:30.", parser=_since),
]
TokenExpiresOption = Annotated[
    datetime | None, Option("--expires", help="When it ends (UTC): 2030-05-02, or 2030-05-02T09:30.", parser=_since)
]
TopK = Annotated[int | None, count_option("--top-k", "How many memories; the preset decides if unset.")]
DataOption = Annotated[Path | None, Option("--data", help="The data directory (HUMMOCK_DATA).")]
ModelsOption = Annotated[Path | None, Option("--models", help="Where model files lie (HUMMOCK_MODELS).")]


def data_dir_of(data: Path | None) -> Path:
    """The data directory that is named, else that of the settings. Raises: CommandFailed, StartError."""
    require_unix()
    if data is not None:
        return data
    with packages_of("server"):
        from hummock.config import load_settings
    return load_settings().data_dir


def origin_value(name: OriginName) -> memory_pb2.Origin.ValueType:
    """The contract's value."""
    return memory_pb2.Origin.Value(f"ORIGIN_{name.upper()}")


def timestamp(moment: datetime | None) -> Timestamp | None:
    """The contract's value; None for None."""
    if moment is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp


def metadata_of(meta: Sequence[str] | None) -> dict[str, str]:
    """Each NAME=VALUE. Raises: BadParameter."""
    found: dict[str, str] = {}
    for given in meta or ():
        name, equals, value = given.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"{given!r} is not NAME=VALUE")
        found[name] = value
    return found


def filter_of(
    tags: Sequence[str] | None,
    kinds: Sequence[KindName] | None = None,
    origins: Sequence[OriginName] | None = None,
    sessions: Sequence[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    meta: Sequence[str] | None = None,
    writers: Sequence[str] | None = None,
    paths: Sequence[str] | None = None,
) -> memory_pb2.MemoryFilter:
    """A filter: all of these tags and metadata, a time in this range, any value of each other list that is given."""
    return memory_pb2.MemoryFilter(
        metadata=metadata_of(meta),
        event_after=timestamp(since),
        event_before=timestamp(until),
        tags=tags or (),
        kinds=[memory_pb2.MemoryKind.Value(f"MEMORY_KIND_{kind.upper()}") for kind in kinds or ()],
        origins=[origin_value(origin) for origin in origins or ()],
        session_ids=sessions or (),
        writers=writers or (),
        paths=paths or (),
    )


def recall_request(
    project: str,
    text: str,
    preset: PresetName | None,
    top_k: int | None = None,
    tags: Sequence[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    paths: Sequence[str] | None = None,
) -> recall_pb2.RecallRequest:
    """A recall request; options that are None are left to the preset."""
    return recall_pb2.RecallRequest(
        project=project,
        query_text=text,
        preset=recall_pb2.Preset.Value(f"PRESET_{preset.upper()}") if preset else recall_pb2.PRESET_UNSPECIFIED,
        tuning=recall_pb2.RecallTuning(top_k=top_k),
        filter=filter_of(tags, since=since, until=until, paths=paths),
        time_zone=own_zone(),
    )
