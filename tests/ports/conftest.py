from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hummock.ports.store import Store
from hummock.store import DEFAULT_LIMITS
from tests.fakes import FakeClock
from tests.store.opening import EAGER, opened, opened_shared


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


POSTGRESQL = pytest.param("postgresql, rebuilding often", marks=pytest.mark.long)


@pytest.fixture(params=["lmdb", "lmdb, rebuilding often", POSTGRESQL])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    limits = EAGER if "often" in request.param else DEFAULT_LIMITS
    if request.param.startswith("postgresql"):
        with opened_shared(request.getfixturevalue("database"), clock=clock, limits=limits) as shared:
            yield shared
        return
    with opened(tmp_path, clock=clock, limits=limits) as made:
        yield made
