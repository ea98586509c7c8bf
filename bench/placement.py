"""Estimates the gain of placement and routing for many databases and services: `python -m bench.placement`.

A model and no measurement. How large projects are, and how often each is asked, follows Zipf's law, the largest being
asked most; a project is no larger than any that was measured. Nothing is known here of real projects: the skew .99 is
that of the Yahoo! Cloud Serving Benchmark (Cooper et al., SoCC 2010), an assumption, and two others show what it
decides. Calls do not depend on each other, which real ones do: people stay in a project for a while, and more of their
calls find it in memory than is said here.

How many calls find a view in memory is Che's approximation of a least-recently-used cache (Che, Tung & Wang, JSAC
2002), which needs no warm-up; a test compares it with such a cache.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

VIEW_BYTES = 1934
"""Bytes of memory per stored memory: growth from 100,000 to 1,000,000 (part `growth`), 384 dims."""

_MIB, _GIB = 1 << 20, 1 << 30
_HALVINGS = 80
"""Beyond what a float tells apart."""
_PLACEMENTS = 20
"""Hashes that are tried: one alone says what luck can do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projects:
    """Projects, the one that is asked most first.

    Attributes:
        calls: (projects,) share of all calls, descending; 1 together.
        memories: (projects,) how many each has, descending.
    """

    calls: Floats
    memories: Floats

    @classmethod
    def zipf(cls, count: int, memories: float, most: float, skew: float) -> Projects:
        """Projects with so many memories together, at most `most` each; the k-th is asked k^-skew as often."""
        if memories > count * most:
            raise ValueError(f"{count} projects of at most {most:.0f} memories have no {memories:.0f} together")
        weight = np.arange(1, count + 1, dtype=np.float64) ** -skew
        low, high = memories / weight.sum(), memories / weight[-1]
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if np.minimum(most, middle * weight).sum() < memories else (low, middle)
        return cls(calls=weight / weight.sum(), memories=np.minimum(most, high * weight))


def by_hash(random: np.random.Generator, projects: int, shards: int, nodes: int) -> Places:
    """The node of each project, (projects,): its shard by chance, as by a hash, and shards by turns."""
    return random.integers(0, shards, projects) % nodes


def apart(placed: Places, load: Floats, nodes: int, isolated: int) -> Places:
    """A copy of the placement in which the first `isolated` projects each have a shard of their own.

    The largest is moved first; each goes to the node with the smallest load.
    """
    moved = placed.copy()
    on_node = loads(placed[isolated:], load[isolated:], nodes)
    for project in np.argsort(-load[:isolated], kind="stable"):
        moved[project] = on_node.argmin()
        on_node[moved[project]] += load[project]
    return moved


def loads(placed: Places, load: Floats, places: int) -> Floats:
    """Load of each place, (places,)."""
    return np.bincount(placed, weights=load, minlength=places).astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """Costs of a way of routing calls to services.

    Attributes:
        found: Calls whose view is in memory, of all calls or of those of a service, in the unit of these.
        read: Bytes of views loaded for the other calls, per call.
        busiest: Calls of the busiest service, relative to an equal share.
    """

    found: float
    read: float
    busiest: float = 1.0


def found_in_memory(calls: Floats, nbytes: Floats, budget: float) -> Routing:
    """Calls that find their view in a service's memory, given the calls and the bytes of each project.

    A view is there if its project was asked within the last so many calls; how many these are follows from the budget.
    """
    if nbytes.sum() <= budget:
        return Routing(found=float(calls.sum()), read=0.0)
    low, high = 0.0, 1.0
    while (nbytes * -np.expm1(-calls * high)).sum() < budget:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_within = (nbytes * -np.expm1(-calls * middle)).sum() < budget
        low, high = (middle, high) if is_within else (low, middle)
    missed = calls * np.exp(-calls * high)
    return Routing(found=float((calls - missed).sum()), read=float((missed * nbytes).sum()))


