"""Parts `learning` and `turn`: turns of a project that learns, with a language model that is dead, hangs, or is none.

Each turn is Render(commit) and ObserveTurn. The services run side by side and are asked in turns, in an order
that is drawn anew each time, so that whatever the machine does meanwhile it does to all of them. Two of them have no
language model: how far those are apart is how far off a figure can be by chance.
"""

from __future__ import annotations

import json
import random
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import toy_models
from bench.asking import LEARN, Latency, caller
from bench.command import Options
from bench.goals import Headline
from bench.report import Findings, Row
from bench.service import Bench, BenchFailed, Serving
from hummock_client.v1 import context_service_pb2, memory_pb2, recall_pb2
from hummock_client.v1 import learning_service_pb2 as pb

PART, TURN = "learning", "turn"
ENTRIES = 1000
_LEARN_AT_ONCE = 500
_WARM_UP = 100
_TURNS = 500
_HANGS_S = 60.0
_NONE, _AGAIN, _DEAD, _HANGING = "none", "none, again", "dead", "hanging"
_TIMES = 1.1
"""Largest ratio of p99 to that without a language model that counts as unchanged."""
_SEED = 7420
_RENDER = "/hummock.v1.ContextService/RenderTurn"
_OBSERVE = "/hummock.v1.LearningService/ObserveTurn"
_UPDATE = "/hummock.v1.LearningService/UpdateLearningSettings"
_IDEOGRAPHS = [chr(code) for code in range(0x4E00, 0x4E00 + 2000)]
NOT_MEASURED = (
    "the time until keywords are learnt, and a model that embeds: a toy stands for it",
    "other callers of the same service",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A service, and seconds of its calls."""

    service: Serving
    render_s: list[float] = field(default_factory=list)
    observe_s: list[float] = field(default_factory=list)

    def turn(self, number: int, text: str, *, counts: bool) -> None:
        """One turn; the name of an entry is in its text, so that its prompt holds that entry."""
        recall = recall_pb2.RecallRequest(project=PART, query_text=text, preset=recall_pb2.PRESET_CODEX)
        render = context_service_pb2.RenderTurnRequest(
            render=context_service_pb2.RenderRequest(project=PART, recall=recall), turn=number
        )
        observed = pb.ObserveTurnRequest(project=PART, turn=number, user_text=text)
        taken_s, reply = _timed(self.service, _RENDER, render.SerializeToString())
        if not context_service_pb2.RenderTurnResponse.FromString(reply).rendering.text:
            raise BenchFailed("a turn's prompt holds no entry")
        observe_s, _ = _timed(self.service, _OBSERVE, observed.SerializeToString())
        if counts:
            self.render_s.append(taken_s)
            self.observe_s.append(observe_s)


def measure(options: Options) -> Findings:
    """p99 of both calls, against a service that has no language model."""
    names = entry_names(ENTRIES)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(dir=options.stores.directory)))
        addresses = {_NONE: "", _AGAIN: "", _DEAD: _dead(), _HANGING: stack.enter_context(_hanging())}
        asked = {
            name: Asked(service=stack.enter_context(_serving(directory / name, address, names)))
            for name, address in addresses.items()
        }
        chosen = random.Random(_SEED)  # noqa: S311 - made-up turns, no secrets
        for number in range(_WARM_UP + options.queries):
            text = _text(number, chosen, names)
            for each in chosen.sample(list(asked.values()), len(asked)):
                each.turn(number, text, counts=number >= _WARM_UP)
    return Findings(part=PART, rows=tuple(rows(asked)), figures=tuple(figures(asked)), not_measured=NOT_MEASURED)


def measure_turn(options: Options) -> Findings:
    """Turns of a service without a language model."""
    names = entry_names(ENTRIES)
    with (
        TemporaryDirectory(dir=options.stores.directory) as directory,
        _serving(Path(directory, _NONE), "", names) as service,
    ):
        asked = Asked(service=service)
        chosen = random.Random(_SEED)  # noqa: S311 - made-up turns, no secrets
        for number in range(_WARM_UP + _TURNS):
            asked.turn(number, _text(number, chosen, names), counts=number >= _WARM_UP)
    render, observe = Latency.of(asked.render_s), Latency.of(asked.observe_s)
    return Findings(
        part=TURN,
        headlines=(Headline.of("turn", render.p50_ms),),
        figures=(("RenderTurn", render.line()), ("ObserveTurn", observe.line())),
        not_measured=NOT_MEASURED,
    )


def _text(number: int, chosen: random.Random, names: Sequence[str]) -> str:
    return f"第{number}回，我想去看看{chosen.choice(names)}，还有{chosen.choice(names)}"


def rows(asked: Mapping[str, Asked]) -> Iterator[Row]:
    """One row for each call and each language model that does not answer."""
    states = {_DEAD: "is dead", _HANGING: f"hangs for {_HANGS_S:.0f} s"}
    for call, latencies in _latencies(asked).items():
        none_ms, again_ms = latencies[_NONE].p99_ms, latencies[_AGAIN].p99_ms
        for name, state in states.items():
            what = f"{call}, {ENTRIES:,} entries, the language model {state}: p99 to that without a language model"
            p99_ms = latencies[name].p99_ms
            note = f"{p99_ms:.2f} ms, without {none_ms:.2f} ms; another service without one {again_ms / none_ms:.2f} ×"
            yield Row.at_most(what, _TIMES, p99_ms / none_ms, "×", note=note)


def figures(asked: Mapping[str, Asked]) -> Iterator[tuple[str, str]]:
    """One figure for each call and each language model."""
    for call, latencies in _latencies(asked).items():
        for name, latency in latencies.items():
            yield f"{call}, {ENTRIES:,} entries, language model: {name}", latency.line()


def _latencies(asked: Mapping[str, Asked]) -> dict[str, dict[str, Latency]]:
    return {
        "Render(commit)": {name: Latency.of(each.render_s) for name, each in asked.items()},
        "ObserveTurn": {name: Latency.of(each.observe_s) for name, each in asked.items()},
    }


def entry_names(count: int) -> list[str]:
    """Made-up names of three and four Chinese characters, all different."""
    made = random.Random(_SEED)  # noqa: S311 - made-up names, no secrets
    names: dict[str, None] = {}
    while len(names) < count:
        names["".join(made.choices(_IDEOGRAPHS, k=made.choice((3, 4))))] = None
    return list(names)


@contextmanager
def _serving(directory: Path, address: str, names: Sequence[str]) -> Iterator[Serving]:
    """A service with these entries that learns by the language model at an address; by none where it is empty."""
    directory.mkdir()
    bench = Bench.prepare(directory, toy_models.TINY, directory.parent / "models")
    if address:
        table = f'[learning_llm]\nbase_url = {json.dumps(address)}\nmodel = "bench"\ntimeout_s = {_HANGS_S}\n'
        with (directory / "hummock.toml").open("a", encoding="utf-8") as settings:
            settings.write(table)
    with bench.serving() as service:
        learn = caller(service.channel, LEARN)
        for start in range(0, len(names), _LEARN_AT_ONCE):
            memories = [_entry(name) for name in names[start : start + _LEARN_AT_ONCE]]
            learn(context_service_pb2.LearnRequest(project=PART, memories=memories).SerializeToString())
        switched = pb.UpdateLearningSettingsRequest(project=PART, enabled=True)
        caller(service.channel, _UPDATE)(switched.SerializeToString())
        yield service


def _entry(name: str) -> memory_pb2.Memory:
    return memory_pb2.Memory(
        id=f"世界.图鉴.{name}",
        kind=memory_pb2.MEMORY_KIND_ENTRY,
        title=name,
        content=f"{name}在海的另一边，很少有人见过。",
    )


def _timed(service: Serving, method: str, message: bytes) -> tuple[float, bytes]:
    call = caller(service.channel, method)
    started_s = time.perf_counter()
    reply = call(message)
    return time.perf_counter() - started_s, reply


@contextmanager
def _hanging() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


def _dead() -> str:
    """An address at which nobody is."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    return f"http://127.0.0.1:{port}/v1"
