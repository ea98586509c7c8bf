"""The service's settings: defaults < file < environment < flags.

This is the only reader of TOML and of the environment in the service (`hummock_kernels/_jit.py` excepted, which must
act before Numba is imported). The command line's own `HUMMOCK_TARGET` and `HUMMOCK_PROJECT` say where to call and
belong to typer; `HUMMOCK_TOKEN` and the like say how, and belong to the client.

The file is the one that `HUMMOCK_CONFIG` names, else `hummock.toml` in the working directory if it is there. Its keys
are the fields below, `[llm]`, `[learning_llm]` and `[storage]` tables; in the environment the same key is `HUMMOCK_`
and its name in capitals (`HUMMOCK_STORAGE_QUOTA_BYTES`), but for the two directories, which are `HUMMOCK_DATA` and
`HUMMOCK_MODELS`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from hummock.core.errors import StartError

__all__ = ["LlmSettings", "Settings", "SettingsInvalid", "StorageSettings", "load_settings", "variables"]

_PREFIX = "HUMMOCK_"
_CONFIG_FILE = "hummock.toml"
_GIB = 1 << 30
# Not the service's settings: read by this file, by the command line and by the tests.
_OTHER_VARIABLES = frozenset(
    {
        "HUMMOCK_CONFIG",
        "HUMMOCK_TARGET",
        "HUMMOCK_PROJECT",
        "HUMMOCK_SHARED",
        "HUMMOCK_TOKEN",
        "HUMMOCK_TOKEN_FILE",
        "HUMMOCK_TIME_ZONE",
        "HUMMOCK_TLS",
        "HUMMOCK_TLS_CA",
        "HUMMOCK_CLIENT_CERTIFICATE",
        "HUMMOCK_CLIENT_KEY",
    }
)

# Kubernetes and Docker tell every container of a service named hummock, hummock-web and so on by such variables.
_SERVICE_LINK = re.compile(
    r"HUMMOCK_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?|ENV_\w+)"
)
_LINK_ADDRESS = re.compile(r"(tcp|udp|sctp)://")

_log = logging.getLogger(__name__)

_SECRET = frozenset({"api_key", "llm", "learning_llm", "store"})
"""What is not shown when it is wrong."""

_SHORT_NAMES: dict[tuple[str, ...], str] = {("data_dir",): "HUMMOCK_DATA", ("models_dir",): "HUMMOCK_MODELS"}


class SettingsInvalid(StartError):
    """A setting is unknown or has a value that it cannot have.

    `origin` says where it was set, `key` which one it is, as the file writes it.
    """

    reason = "SETTINGS_INVALID"

    def __init__(self, origin: str, key: str, problem: str) -> None:
        super().__init__(f"{origin}: {key}: {problem}" if key else f"{origin}: {problem}")
        self.origin = origin
        self.key = key


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - resolve() would follow links, which users place on purpose


Directory = Annotated[Path, AfterValidator(_absolute)]


def _words(given: object) -> object:
    return tuple(filter(None, map(str.strip, given.split(",")))) if isinstance(given, str) else given


def _postgresql(dsn: SecretStr) -> SecretStr:
    if not dsn.get_secret_value().startswith(("postgresql://", "postgres://")):
        raise ValueError("is no connection string of PostgreSQL (postgresql://…); LMDB's directory is data_dir")
    return dsn


def _http_url(url: str) -> str:
    if url and not url.startswith(("http://", "https://")):
        raise ValueError("is no address of http or https")
    return url


class StorageSettings(BaseModel):
    """How much the store may take."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    map_bytes: int = Field(default=64 * _GIB, ge=1 << 20)
    """Address space of the database; the file grows only as it is filled."""
    quota_bytes: int = Field(default=32 * _GIB, ge=1 << 20)
    """Writes are refused above this."""
    memory_budget_bytes: int = Field(default=2 * _GIB, ge=1 << 20)
    """Indexes in memory above this are evicted, the least recently used first."""


class LlmSettings(BaseModel):
    """Where a language model is asked, if anywhere: any endpoint that speaks OpenAI's chat completions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: Annotated[str, AfterValidator(_http_url)] = ""
    """What stands before `/chat/completions`, as in `http://127.0.0.1:11434/v1`. Empty means that there is none."""
    api_key: SecretStr = SecretStr("")
    """Sent as bearer token; empty sends none. Better in the environment than in a file."""
    model: str = ""
    """The model's name there."""
    timeout_s: float = Field(default=30.0, gt=0, le=600)
    """Longest wait for an answer, repeated attempts included; what a call waits for has less."""

    @property
    def is_set(self) -> bool:
        """Whether there is anybody to ask."""
        return bool(self.base_url and self.model)


