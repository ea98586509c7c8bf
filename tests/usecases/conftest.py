from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hummock import models
from hummock.ports.models import Embedder
from tests.fakes import FakeClock
from tests.store.opening import opened
from tests.usecases.desk import Desk
from tests.usecases.workplace import Workplace, workplace


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
