from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.llm.stub import Stub, stub_server


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with stub_server() as serving:
        yield serving