class TracesSettings(BaseModel):
    """Where calls are told as traces, if anywhere."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    endpoint: Annotated[str, AfterValidator(_http_url)] = ""
    """A collector that speaks OTLP over gRPC, as `http://127.0.0.1:4317`; `https` speaks TLS. Empty tells nobody."""
    ratio: float = Field(default=1.0, ge=0, le=1)
    """Share of the traces that begin here; a call that belongs to one is told where its caller keeps that trace."""


class Settings(BaseModel):
    """Everything about the service that can be set. Made by `load_settings`."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    data_dir: Directory
    """The store's directory; one process at a time. Unset means the platform's. `HUMMOCK_DATA`."""
    store: Annotated[SecretStr, AfterValidator(_postgresql)] | None = None
    """Where memories are kept: a database of PostgreSQL, `postgresql://…`, which any number of services may have open;
    unset means LMDB in the data directory. It may hold a password: better in the environment than on the command line.
    """
    host: str = Field(default="127.0.0.1", min_length=1)
    """Address to listen on."""
    port: int = Field(default=7420, ge=0, le=65535)
    """Port to listen on; 0 takes a free one."""
    unix_socket: Directory | None = None
    """Path of a Unix socket to listen on instead of host and port."""
    http_port: int | None = Field(default=None, ge=0, le=65535)
    """Port of loopback on which calls are answered as JSON over HTTP too; 0 takes a free one, unset means none."""
    http_hosts: Annotated[tuple[str, ...], BeforeValidator(_words)] = ()
    """Names besides localhost by which HTTP may be called, as a proxy before it does; with commas between them."""
    metrics_port: int | None = Field(default=None, ge=0, le=65535)
    """Port of loopback on which Prometheus reads counts and times of calls; 0 takes a free one, unset means none."""
    console_port: int | None = Field(default=None, ge=0, le=65535)
    """Port of loopback on which a console shows the service in a browser; 0 takes a free one, unset means none."""
    allow_remote_plaintext: bool = False
    """Whether it may listen where other machines can reach it, without encryption. They need a token all the same."""
    tls_certificate: Directory | None = None
    """File (PEM) with the service's certificate and those between it and its authority; with `tls_key`, TLS is spoken.
    The files may be replaced while it runs."""
    tls_key: Directory | None = None
    """File (PEM) with the private key, without a password."""
    tls_client_ca: Directory | None = None
    """File (PEM) with the authorities of clients, who then must show a certificate; unset asks for none."""
    reflection: bool = True
    """Whether it tells its contract to whoever asks (gRPC reflection), without a token."""
    model: str = Field(default="auto", min_length=1)
    """Name in the model registry, or "auto": the best that can be had. A data directory of another model moves to it
    (docs/transfer.md)."""
    models_dir: Directory = Field(default_factory=lambda data: data["data_dir"] / "models")
    """Where model files lie; unset means `models` in the data directory. `HUMMOCK_MODELS`."""
    index: Literal["auto", "signs", "graph"] = "signs"
    """How large projects are searched by vector: by sign bits alone; by a graph too, if it proves itself on a project's
    own questions ("auto"); or by a graph in any case. A graph needs hnswlib, without which sign bits serve."""
    cross_encoder: Literal["off", "auto", "on"] = "off"
    """Whether a cross-encoder ranks where a request leaves it open and joins the vector and the keyword path: the best
    few, or two hundred, as the deadline allows. "off" loads none."""
    cross_encoder_model: str = ""
    """Name of the cross-encoder; unset means the one that is here: bge-reranker-v2-m3, else bge-reranker-base."""
    tokenizer_file: Directory | None = None
    """A `tokenizer.json`, or a `.tiktoken` file under the name of its vocabulary, that counts the tokens of prompts
    exactly; unset means an estimate."""
    llm: LlmSettings = LlmSettings()
    learning_llm: LlmSettings = LlmSettings()
    """The language model that learns keywords, a small one as a rule; unset means that of `[llm]`."""
    learning_question: Literal["turn", "entry"] = "turn"
    """Whether that model is asked once a turn, about all entries that the turn may speak of, or once for each. Each by
    itself costs more, and what one entry says cannot reach what is learnt of another."""
    intent: Literal["lexical", "llm"] = "lexical"
    """Who says what a query wants where the request leaves it open: its words, or the language model of `[llm]`."""
    storage: StorageSettings = StorageSettings()
    traces: TracesSettings = TracesSettings()
    workers: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1, le=1024)
    """Calls that are worked on at the same time; unset means the machine's cores."""
    waiting_calls: int = Field(default=256, ge=1)
    """Calls that may wait for a worker; more are refused."""
    readers: int = Field(default=0, ge=0, le=256)
    """Processes beside the service that answer recalls too, each with its own model and indexes in memory; they share
    its port and its data directory. For more recalls a second than one process can answer; Linux only."""
    audit: bool = True
    """Whether a line is written to `audit.jsonl` in the data directory for each write and each call that administers:
    who, what, when, which project and ids, with what outcome; never content."""
    slow_call_ms: int = Field(default=1000, ge=0)
    """Calls that take so many milliseconds or more are logged, streams excepted; 0 logs none."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_json: bool = False
    """Log lines as JSON instead of text."""

    @field_validator("tls_key")
    @classmethod
    def _goes_with_its_certificate(cls, key: Path | None, known: ValidationInfo) -> Path | None:
        if (known.data.get("tls_certificate") is None) != (key is None):
            raise ValueError("tls_certificate and tls_key go together")
        return key

    @field_validator("tls_client_ca")
    @classmethod
    def _has_what_it_adds_to(cls, authorities: Path | None, known: ValidationInfo) -> Path | None:
        if authorities is not None and known.data.get("tls_key") is None:
            raise ValueError("needs tls_certificate and tls_key")
        return authorities

    @field_validator("readers")
    @classmethod
    def _has_a_port_to_share(cls, readers: int, known: ValidationInfo) -> int:
        if readers and known.data.get("unix_socket") is not None:
            raise ValueError("readers share a port, which a Unix socket has none of")
        if readers and known.data.get("store") is not None:
            raise ValueError("readers read LMDB beside its writer; over PostgreSQL start another service instead")
        return readers

    @field_validator("intent")
    @classmethod
    def _has_whom_it_asks(cls, intent: str, known: ValidationInfo) -> str:
        llm = known.data.get("llm")
        if intent == "llm" and llm is not None and not llm.is_set:
            raise ValueError("needs llm.base_url and llm.model")
        return intent

    def for_reader(self) -> str:
        """All of them as one line of JSON, secrets too: for a child's standard input and nowhere else."""
        values = self.model_dump(mode="json", exclude={"store"})
        for table, llm in (("llm", self.llm), ("learning_llm", self.learning_llm)):
            values[table]["api_key"] = llm.api_key.get_secret_value()
        return json.dumps(values)


