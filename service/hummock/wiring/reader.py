"""A reader: recalls over a store that another process writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from threading import Thread

from threadpoolctl import threadpool_limits

from hummock import models, store
from hummock.config import Settings
from hummock.observe.ledger import ledger_of_reader
from hummock.rpc.admission import AdmissionQueue
from hummock.rpc.lanes import Lanes, inline_queue
from hummock.rpc.listening import Address, parse_address
from hummock.rpc.reader import serve_recalls
from hummock.rpc.readers import BEAT_S
from hummock.wiring.model_choice import choose_model
from hummock.wiring.parts import Say, SystemClock, access_of, loading, recalling, tracing, tune_interpreter
from hummock.wiring.parts import warm as warm_texts
from hummock.wiring.stores import index_of, recorded_in

Where = tuple[str, str, int | None]
"""Address to listen on, address of the service, and file descriptor of the shared counters, if any."""

_NOTED_BEATS = 4
"""Heartbeats between two reports of this process's load."""


def serve_reader(
    settings: Settings,
    where: Callable[[], Where | None],
    until: Callable[[], None],
    say: Say,
    on_listening: Callable[[Address], None],
    beat: Callable[[], None],
) -> None:
    """Answer recalls until `until` returns, then finish running calls and close.

    Args:
        settings: Settings of the service.
        where: Waits until the service listens; None if it has ended instead.
        until: Waits until it ends.
        say: Prints a line for people at each step.
        on_listening: Gets the address once calls are accepted.
        beat: Called several times a second from then on, as a heartbeat.

    Raises: StartError.
    """
    # The cores are shared with the service and other readers.
    slots = max(1, settings.workers // (settings.readers + 1))
    model = choose_model(settings, recorded_in(settings.data_dir, is_in_use=True), say).model
    with (
        threadpool_limits(limits=1, user_api="blas"),
        closing(models.open_embedder(model, settings.models_dir, slots)) as embedder,
    ):
        told = where()
        if told is not None:
            _answer(settings, embedder, told, until, say, on_listening, beat)


def _answer(
    settings: Settings,
    embedder: models.OnnxEmbedder,
    where: Where,
    until: Callable[[], None],
    say: Say,
    on_listening: Callable[[Address], None],
    beat: Callable[[], None],
) -> None:
    """Open the store and answer recalls at the address."""
    address, service, ledger_descriptor = where
    storage, access = settings.storage, access_of(settings)
    ledger = ledger_of_reader(ledger_descriptor)
    with (
        tracing(settings, access.interceptor, say) as traced,
        closing(
            store.open_reads(
                settings.data_dir,
                space=embedder.space,
                clock=SystemClock(),
                map_bytes=storage.map_bytes,
                memory_budget_bytes=storage.memory_budget_bytes,
                index=index_of(settings),
            )
        ) as memories,
        recalling(settings, memories, embedder, SystemClock(), say) as (_, recall),
        ThreadPoolExecutor(settings.workers, thread_name_prefix="read") as workers,
    ):
        reads = AdmissionQueue(workers, workers=settings.workers, waiting_limit=settings.waiting_calls)
        lanes = Lanes(inline=inline_queue(settings.waiting_calls), read=reads, write=reads, stream=reads)
        access.interceptor.meters = (ledger, *traced)
        tune_interpreter()
        beating: list[asyncio.Task[None]] = []

        load = loading(recall, memories, embedder)

        def note() -> None:
            calls = lanes.load()
            ledger.note(replace(load(), running_calls=calls.running, waiting_calls=calls.waiting))

        def listening(bound: Address) -> None:
            on_listening(bound)
            beating.append(asyncio.create_task(_beat(beat, note)))
            # Few recalls need it, so the start does not wait for it.
            Thread(target=warm_texts, name="warm", daemon=True).start()

        async def serve() -> None:
            ended = _event_after(until)
            await serve_recalls(
                recall,
                lanes,
                parse_address(address),
                service,
                interceptor=access.interceptor,
                tls=access.tls,
                until=ended,
                on_listening=listening,
            )

        asyncio.run(serve())


async def _beat(beat: Callable[[], None], note: Callable[[], None]) -> None:
    """Send heartbeats from the event loop, so that a blocked loop counts as dead."""
    while True:
        note()
        for _ in range(_NOTED_BEATS):
            beat()
            await asyncio.sleep(BEAT_S)


def _event_after(wait: Callable[[], None]) -> asyncio.Event:
    """An event of the running loop that is set when this has been waited for."""
    loop, waited = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        wait()
        # It may be over before.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(waited.set)

    Thread(target=tell, name="until", daemon=True).start()
    return waited
