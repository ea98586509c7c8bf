"""Conversations for a long time, with restarts: `python -m tests.crash.soak --minutes 30 --seed 1`, or `make soak`.

Each client has a conversation turn by turn: it has the prompt rendered and counted, and has
the turn learnt. After a round it begins another project and deletes the one before the last, so that what is stored
stays as much. Between its lives the service is stopped or killed. Its memory and its file must stay as they were.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import quantiles
from tempfile import TemporaryDirectory

import grpc

from bench import toy_models
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import learning_service_pb2 as learning
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import project_service_pb2 as projects
from hummock_client.v1 import recall_pb2 as recall
from hummock_client.v1 import session_service_pb2 as sessions
from tests.rpc.fuzz import own_memory_mib
from tests.service.running import Process, Stubs, connected, in_process

_CLIENTS = 4
_ENTRIES = 12
_SESSION = "s"
_WORDS = ("tide", "lamp", "harbour", "还款", "潮汐", "parseDate", "pier", "灯塔", "storm", "anchor", "日期", "crane")
_STOP_S = 30.0

SETTLED_ROUNDS = 3
"""Rounds of a life after which as much is deleted as is stored, so that nothing may grow any more."""
MOST_GROWTH_MIB = 50.0
MOST_FILE_GROWTH = 1.5
"""The file's largest size against its size after the first SETTLED_ROUNDS rounds."""


@dataclass(slots=True, kw_only=True)
class Figures:
    """Measurements of a run.

    Attributes:
        turn_s: How long each turn took.
        growth_mib: The largest growth of the service's own memory within a life, after its first rounds.
        file_mib: Sizes of the data file after each round.
        slowest_start_s: Longest start, the process's own included.
        lost: Conversations that were not whole after a restart.
    """

    lives: int = 0
    turn_s: list[float] = field(default_factory=list)
    growth_mib: float = 0.0
    file_mib: list[float] = field(default_factory=list)
    slowest_start_s: float = 0.0
    lost: list[str] = field(default_factory=list)

    @property
    def file_growth(self) -> float:
        """Size of the data file, relative to its size after the first rounds."""
        first = self.file_mib[: SETTLED_ROUNDS + 1]
        return max(self.file_mib) / max(first)


@dataclass(slots=True, kw_only=True)
class Client:
    """One side of a conversation; `said` are the messages of its newest project."""

    number: int
    random: Random
    rounds: int = 0
    said: list[str] = field(default_factory=list)

    @property
    def project(self) -> str:
        """Project of the current round."""
        return self._project(self.rounds)

    def _project(self, rounds: int) -> str:
        return f"chat-{self.number}-{rounds}"

    def converse(self, stubs: Stubs, turns: int) -> list[float]:
        """A round. Returns how long each turn took, in seconds."""
        self.rounds += 1
        self.said.clear()
        entries = [
            pb.Memory(id=f"e{one}", kind=pb.MEMORY_KIND_ENTRY, title=word, content=self._words())
            for one, word in enumerate(_WORDS[:_ENTRIES])
        ]
        stubs.context.Learn(context.LearnRequest(project=self.project, memories=entries))
        stubs.session.CreateSession(sessions.CreateSessionRequest(project=self.project, id=_SESSION))
        switched = learning.UpdateLearningSettingsRequest(project=self.project, enabled=True)
        stubs.learning.UpdateLearningSettings(switched)
        elapsed = [self._turn(stubs, turn) for turn in range(turns)]
        if self.rounds > 2:
            old = self._project(self.rounds - 2)
            stubs.project.DeleteProject(projects.DeleteProjectRequest(project=old))
        return elapsed

    def is_whole(self, stubs: Stubs) -> bool:
        """True if all messages are there, in their order."""
        request = sessions.ListMessagesRequest(project=self.project, session_id=_SESSION, page_size=1000)
        return [one.content for one in stubs.session.ListMessages(request).messages] == self.said[-1000:]

    def _turn(self, stubs: Stubs, turn: int) -> float:
        user, assistant = f"{turn}: {self._words()}", f"{turn}! {self._words()}"
        began = time.monotonic()
        asked = recall.RecallRequest(query_text=user, preset=recall.PRESET_CHAT)
        rendering = context.RenderRequest(project=self.project, recall=asked, budget_tokens=500)
        stubs.context.RenderTurn(context.RenderTurnRequest(render=rendering, scope=_SESSION, turn=turn))
        sides = [context.TurnSide(text=user), context.TurnSide(text=assistant)]
        stubs.context.LearnTurn(
            context.LearnTurnRequest(
                project=self.project, session_id=_SESSION, user=sides[0], assistant=sides[1], used_memory_ids=["e0"]
            )
        )
        self.said += [user, assistant]
        return time.monotonic() - began

    def _words(self) -> str:
        return " ".join(self.random.choices(_WORDS, k=12))


