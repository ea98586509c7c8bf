"""Cancellations at random moments, over stdio and over HTTP: what was not cancelled is answered, and nothing lingers.

`HUMMOCK_TARGET=host:port python -m tests.mcp.cancelling 1000` tries a thousand over each; a second number is the seed.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any, Protocol, TypeAlias

from hummock_tools.cli.mcp import SERVING_MCP_ON

HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
_COMMAND = (sys.executable, "-m", "hummock", "mcp", "--project", "cancelled", "--no-serve")
_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("search", {"query": "parseDate 还款"}),
    ("recall_context", {"task": "add a repayment method"}),
    ("remember", {"text": "the importer starts with -V"}),
    ("read_memory", {"id": "nowhere"}),
    ("forget", {"ids": ["nowhere"]}),
    ("search", {"limit": 1}),
)
_LONGEST_S = 20.0
_PER_CONNECTION = 20
Id: TypeAlias = int | str
Message: TypeAlias = Mapping[str, Any]


class Wire(Protocol):
    """A connection to the server under test."""

    answered: Counter[Id]
    heard: asyncio.Event

    async def send(self, messages: Sequence[Message]) -> None:
        """Sends the messages at once, one after the other."""


class Pipe:
    """A server of its own, over its stdin and stdout."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.answered: Counter[Id] = Counter()
        self.heard = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def send(self, messages: Sequence[Message]) -> None:
        """Sends the messages in one write."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps(each).encode() + b"\n" for each in messages))
        await self.process.stdin.drain()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self.answered[json.loads(line)["id"]] += 1
            self.heard.set()


class Posts:
    """A session over HTTP, each message in a connection of its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._session = ""
        self.answered: Counter[Id] = Counter()
        self.heard = asyncio.Event()
        self.sent: set[asyncio.Task[None]] = set()

    async def send(self, messages: Sequence[Message]) -> None:
        """Sends the messages at the same time, but for the first, which begins the session."""
        for each in messages:
            posted = asyncio.create_task(self._post(each))
            self.sent.add(posted)
            if not self._session:
                await posted

    async def _post(self, message: Message) -> None:
        body = json.dumps(message).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        session = f"Mcp-Session-Id: {self._session}\r\n" if self._session else ""
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: application/json\r\n{session}"
            "Accept: application/json, text/event-stream\r\nConnection: close\r\n"
        )
        try:
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            for line in (await reader.read()).decode().splitlines():
                if line.lower().startswith("mcp-session-id:"):
                    self._session = line.partition(":")[2].strip()
                if line.startswith("data: {"):
                    self.answered[json.loads(line.removeprefix("data: "))["id"]] += 1
                    self.heard.set()
        finally:
            writer.close()


async def cancel_at_random(wire: Wire, rng: Random, times: int, pauses: Sequence[float]) -> list[str]:
    """Cancels so many calls, and pings; what went wrong."""
    ids = count(1)
    asked: set[Id] = set()
    cancelled: set[Id] = set()

    def call() -> tuple[Id, dict[str, Any]]:
        number = next(ids)
        id: Id = number if rng.random() < 0.5 else f"c-{number}"
        asked.add(id)
        if rng.random() < 0.15:
            return id, {"jsonrpc": "2.0", "id": id, "method": rng.choice(("ping", "tools/list"))}
        tool, arguments = rng.choice(_CALLS)
        params = {"name": tool, "arguments": arguments}
        return id, {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}

    # Nobody may cancel this one.
    asked.add(0)
    await wire.send([HELLO, _cancellation(0)])
    await wire.send([INITIALIZED])
    for _ in range(times):
        calls = [call() for _ in range(rng.randint(1, 3))]
        victim = rng.choice(calls)[0]
        notices = [_cancellation(victim)] * rng.choice((1, 1, 1, 2))
        if rng.random() < 0.2:
            notices.append(_cancellation(rng.choice(("unknown", -1, None, 1.5))))
        cancelled.add(victim)
        messages: list[Message] = [message for _, message in calls]
        match rng.choice(("with", "before", "later", "answered")):
            case "with":
                await wire.send([*messages, *notices])
            case "before":
                await wire.send([*notices, *messages, *notices])
            case "later":
                await wire.send(messages)
                await asyncio.sleep(rng.choice(pauses))
                await wire.send(notices)
            case "answered":
                await wire.send(messages)
                await _until_answered(wire, {victim})
                await wire.send(notices)
    last, message = next(ids), "ping"
    asked.add(last)
    await wire.send([{"jsonrpc": "2.0", "id": last, "method": message}])
    await _until_answered(wire, asked - cancelled)
    silent = [f"{id!r} has no answer" for id in asked - cancelled if not wire.answered[id]]
    return silent + [f"{id!r} has {times} answers" for id, times in wire.answered.items() if times > 1]


