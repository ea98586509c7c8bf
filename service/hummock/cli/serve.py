"""`hummock serve` and `hummock warm`: the service itself, its readers and its log."""

from __future__ import annotations

import faulthandler
import gc
import json
import logging
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hummock.core.errors import HummockError
from hummock_tools.cli.background import CONSOLE_PORT, SERVING_ON
from hummock_tools.cli.connection import CommandFailed, packages_of, require_packages, require_unix
from hummock_tools.cli.options import DataOption, ModelsOption, data_dir_of
from hummock_tools.cli.output import note, print_line

if TYPE_CHECKING:
    from collections.abc import Callable

    import structlog

    from hummock.config import Settings


_COMPILING_S = 1.0
"""Kernels that take longer than this are being compiled; out of the cache they take a third of it."""


def serve(
    data: DataOption = None,
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="DSN", help="Keep memories in PostgreSQL, postgresql://…; LMDB if unset."),
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on, 127.0.0.1 if unset.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port, 7420 if unset; 0 takes a free one.")] = None,
    unix_socket: Annotated[Path | None, typer.Option("--unix-socket", help="Listen on this socket instead.")] = None,
    http: Annotated[
        int | None,
        typer.Option(
            "--http", metavar="PORT", help="Answer JSON over HTTP on this port of loopback too; 0: a free one."
        ),
    ] = None,
    metrics: Annotated[
        int | None,
        typer.Option("--metrics", metavar="PORT", help="Tell Prometheus on this port of loopback; 0: a free one."),
    ] = None,
    console: Annotated[
        bool, typer.Option("--console", help="Show it in a browser too, on port 7421 of loopback or console_port.")
    ] = False,
    traces: Annotated[
        str | None,
        typer.Option(
            "--traces", metavar="ENDPOINT", help="Tell a collector (OTLP over gRPC), as in http://127.0.0.1:4317."
        ),
    ] = None,
    allow_remote_plaintext: Annotated[
        bool | None,
        typer.Option("--allow-remote-plaintext", help="Let other machines in although nothing is encrypted."),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help='Name of the model, or "auto".')] = None,
    models: ModelsOption = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Calls worked on at a time.")] = None,
    readers: Annotated[
        int | None, typer.Option("--readers", help="Processes that answer recalls beside the service, 0 if unset.")
    ] = None,
    log_level: Annotated[str | None, typer.Option("--log-level", help="debug, info, warning or error.")] = None,
    log_json: Annotated[bool | None, typer.Option("--log-json/--log-text", help="The form of log lines.")] = None,
) -> None:
    """Run the service until SIGTERM or Ctrl-C. Other settings: HUMMOCK_* and hummock.toml."""
    # Nearly all that a start makes stays; looking for garbage in it takes a sixth of the time. Serving switches it on.
    gc.disable()
    require_unix()
    with packages_of("server"):
        from hummock.config import load_settings
    flags = {
        "data_dir": data,
        "store": store,
        "host": host,
        "port": port,
        "unix_socket": unix_socket,
        "http_port": http,
        "metrics_port": metrics,
        "traces": None if traces is None else {"endpoint": traces},
        "allow_remote_plaintext": allow_remote_plaintext,
        "model": model,
        "models_dir": models,
        "workers": workers,
        "readers": readers,
        "log_level": log_level,
        "log_json": log_json,
    }
    settings = load_settings(flags)
    if console and settings.console_port is None:
        settings = settings.model_copy(update={"console_port": CONSOLE_PORT})
    set_level = _configure_logs(settings.log_level, as_json=settings.log_json)
    faulthandler.enable(2)  # stderr: a crash of native code leaves the stacks of all threads, without any values

    def again() -> Settings | None:
        try:
            found = load_settings(flags)
        except HummockError as error:
            note(f"SIGHUP: {error}; the settings stay as they are")
            return None
        set_level(found.log_level)
        note(f"SIGHUP: the log's level is {found.log_level}, calls are slow from {found.slow_call_ms} ms on")
        return found

    _require_extras(settings)
    warm()
    with packages_of("server"):
        from hummock.wiring import service
    if settings.http_port is not None:
        with packages_of("http"):
            import hummock.rpc.json_http  # noqa: F401 # what is missing is said before anything starts
    service.serve(settings, note, lambda address: print_line(f"{SERVING_ON}{address}"), again)


def _require_extras(settings: Settings) -> None:
    """Says what is missing before anything starts. Raises: CommandFailed."""
    if settings.console_port is not None:
        with packages_of("console"):
            require_packages("jinja2", "starlette", "uvicorn")
    if settings.store is not None:
        with packages_of("postgresql"):
            require_packages("psycopg", "psycopg_pool")
    if settings.traces.endpoint:
        with packages_of("traces"):
            require_packages("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.grpc")