def run(
    directory: Path, models_dir: Path, model: str, *, seed: int, rounds: int, turns: int, is_over: Callable[[], bool]
) -> Figures:
    """Lives of so many rounds, of so many turns each, until it is over; one life at least."""
    figures = Figures()
    clients = [Client(number=one, random=Random(f"{seed}/{one}")) for one in range(_CLIENTS)]  # noqa: S311
    data = directory / "data"
    with (directory / "service.log").open("w") as log:
        while not figures.lives or not is_over():
            began = time.monotonic()
            with in_process(data, models_dir, model, stderr=log) as process, connected(process.target) as stubs:
                figures.slowest_start_s = max(figures.slowest_start_s, time.monotonic() - began)
                if figures.lives:
                    figures.lost += [one.project for one in clients if not one.is_whole(stubs)]
                try:
                    _live(process, stubs, clients, figures, data / "data.mdb", rounds, turns)
                except grpc.RpcError:
                    print(Path(log.name).read_text(), file=sys.stderr)
                    raise
                figures.lives += 1
                if figures.lives % 2:
                    process.popen.terminate()
                    assert process.popen.wait(_STOP_S) == 0
                else:
                    process.kill()
            print(
                f"\r{figures.lives} lives, {len(figures.turn_s)} turns, file {figures.file_mib[-1]:.0f} MiB",
                end="",
                file=sys.stderr,
                flush=True,
            )
    return figures


def _live(
    process: Process, stubs: Stubs, clients: list[Client], figures: Figures, file: Path, rounds: int, turns: int
) -> None:
    memory_mib = []
    with ThreadPoolExecutor(len(clients)) as pool:
        for _ in range(rounds):
            for elapsed in pool.map(lambda client: client.converse(stubs, turns), clients):
                figures.turn_s += elapsed
            memory_mib.append(own_memory_mib(process))
            figures.file_mib.append(file.stat().st_blocks * 512 / (1 << 20))
    settled = memory_mib[min(SETTLED_ROUNDS, rounds - 1) :]
    figures.growth_mib = max(figures.growth_mib, max(settled) - settled[0])


def main() -> None:
    """Runs, and says as JSON what was seen; status 1 where something was lost or grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--turns", type=int, default=50)
    arguments = parser.parse_args()
    until = time.monotonic() + 60 * arguments.minutes
    with TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "models").mkdir()
        model = toy_models.build_tiny(place / "models").name
        figures = run(
            place,
            place / "models",
            model,
            seed=arguments.seed,
            rounds=arguments.rounds,
            turns=arguments.turns,
            is_over=lambda: time.monotonic() >= until,
        )
    print(file=sys.stderr)
    percentiles = quantiles(figures.turn_s, n=100)
    said = {
        "lives": figures.lives,
        "turns": len(figures.turn_s),
        "turn_ms": {f"p{one}": round(1000 * percentiles[one - 1], 1) for one in (50, 95, 99)},
        "growth_mib_in_a_life": round(figures.growth_mib, 1),
        "file_mib": [round(one, 1) for one in figures.file_mib[:: max(1, len(figures.file_mib) // 10)]],
        "file_growth": round(figures.file_growth, 2),
        "slowest_start_s": round(figures.slowest_start_s, 1),
        "lost": figures.lost,
    }
    print(json.dumps(said))
    has_grown = figures.growth_mib > MOST_GROWTH_MIB or figures.file_growth > MOST_FILE_GROWTH
    raise SystemExit(bool(figures.lost or has_grown))


if __name__ == "__main__":
    main()
