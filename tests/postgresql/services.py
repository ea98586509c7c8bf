"""Two services over one database, as processes: for drills, and for whoever wants to try a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from bench import toy_models
from hummock import models
from tests.service.running import NotStarted, Process, Stubs, connected, in_process

NAMES: Final = ("one", "two")
LOG: Final = "services.log"
_LINES_SHOWN: Final = 15


class ServiceFailed(Exception):
    """A service did not start; with the last lines of its log."""

    def __init__(self, name: str, log: Path) -> None:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        super().__init__("\n".join([f"service {name} did not start; the end of {log}:", *lines[-_LINES_SHOWN:]]))
        self.name = name
        self.log = log


class Service:
    """A service that can be killed and started again; `stubs` are those of the last start."""

    def __init__(self, name: str, start: Callable[[], tuple[Process, Stubs]]) -> None:
        """Starts it."""
        self.name = name
        self._start = start
        self._process, self.stubs = start()

    @property
    def target(self) -> str:
        """Address of the service."""
        return self._process.target

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self._process.kill()

    def start(self) -> None:
        """Starts it again after a kill."""
        self._process, self.stubs = self._start()

    def stop(self) -> None:
        """Lets it finish what it does."""
        self._process.stop()


@contextmanager
def two_services(
    dsn: str, directory: Path, models_dir: Path | None = None, ports: Sequence[int] = (0, 0)
) -> Iterator[Sequence[Service]]:
    """Two over one database; their data directories and their log lie in the directory.

    Args:
        dsn: DSN of the database.
        directory: It is there.
        models_dir: Directory of the default model; without one they use the toy model, which knows letters alone.
        ports: Ports on loopback; 0 is a free one.
    """
    model = models.AUTO
    if models_dir is None:
        models_dir = directory / "models"
        models_dir.mkdir(exist_ok=True)
        model = toy_models.build_tiny(models_dir).name
    with (directory / LOG).open("a", encoding="utf-8") as log, ExitStack() as running:

        def start(opened: ExitStack, name: str, port: int) -> tuple[Process, Stubs]:
            environ = {"HUMMOCK_STORE": dsn, "HUMMOCK_WORKERS": "2"}
            started = in_process(directory / name, models_dir, model, environ, stderr=log, port=port)
            try:
                process = opened.enter_context(started)
            except NotStarted as failed:
                raise ServiceFailed(name, directory / LOG) from failed
            return process, opened.enter_context(connected(process.target))

        # What each opens is closed at the end, for clients may hold stubs of earlier starts.
        opened = [running.enter_context(ExitStack()) for _ in NAMES]
        with ThreadPoolExecutor(len(NAMES)) as pool:
            starts = [partial(start, *one) for one in zip(opened, NAMES, ports, strict=True)]
            services = list(pool.map(Service, NAMES, starts))
        yield services
        for service in services:
            service.stop()