def reader() -> None:
    """Answer recalls beside a service, which starts this itself and says on standard input what to do."""
    gc.disable()
    # Whoever ends the service ends all its processes at once, as a rule; this one has calls to finish, and ends with
    # its stdin.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    line = sys.stdin.readline()
    with packages_of("server"):
        from hummock.config import Settings
    if not line:
        raise CommandFailed("a reader is started by the service: set its number with `hummock serve --readers`")
    settings = Settings.model_validate_json(line)
    _configure_logs(settings.log_level, as_json=settings.log_json)
    warm()
    with packages_of("server"):
        from hummock.rpc.readers import LISTENING_ON
        from hummock.wiring.reader import serve_reader

    def where() -> tuple[str, str, int | None] | None:
        told = sys.stdin.readline()
        if not told:
            return None
        values = json.loads(told)
        return values["address"], values["service"], values.get("ledger")

    serve_reader(
        settings,
        where,
        _until_stdin_ends,
        note,
        on_listening=lambda address: print_line(f"{LISTENING_ON}{address}"),
        beat=_beat,
    )


def _beat() -> None:
    with suppress(OSError):  # the service has gone, and this process is about to
        os.write(sys.stdout.fileno(), b".")


def _until_stdin_ends() -> None:
    # Past Python's own buffer, whose lock a waiting thread would hold at the end of the process.
    while os.read(sys.stdin.fileno(), 1):
        pass


def warm() -> None:
    """Compile the kernels now, so that the next start finds them."""
    start = time.monotonic()

    def progress(name: str, done: int, total: int) -> None:
        if done == total or time.monotonic() - start > _COMPILING_S:
            note(f"kernels {done}/{total} ready ({name})")

    # Importing a kernel compiles it: whatever imports kernels comes after this.
    with packages_of("server"):
        from hummock_kernels.warm import warm as warm_kernels

        warm_kernels(progress)
    if time.monotonic() - start > _COMPILING_S:
        # A compiler leaves more behind than the whole service takes.
        gc.collect()


def _configure_logs(level: str, *, as_json: bool) -> Callable[[str], None]:
    """Set up the log of this process, to stderr; `level` is "debug", "info", "warning" or "error".

    Returns: What sets another level while it runs.
    """
    with packages_of("server"):
        import structlog
    numbers = logging.getLevelNamesMapping()
    least = numbers[level.upper()]

    def above_level(_: object, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        # Loggers are kept from their first use on; only what they all pass through can change.
        if numbers.get(name.upper(), logging.ERROR) < least:
            raise structlog.DropEvent
        return event

    def set_level(name: str) -> None:
        nonlocal least
        least = numbers[name.upper()]

    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            above_level,
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    return set_level


LONGEST_STOP_S: Final = 30.0
"""Longest wait for the service to exit, in seconds; the service itself gives up much earlier."""
_PAUSE_S: Final = 0.05
_PROCESSES: Final = Path("/proc")


def stop(data: DataOption = None) -> None:
    """Stop the service of the data directory, and wait until it has: what it has accepted is answered and kept."""
    directory = data_dir_of(data)
    holder = holder_of(directory)
    if not holder:
        note(f"no service runs over {directory}")
        return
    _ask_to_end(holder, directory)
    until_s = time.monotonic() + LONGEST_STOP_S
    while holder_of(directory) == holder:
        if time.monotonic() >= until_s:
            raise CommandFailed(
                f"process {holder} was asked to end and has not in {LONGEST_STOP_S:.0f} s; `kill -9 {holder}` ends it, "
                "and loses nothing that was acknowledged"
            )
        time.sleep(_PAUSE_S)
    note(f"stopped (process {holder}, over {directory})")


def holder_of(directory: Path) -> str:
    """The process that has the directory; empty where none has. Raises: CommandFailed."""
    with packages_of("server"):
        from hummock.store import holder
    pid = holder(directory)
    if pid and not pid.isdecimal():
        raise CommandFailed(f"{directory} is in use, and its file `lock` does not say by which process")
    return pid


def _ask_to_end(pid: str, directory: Path) -> None:
    """Raises: CommandFailed, where it is another program's or another user's."""
    # In another container the number may be somebody else's here.
    if _PROCESSES.is_dir() and not _is_hummock(pid):
        raise CommandFailed(
            f"{directory} is in use by process {pid}, which is no hummock on this machine; stop it where it runs"
        )
    try:
        os.kill(int(pid), signal.SIGTERM)
    except ProcessLookupError:
        # It ended by itself.
        return
    except PermissionError as error:
        raise CommandFailed(f"process {pid} belongs to another user; stop it as that one, or as root") from error


def _is_hummock(pid: str) -> bool:
    try:
        words = (_PROCESSES / pid / "cmdline").read_bytes().split(b"\0")
    except OSError:
        # Gone, or not to be seen: the signal tells.
        return True
    return any(word == b"hummock" or word.endswith(b"/hummock") for word in words)
