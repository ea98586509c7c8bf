from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hummock.ports.store import Store
from hummock.store import DEFAULT_LIMITS
from tests.fakes import FakeClock
from tests.store.opening import EAGER, opened


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["embedded", "embedded, rebuilding often"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    limits = DEFAULT_LIMITS if request.param == "embedded" else EAGER
    with opened(tmp_path, clock=clock, limits=limits) as made:
        yield made