def routed(projects: Projects, services: int, budget: float, homes: Places, spread: int) -> Routing:
    """Calls of a project go to its home, (projects,), those of the first `spread` projects to any service."""
    nbytes = projects.memories * VIEW_BYTES
    everywhere = np.arange(len(homes)) < spread
    ways, calls_of = [], np.empty(services)
    for service in range(services):
        share = np.where(everywhere, projects.calls / services, np.where(homes == service, projects.calls, 0.0))
        mine = share > 0
        calls_of[service] = share.sum()
        ways.append(found_in_memory(share[mine], nbytes[mine], budget))
    return Routing(
        found=sum(way.found for way in ways),
        read=sum(way.read for way in ways),
        busiest=float(calls_of.max() * services),
    )


def _placements(projects: Projects, shards: int, nodes: int, isolated: int, seed: int) -> Iterator[tuple[float, ...]]:
    """The hottest node's share of calls by hash and with the hottest apart, and of memories likewise."""
    for number in range(_PLACEMENTS):
        placed = by_hash(np.random.default_rng([seed, number]), len(projects.calls), shards, nodes)
        moved = apart(placed, projects.calls, nodes, isolated)
        total = projects.memories.sum()
        yield tuple(
            float(loads(where, what, nodes).max())
            for what in (projects.calls, projects.memories / total)
            for where in (placed, moved)
        )


def report(given: argparse.Namespace) -> Iterator[str]:
    """The lines of the report, in Markdown."""
    for skew in given.skew:
        projects = Projects.zipf(given.projects, given.memories, given.most, skew)
        first, ten = projects.calls[0], projects.calls[:10].sum()
        yield (
            f"### skew {skew:g}: the first project has {first:.1%} of all calls, the first ten {ten:.1%}; "
            f"{(projects.memories >= given.most * 0.999).sum()} projects have {given.most:,.0f} memories\n"
        )
        yield "| nodes | even | hottest node by hash | worst | the first apart | worst | most memories of a node |"
        yield "|---:|---:|---:|---:|---:|---:|---:|"
        for nodes in given.nodes:
            tried = np.array(list(_placements(projects, given.shards, nodes, given.isolated, given.seed)))
            mean, worst = tried.mean(axis=0), tried.max(axis=0)
            cells = (1 / nodes, mean[0], worst[0], mean[1], worst[1], mean[3])
            yield f"| {nodes} | " + " | ".join(f"{cell:.1%}" for cell in cells) + " |"
        yield ""
        anywhere = found_in_memory(projects.calls, projects.memories * VIEW_BYTES, given.budget * _GIB)
        yield "| services | any: in memory | MiB a call | sticky | MiB | busiest | the first anywhere | MiB | busiest |"
        yield "|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
        for services in given.services:
            homes = by_hash(np.random.default_rng(given.seed), given.projects, services, services)
            ways = [routed(projects, services, given.budget * _GIB, homes, spread) for spread in (0, given.spread)]
            cells_of = [f"{way.found:.1%} | {way.read / _MIB:.0f}" for way in (anywhere, *ways)]
            busiest = [f" | {way.busiest:.2f} ×" for way in ways]
            yield f"| {services} | {cells_of[0]} | {cells_of[1]}{busiest[0]} | {cells_of[2]}{busiest[1]} |"
        yield ""


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The settings of the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.placement", description=__doc__)
    parser.add_argument("--projects", type=int, default=100_000)
    parser.add_argument("--memories", type=float, default=1e9, help="of all projects together")
    parser.add_argument("--most", type=float, default=1e6, help="memories of one project")
    parser.add_argument("--skew", type=float, nargs="+", default=[0.8, 0.99, 1.2])
    parser.add_argument("--shards", type=int, default=256)
    parser.add_argument("--nodes", type=int, nargs="+", default=[4, 8, 16, 32])
    parser.add_argument("--isolated", type=int, default=64, help="projects that have shards of their own")
    parser.add_argument("--spread", type=int, default=4, help="projects that any service answers for")
    parser.add_argument("--services", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--budget", type=float, default=32.0, help="GiB for views, of each service")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    for line in report(parsed()):
        print(line)
