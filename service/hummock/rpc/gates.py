"""Where calls run."""

from __future__ import annotations

from dataclasses import dataclass, field

from hummock.rpc.gate import DEFAULT_WAITING_LIMIT, Gate, Load
from hummock.rpc.loop_executor import LoopExecutor


def loop_gate(waiting_limit: int = DEFAULT_WAITING_LIMIT) -> Gate:
    """A gate before the event loop itself."""
    return Gate(LoopExecutor(), workers=1, waiting_limit=waiting_limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Reads apart from writes, for a write holds its worker while it waits for the disk.

    What takes a moment and waits for nothing runs `at_once`, on the event loop.
    """

    reads: Gate
    writes: Gate
    at_once: Gate = field(default_factory=loop_gate)

    def load(self) -> Load:
        """All together."""
        loads = [gate.load for gate in (self.at_once, self.reads, self.writes)]
        return Load(running=sum(load.running for load in loads), waiting=sum(load.waiting for load in loads))
