"""The table of methods: it names each of the contract once, in a lane that fits what the contract says of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hummock.rpc.lanes import Lane
from hummock.rpc.methods import check_table
from hummock.rpc.policy import POLICIES


def test_the_table_and_the_contract_agree() -> None:
    check_table(POLICIES)


@pytest.mark.parametrize("service", sorted(POLICIES))
def test_a_method_that_the_table_leaves_out_is_found_at_the_start(service: str) -> None:
    rows = dict(POLICIES[service])
    rows.popitem()
    with pytest.raises(ValueError, match="each method of the contract once"):
        check_table({**POLICIES, service: rows})


@pytest.mark.parametrize(
    ("service", "name", "lane"),
    [
        ("ContextService", "Search", Lane.WRITE),
        ("ContextService", "Learn", Lane.READ),
        ("MemoryService", "WatchMemories", Lane.READ),
        ("ProjectService", "ImportProject", Lane.WRITE_STREAM),
        ("LearningService", "LearnKeywords", Lane.READ_STREAM),
    ],
)
def test_a_lane_that_the_contract_forbids_is_found_at_the_start(service: str, name: str, lane: Lane) -> None:
    wrong = {**POLICIES[service], name: replace(POLICIES[service][name], lane=lane)}
    with pytest.raises(ValueError, match=f"{service}/{name} cannot be in lane {lane.name}"):
        check_table({**POLICIES, service: wrong})
