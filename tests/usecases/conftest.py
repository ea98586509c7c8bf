from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.usecases.workplace import Workplace, workplace


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workplace]:
    with workplace(tmp_path) as made:
        yield made