def load_settings(
    flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None, directory: Path | None = None
) -> Settings:
    """Settings from every source.

    Args:
        flags: Fields of `Settings` given on the command line; None stands for "not given".
        environ: The environment; None means this process's.
        directory: Where `hummock.toml` may lie; None means the working directory.

    Raises:
        SettingsInvalid: A key is unknown or a value impossible; names the key and where it was set.
        StartError: No data directory was named and there is none by default.
    """
    variables = os.environ if environ is None else environ
    file = _config_file(variables, directory or Path.cwd())
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    try:
        values = _merged(_from_file(file), _from_environment(variables), given)
        if "data_dir" not in values:
            values["data_dir"] = default_data_dir(variables, sys.platform)
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = tuple(str(part) for part in first["loc"])
        raise SettingsInvalid(_origin(path, given, variables, file), ".".join(path), _problem(first, path)) from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsInvalid(str(file), "", f"is not valid TOML: {error}") from error
    except OSError as error:
        raise SettingsInvalid(str(file), "", error.strerror or "cannot be read") from error


def default_data_dir(environ: Mapping[str, str], platform: str) -> Path:
    """Where this platform keeps an application's data.

    Args:
        environ: The environment.
        platform: As in `sys.platform`.

    Raises:
        StartError: There is no home directory to put it in.
    """
    home = environ.get("HOME", "")
    if platform != "darwin" and Path(environ.get("XDG_DATA_HOME", "")).is_absolute():
        return Path(environ["XDG_DATA_HOME"]) / "hummock"
    if not Path(home).is_absolute():
        raise StartError("there is no HOME to keep the data in; name a directory with HUMMOCK_DATA or --data")
    below = "Library/Application Support" if platform == "darwin" else ".local/share"
    return Path(home) / below / "hummock"