def _cancellation(id: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "no more"}}


async def _until_answered(wire: Wire, ids: set[Id]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_S):
            while not all(wire.answered[id] for id in ids):
                wire.heard.clear()
                await wire.heard.wait()


ENDINGS = ("stdin ends", "stdin ends amid calls", "SIGTERM amid calls", "SIGINT amid calls", "stdout closed amid calls")


async def over_stdio(rng: Random, times: int, pauses: Sequence[float], ending: str) -> list[str]:
    """Problems after cancelling calls of one process so many times, and then ending it."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*_COMMAND, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdin is not None
    assert process.stderr is not None
    wire = Pipe(process)
    wrong = await cancel_at_random(wire, rng, times, pauses)
    if "amid" in ending:
        call = {"name": "search", "arguments": {"query": "x"}}
        await wire.send(
            [{"jsonrpc": "2.0", "id": f"last-{n}", "method": "tools/call", "params": call} for n in range(3)]
        )
    if ending.startswith("SIG"):
        process.send_signal(signal.Signals[ending.split()[0]])
    elif ending.startswith("stdin"):
        process.stdin.close()
    else:
        # What asyncio keeps to itself: the pipe that stdout is.
        process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
    try:
        async with asyncio.timeout(_LONGEST_S):
            status = await process.wait()
    except TimeoutError:
        process.kill()
        return [*wrong, f"it lingers: {ending}"]
    # The SDK says of a cancellation whose id is none that it was dropped.
    said = [line for line in (await process.stderr.read()).decode().splitlines() if not line.startswith("dropped ")]
    if status != {"SIGTERM": -15, "SIGINT": -2, "stdin": 0}.get(ending.split()[0], 1):
        wrong.append(f"{ending}: status {status}")
    if len(said) != (status == 1):
        wrong.append(f"{ending}: it said {said}")
    return wrong


async def over_http(rng: Random, times: int, pauses: Sequence[float]) -> list[str]:
    """Problems after so many cancellations in a process, some of whose clients leave during a call."""
    command = (*_COMMAND, "--transport", "http", "--port", "0")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, stderr=-3)
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    port = int(line.removeprefix(f"{SERVING_MCP_ON}http://127.0.0.1:").partition("/")[0])
    wire = Posts(port)
    wrong = await cancel_at_random(wire, rng, times, pauses)
    leaver = Posts(port)
    await leaver.send([HELLO])
    call = {"name": "search", "arguments": {"query": "x"}}
    await leaver.send([{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}])
    await asyncio.sleep(0)
    for each in leaver.sent:
        each.cancel()
    wrong += await cancel_at_random(Posts(port), rng, 1, pauses)
    process.terminate()
    try:
        async with asyncio.timeout(_LONGEST_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        wrong.append("it lingers over HTTP")
    return wrong


async def _main(times: int, seed: int) -> int:
    rng = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    pauses = (0.0, 0.001, 0.003, 0.01, 0.03)
    wrong: list[str] = []
    for done in range(0, times, _PER_CONNECTION):
        wrong += await over_stdio(rng, _PER_CONNECTION, pauses, ENDINGS[done // _PER_CONNECTION % len(ENDINGS)])
        wrong += await over_http(rng, _PER_CONNECTION, pauses)
    print(f"{times} cancellations over stdio, {times} over HTTP, seed {seed}: {len(wrong)} wrong", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    os.environ.setdefault("HUMMOCK_TARGET", "127.0.0.1:7420")
    sys.exit(asyncio.run(_main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)))
