"""Runs a peer in the environment that `make bench-peers` makes, away from Hummock's own packages."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.stores import Filled, say

_ROOT = Path(__file__).parents[2]
_LIMIT_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A store that Hummock is compared with: its module in this folder, and what has to be importable.

    `where` is where it runs, seen from who asks.
    """

    name: str
    module: str
    package: str
    where: str = "in process"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One client's searches, one after the other; `stored_s` is what storing and indexing took."""

    package: str
    version: str
    memories: int
    stored_s: float
    calls: int
    p50_ms: float
    p99_ms: float

    def line(self) -> str:
        """For people."""
        return (
            f"p50 {self.p50_ms:.2f}, p99 {self.p99_ms:.2f} ms ({self.calls} calls); "
            f"{self.memories} memories stored and indexed in {self.stored_s:.0f} s"
        )


QDRANT_EDGE = Peer(name="qdrant-edge-py", module="qdrant_edge", package="qdrant_edge")
SQLITE_VEC = Peer(name="sqlite-vec + FTS5", module="sqlite_vec", package="sqlite_vec")
LANCE_DB = Peer(name="LanceDB", module="lance_db", package="lancedb")
CHROMA = Peer(name="Chroma server", module="chroma_server", package="chromadb", where="over HTTP")
MEM0 = Peer(name="mem0", module="mem0_memory", package="mem0")
LANGCHAIN = Peer(name="langchain-core's MMR", module="langchain_mmr", package="langchain_core")


def run_peer(peer: Peer, filled: Filled, memories: int, stores: Path) -> Result | str:
    """What the peer did with the first so many memories of a setting, or why it did nothing."""
    said = run_module(peer, filled, memories, stores)
    return said if isinstance(said, str) else Result(**said)


def run_module(peer: Peer, filled: Filled, memories: int, stores: Path) -> dict[str, Any] | str:
    """What the peer's module printed."""
    python = _python(peer, stores)
    if python is None:
        return f"{peer.name} is not installed; `make bench-peers` installs it"
    # Here, for only who has a peer needs them.
    from bench.peers.data import write_data

    data = write_data(filled, memories)
    say(f"{peer.name}: {memories} memories")
    command = [str(python), "-m", f"bench.peers.{peer.module}", str(data)]
    try:
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"{peer.name} was not done after {_LIMIT_S:.0f} s"
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        return f"{peer.name} failed: {''.join(last)}"
    values: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return values


def _python(peer: Peer, stores: Path) -> Path | None:
    """An interpreter that has the peer: that of the peers' environment, else this one; None where neither does."""
    python = stores / "peers" / "bin" / "python"
    if python.exists():
        look = [str(python), "-c", f"import {peer.package}"]
        return python if subprocess.run(look, capture_output=True).returncode == 0 else None
    return Path(sys.executable) if find_spec(peer.package) else None