def _from_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    content = file.read_bytes()
    if (zero := content.find(0)) >= 0:
        raise SettingsInvalid(str(file), "", f"is not UTF-8 but UTF-16: byte {zero} is 0x00; save it as UTF-8")
    try:
        # Editors of Windows begin a file with a mark.
        return tomllib.loads(content.decode().removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        at, line = error.start, content.count(b"\n", 0, error.start) + 1
        wrong = f"byte {at} (line {line}) is 0x{content[at]:02x}"
        raise SettingsInvalid(str(file), "", f"is not UTF-8: {wrong}; save it as UTF-8") from error


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Reads the variables that `variables` lists; warns of others of the prefix, which are for somebody else."""
    known = {name: path for path, name in variables()}
    values: dict[str, Any] = {}
    for name, value in environ.items():
        if not name.startswith(_PREFIX) or name in _OTHER_VARIABLES or _is_service_link(name, value):
            continue
        if name not in known:
            _warn_once(f"{name} is no setting and does nothing{_near_miss(name, [*known, *_OTHER_VARIABLES])}")
            continue
        *tables, key = known[name]
        target = values
        for table in tables:
            target = target.setdefault(table, {})
        target[key] = value
    return values


def _is_service_link(name: str, value: str) -> bool:
    # A link's address is in NAME_PORT, which may be the name of a setting.
    is_address = name.endswith("_PORT") and _LINK_ADDRESS.match(value) is not None
    return is_address or _SERVICE_LINK.fullmatch(name) is not None


@cache
def _warn_once(said: str) -> None:
    _log.warning("%s", said)


def _near_miss(name: str, known: Iterable[str]) -> str:
    """What was meant, as the end of a sentence; empty where nothing is near."""
    # What all begin with would make all alike.
    found = get_close_matches(name.removeprefix(_PREFIX), [each.removeprefix(_PREFIX) for each in known], 1)
    if not found:
        return ""
    return f"; did you mean {_PREFIX if name.startswith(_PREFIX) else ''}{found[0]}?"


def _merged(*sources: Mapping[str, Any]) -> dict[str, Any]:
    """Every key with its value in the last source that has it; tables key by key."""
    values: dict[str, Any] = {}
    for source in sources:
        for key, value in source.items():
            both_tables = isinstance(value, dict) and isinstance(values.get(key), dict)
            values[key] = _merged(values[key], value) if both_tables else value
    return values


def variables() -> Iterator[tuple[tuple[str, ...], str]]:
    """Each setting's path and the environment variable that sets it, in the order of the fields."""
    for path in _paths():
        yield path, _SHORT_NAMES.get(path, _PREFIX + "_".join(path).upper())


def _paths() -> Iterator[tuple[str, ...]]:
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from ((name, below) for below in field.annotation.model_fields)
        else:
            yield (name,)


def _config_file(environ: Mapping[str, str], directory: Path) -> Path | None:
    if named := environ.get("HUMMOCK_CONFIG"):
        path = Path(named).expanduser()
        if not path.is_file():
            raise SettingsInvalid("HUMMOCK_CONFIG", "", f"{path} does not exist")
        return path
    path = directory / _CONFIG_FILE
    return path if path.is_file() else None


def _origin(path: tuple[str, ...], flags: Mapping[str, object], environ: Mapping[str, str], file: Path | None) -> str:
    if path[0] in flags:
        return "command line"
    if any(name in environ for setting, name in variables() if setting == path):
        return "environment"
    return str(file) if file is not None else "settings"


def _problem(error: Any, path: tuple[str, ...]) -> str:
    if error["type"] == "extra_forbidden":
        known = [".".join(each) for each in _paths()]
        return f"is not a setting{_near_miss('.'.join(path), known)}; known: {', '.join(known)}"
    if error["type"] == "default_factory_not_called":
        return "cannot be derived, because another setting is wrong"
    message = f"{error['msg'][:1].lower()}{error['msg'][1:]}"
    return message if error["loc"][-1] in _SECRET else f"{message}; it is {error['input']!r}"
