"""Fixtures and options shared by all tests."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, settings

from bench import toy_models
from hummock import models
from hummock.ports.models import Embedder
from tests.desk import Desk
from tests.fakes import FakeClock
from tests.postgresql import programs
from tests.shared import BGE_ZH, MINILM, find_shared, find_tokenizer, install_minilm, places
from tests.store.opening import opened
from tests.workplace import Workplace, workplace

pytest_plugins = ["tests.postgresql.fixtures"]

# Tests set what they need themselves. A user's own service, his terminal and his proxy, which a call to 127.0.0.1 would
# go through, have no part in them; and what a process says into a pipe must come out at once without PYTHONUNBUFFERED.
_OF_THE_USER = {"PYTHONUNBUFFERED", "FORCE_COLOR", "NO_COLOR", "COLUMNS", "TERM"}
for _name in list(os.environ):
    if _name in _OF_THE_USER or _name.startswith("HUMMOCK_") or _name.lower().endswith("_proxy"):
        del os.environ[_name]

# PostgreSQL's programs are started as another user, which takes a fork. gRPC would start its threads again in the
# child, whose descriptors are closed before it is the program: one in some hundreds dies of it (grpc/grpc#43055).
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

# Deterministic; and no time is looked at: the first example of a test may compile a kernel, and machines are busy.
settings.register_profile(
    "deterministic", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("deterministic")
settings.register_profile("quick", settings.get_profile("deterministic"), max_examples=15)

Needed: TypeAlias = Callable[[Path | None, str], Path]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--store", choices=("lmdb", "postgresql"), default="lmdb", help="of the services of tests/service")


def pytest_report_header() -> list[str]:
    return [*places(), programs.place()]


LONG_FIXTURES = frozenset({"programs"})
"""What a test asks for, of itself or through another fixture, that needs PostgreSQL."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks tests that need real files (`pytest -m shared` runs those alone) and those that need PostgreSQL as long.

    With `--store postgresql` the tests in which the store has no part are left out: they have run over LMDB.
    """
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "needed" in fixtures:
            item.add_marker("shared")
        if not LONG_FIXTURES.isdisjoint(fixtures):
            item.add_marker("long")
    if config.getoption("--store") != "lmdb":
        left_out = [item for item in items if item.get_closest_marker("storeless")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("storeless")]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine, on an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(
        pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters})
    )
    return True


@pytest.fixture(scope="session")
def needed() -> Needed:
    """Hands on the real file that a test needs. Where there is none it skips the test, aloud.

    With REQUIRE_SHARED=1 the test fails instead.
    """

    def found(path: Path | None, missing: str) -> Path:
        if path is not None:
            return path
        if os.environ.get("REQUIRE_SHARED") == "1":
            pytest.fail(f"REQUIRE_SHARED=1, and this is not there: {missing}")
        pytest.skip(f"needs {missing}")

    return found


@pytest.fixture(scope="session")
def shared(needed: Needed) -> Callable[[str], Path]:
    """Files and folders of the shared folder, by their path in it."""
    return lambda path: needed(find_shared(path), f"{path} of the shared folder; name it with HUMMOCK_SHARED")


@pytest.fixture(scope="session")
def real_models(needed: Needed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of models with the real MINILM in it."""
    directory = tmp_path_factory.mktemp("real-models")
    return needed(directory if install_minilm(directory) else None, f"the real {MINILM}; `make model` fetches it")


@pytest.fixture(scope="session")
def chinese_tokenizer(needed: Needed) -> Path:
    """The tokenizer file of BGE_ZH."""
    return needed(find_tokenizer(BGE_ZH), f"the tokenizer of {BGE_ZH}; `make model` fetches it")


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workplace]:
    with workplace(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedder]:
    directory = tmp_path_factory.mktemp("models")
    tiny = toy_models.build_tiny(directory)
    loaded = models.load(tiny, directory / tiny.name, slots=1)
    yield loaded
    loaded.close()


@pytest.fixture
def desk(tmp_path: Path, embedder: Embedder) -> Iterator[Desk]:
    clock = FakeClock()
    with opened(tmp_path, clock=clock, space=embedder.space) as store:
        yield Desk(directory=tmp_path, store=store, embedder=embedder, clock=clock)
