"""A project's name: one rule for all calls that hold one."""

from __future__ import annotations

import pytest

from hummock.core.errors import InvalidRequest
from hummock.core.project import MAX_PROJECT_BYTES
from hummock.rpc import values


def test_a_name_of_more_bytes_than_a_write_takes_is_refused_wherever_it_is_read() -> None:
    """V4: 200 Chinese characters are within the contract's 256, and 600 bytes."""
    with pytest.raises(InvalidRequest, match="has 600 bytes; it must be 1 to 400") as raised:
        values.project_name("project", "项" * 200)
    assert raised.value.field == "project"


def test_a_name_at_the_limit_passes() -> None:
    name = "a" + "项" * ((MAX_PROJECT_BYTES - 1) // 3)
    assert len(name.encode()) == MAX_PROJECT_BYTES
    assert values.project_name("project", name) == name
