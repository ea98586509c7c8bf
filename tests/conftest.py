"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from hummock import models
from hummock.ports.models import Embedder
from tests.desk import Desk
from tests.fakes import FakeClock
from tests.shared import require_shared
from tests.store.opening import opened
from tests.workplace import Workplace, workplace

# What a process says into a pipe must come out at once by itself, for its users set no such variable.
os.environ.pop("PYTHONUNBUFFERED", None)

# Deterministic; and no deadline, as the first example of a test may compile a kernel.
settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared models and data sets; without it a test is skipped aloud, or fails if it must not be."""
    return require_shared()


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workplace]:
    with workplace(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedder]:
    directory = tmp_path_factory.mktemp("models")
    tiny = models.build_tiny(directory)
    loaded = models.load(tiny, directory / tiny.name, slots=1)
    yield loaded
    loaded.close()


@pytest.fixture
def desk(tmp_path: Path, embedder: Embedder) -> Iterator[Desk]:
    clock = FakeClock()
    with opened(tmp_path, clock=clock, space=embedder.space) as store:
        yield Desk(directory=tmp_path, store=store, embedder=embedder, clock=clock)
