from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rpc.port import Port, port


@pytest.fixture
def here() -> Iterator[Port]:
    with port() as made:
        yield made


@pytest.fixture
def there() -> Iterator[Port]:
    with port() as made:
        yield made
