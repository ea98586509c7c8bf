from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.placement import VIEW_BYTES, Projects, apart, by_hash, found_in_memory, loads, parsed, report, routed
from hummock.store.lru import Lru

pytestmark = pytest.mark.long

SMALL = ["--projects", "500", "--memories", "2e6", "--most", "5e4", "--budget", "0.5", "--isolated", "8"]


def test_equal_settings_give_equal_reports_and_another_seed_another() -> None:
    first = list(report(parsed(SMALL)))
    assert list(report(parsed(SMALL))) == first
    assert list(report(parsed([*SMALL, "--seed", "2"]))) != first


@given(st.integers(1, 400), st.floats(0, 2), st.integers(1, 9), st.integers(0, 20), st.integers(0, 2**32 - 1))
def test_nothing_is_lost_wherever_it_is_placed(count: int, skew: float, nodes: int, isolated: int, seed: int) -> None:
    projects = Projects.zipf(count, memories=count * 100.0, most=2000, skew=skew)
    placed = by_hash(np.random.default_rng(seed), count, 4 * nodes, nodes)
    moved = apart(placed, projects.calls, nodes, min(isolated, count))
    assert projects.memories.sum() == pytest.approx(count * 100)
    assert projects.memories.max() <= 2000
    assert projects.calls.sum() == pytest.approx(1)
    for where in (placed, moved):
        assert loads(where, projects.calls, nodes).sum() == pytest.approx(1)
        assert loads(where, projects.memories, nodes).sum() == pytest.approx(count * 100)


def test_no_project_is_larger_than_one_may_be_and_too_many_memories_are_refused() -> None:
    with pytest.raises(ValueError, match="have no"):
        Projects.zipf(10, memories=101, most=10, skew=1)


@given(st.integers(1, 6), st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_what_fits_is_all_found_however_calls_are_routed(services: int, spread: int, seed: int) -> None:
    projects = Projects.zipf(50, memories=5000, most=1000, skew=1)
    homes = by_hash(np.random.default_rng(seed), 50, services, services)
    assert routed(projects, services, 5000.0 * VIEW_BYTES, homes, spread).found == pytest.approx(1)
    assert 1 <= routed(projects, services, 100.0 * VIEW_BYTES, homes, spread).busiest <= services + 1e-9
    assert routed(projects, services, 1.0, homes, spread).found < 0.5


@pytest.mark.parametrize("skew", [0.6, 0.99, 1.2])
def test_the_share_in_memory_is_that_of_a_cache_that_drops_what_was_used_longest_ago(skew: float) -> None:
    projects = Projects.zipf(2000, memories=2e5, most=2000, skew=skew)
    cache, budget = Lru(20_000), 20_000.0
    asked = np.random.default_rng(7).choice(2000, 40_000, p=projects.calls).tolist()
    found, read = 0, 0.0
    for number, project in enumerate(asked):
        name, held = str(project), len(cache)
        cache.put(name, int(projects.memories[project]))
        if number >= 20_000:
            found += len(cache) == held
            read += projects.memories[project] * (len(cache) > held)
        cache.use(name)
        while (oldest := cache.excess(keep=1)) is not None:
            cache.drop(oldest)

    way = found_in_memory(projects.calls, projects.memories, budget)
    assert way.found == pytest.approx(found / 20_000, abs=0.02)
    assert way.read == pytest.approx(read / 20_000, rel=0.05)
