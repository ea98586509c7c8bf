from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.llm.stub import Stub, stub_server


@pytest.fixture
def stub() -> Iterator[Stub]:
    with stub_server() as serving:
        yield serving
