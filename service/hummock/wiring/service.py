"""The service: all use cases over one store, and reader processes if configured."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from hummock import models, store
from hummock.access.audit import AuditLog
from hummock.config import Settings
from hummock.core.activity import Activity
from hummock.core.errors import StartError
from hummock.core.project import LearnerStatus, ServiceStatus
from hummock.learning.background import BackgroundLearner
from hummock.learning.entry_keywords import AskKeywords
from hummock.learning.learn_keywords import LearnKeywords
from hummock.learning.observe import Feedback, Observe
from hummock.learning.offline import LearnOffline
from hummock.learning.references import Entries, ProjectReferences
from hummock.learning.state import Learning
from hummock.memories.backfill import Backfill
from hummock.memories.forget import Forget
from hummock.memories.garden import Garden, Review
from hummock.memories.learn import Learn
from hummock.memories.learn_turn import LearnTurn
from hummock.memories.messages import Messages
from hummock.memories.preparation import Preparation
from hummock.memories.reembed import Reembedding
from hummock.memories.retention import Expiry, Retention
from hummock.memories.sessions import Sessions
from hummock.models.space import space_of
from hummock.observe.ledger import ledgers_with
from hummock.ports.models import Clock, KeywordLearner, LlmUsage
from hummock.projects.projects import Projects
from hummock.projects.projects import Settings as ProjectsSettings
from hummock.projects.transfer import Export, Import
from hummock.recall.explain import Explain
from hummock.render.pipeline import Render
from hummock.render.search import Search, SearchTrails
from hummock.render.turn import RenderTurn
from hummock.rpc.admission import AdmissionQueue
from hummock.rpc.lanes import Lanes, inline_queue
from hummock.rpc.listening import LONGEST_SOCKET_PATH_BYTES, Address, UnixAddress, parse_address
from hummock.rpc.methods import UseCases
from hummock.rpc.readers import Readers
from hummock.rpc.server import Access, Server
from hummock.rpc.server import serve as serve_calls
from hummock.text.tokens import EstimatedTokens, TokenCounter, counter_of
from hummock.wiring import stores
from hummock.wiring.console_process import console_beside
from hummock.wiring.model_choice import ModelChoice, advice, choose_model
from hummock.wiring.parts import (
    Say,
    SystemClock,
    access_of,
    address_of,
    allow_many_files,
    llm,
    loading,
    metrics_shown,
    recalling,
    slow_s_of,
    tracing,
    tune_interpreter,
)
from hummock.wiring.parts import warm as warm_texts

if TYPE_CHECKING:
    from hummock.rpc.json_http import JsonHttp

WRITE_WORKERS = 16
"""Writes wait for the model and for one fsync, and share both: more of them wait at once than there are cores."""

STREAM_WORKERS = 2
"""Two, so that a slow export page cannot block watches; more would compete for the GIL."""

_READER = (sys.executable, "-P", "-m", "hummock", "reader")


def serve(
    settings: Settings, say: Say, on_listening: Callable[[Address], None], again: Callable[[], Settings | None]
) -> None:
    """Serve until SIGTERM or SIGINT, then finish running calls and close.

    Args:
        settings: The settings.
        say: Prints a line for people at each step.
        on_listening: Gets the address, with the chosen port, once calls are accepted.
        again: Reads the settings again at SIGHUP; None if they are invalid.

    Raises: StartError.
    """
    allow_many_files()  # first, so that readers have them too
    # Before anything is opened, so that errors here are reported at once.
    access = access_of(settings)
    access.check(parse_address(address_of(settings)))

    def reload() -> None:
        """Apply settings that may change while it runs; token and TLS files are watched separately."""
        now = again()
        if now is not None:
            access.interceptor.slow_s = slow_s_of(now)

    def listening(bound: Address) -> None:
        if http is not None:
            http.start(inside or bound)
            say(f"JSON over HTTP on {http.url}")
        if console is not None:
            console.start(inside or bound)
        on_listening(bound)
        # Few recalls need it, so the start does not wait for it; the first Learn would.
        Thread(target=warm_texts, name="warm", daemon=True).start()

    with (
        ledgers_with(settings.readers) as ledgers,
        _inside(settings) as inside,
        _json_http(settings, access) as http,
        console_beside(settings.console_port, say) as console,
        _run_readers(settings, inside, ledgers.readers) as readers,
        open_use_cases(settings, say) as use_cases,
        _auditing(settings) as access.interceptor.audit,
        _lanes(settings) as lanes,
        ExitStack() as watching,
    ):

        def activity() -> Activity:
            return ledgers.activity(use_cases.load(), lanes.load(), readers.living() if readers else 0)

        watching.enter_context(metrics_shown(settings, use_cases, lanes, activity, ledgers, say))
        traced = watching.enter_context(tracing(settings, access.interceptor, say))
        access.interceptor.meters = (ledgers.own, *traced)
        tune_interpreter()
        asyncio.run(
            serve_calls(
                Server.start(
                    use_cases,
                    lanes,
                    address_of(settings),
                    access=access,
                    inside=inside,
                    shares_port=readers is not None,
                    activity=activity,
                ),
                warm_up=partial(readers.listen, service=inside) if readers and inside else None,
                on_listening=listening,
                on_hangup=reload,
            )
        )


@contextmanager
def _auditing(settings: Settings) -> Iterator[AuditLog | None]:
    """Open the audit log, if configured. Raises: StartError."""
    if not settings.audit:
        yield None
        return
    # Under the lock of the data directory: two services would break the hash chain.
    with closing(AuditLog(settings.data_dir)) as audit:
        yield audit


@contextmanager
def _json_http(settings: Settings, access: Access) -> Iterator[JsonHttp | None]:
    """Open the HTTP listener, if configured; it listens at once. Raises: StartError."""
    if settings.http_port is None:
        yield None
        return
    # Imported here, since it needs an optional extra.
    from hummock.rpc.json_http import JsonHttp

    with closing(
        JsonHttp(
            "127.0.0.1",
            settings.http_port,
            also_named=settings.http_hosts,
            tls=access.tls,
            interceptor=access.interceptor,
        )
    ) as http:
        yield http


@contextmanager
def _lanes(settings: Settings) -> Iterator[Lanes]:
    """Where calls run; ends what runs there."""
    with (
        ThreadPoolExecutor(settings.workers, thread_name_prefix="read") as reads,
        ThreadPoolExecutor(WRITE_WORKERS, thread_name_prefix="write") as writes,
        ThreadPoolExecutor(STREAM_WORKERS, thread_name_prefix="stream") as streams,
    ):
        yield Lanes(
            inline=inline_queue(settings.waiting_calls),
            read=AdmissionQueue(reads, workers=settings.workers, waiting_limit=settings.waiting_calls),
            write=AdmissionQueue(writes, workers=WRITE_WORKERS, waiting_limit=settings.waiting_calls),
            stream=AdmissionQueue(streams, workers=STREAM_WORKERS, waiting_limit=settings.waiting_calls),
        )


@contextmanager
def _inside(settings: Settings) -> Iterator[UnixAddress | None]:
    """Yield a plaintext socket for the service's own processes; None if there are none."""
    # A service on a Unix socket needs no second one.
    wants_one = settings.readers or settings.http_port is not None or settings.console_port is not None
    if settings.unix_socket is not None or not wants_one:
        yield None
        return
    socket = settings.data_dir / "service.sock"
    with ExitStack() as stack:
        # A killed service leaves its socket, which the next start reuses; a temporary folder would never be removed.
        if len(bytes(socket)) > LONGEST_SOCKET_PATH_BYTES:
            socket = Path(stack.enter_context(TemporaryDirectory(prefix="hummock-")), socket.name)
        yield UnixAddress(path=socket)


@contextmanager
def _run_readers(settings: Settings, inside: UnixAddress | None, ledgers: Sequence[int]) -> Iterator[Readers | None]:
    """Start the configured readers. They load in parallel with this process and end after it. Raises: StartError."""
    if not settings.readers or inside is None:
        yield None
        return
    if sys.platform != "linux":
        raise StartError("readers share a port, which only Linux divides among processes; set readers to 0")
    with Readers(settings.readers, _READER, settings.for_reader(), ledgers) as readers:
        yield readers


@contextmanager
def open_use_cases(settings: Settings, say: Say) -> Iterator[UseCases]:
    """The use cases over an open store and a loaded model; `say` takes a line for people at each step.

    Raises: StartError.
    """
    clock = SystemClock()
    with ExitStack() as stack:
        # Our matrices are small; a second BLAS thread waits more than it works: 27 texts/s embedded instead of 38.
        stack.enter_context(threadpool_limits(limits=1, user_api="blas"))
        # First, so that a store that cannot be opened is reported before a model is downloaded and loaded.
        recorded = stores.recorded(settings)
        counter = _counter(settings)
        choice = choose_model(settings, recorded, say)
        model = choice.model
        embedder = stack.enter_context(closing(models.open_embedder(model, settings.models_dir, settings.workers, say)))
        say(f"model {model.name}, {embedder.space.dim} dimensions, space {embedder.space.id}")
        opened = stack.enter_context(
            stores.opened(settings, embedder.space, clock, settings.workers + WRITE_WORKERS + STREAM_WORKERS, say)
        )
        # Stored counts are estimates: a file that counts prompts may be another one tomorrow.
        preparation = Preparation(embedder, EstimatedTokens(), make_id)
        backfill = stack.enter_context(closing(Backfill(opened, embedder, clock, settings.workers)))
        backfill.start()
        advising = stack.enter_context(_reembedding(settings, choice, opened, say))
        stack.enter_context(closing(Expiry(opened))).start()
        forget, sessions = Forget(opened), Sessions(opened, clock, make_id)
        stack.enter_context(closing(Retention(opened, forget, sessions, clock))).start()
        uncached, recall = stack.enter_context(recalling(settings, opened, embedder, clock, say, backfill.want))
        entries, find_references = Entries(), ProjectReferences()
        render_turn = RenderTurn(opened, entries, find_references)
        learn_with = partial(LearnKeywords, opened, entries, uncached, find_references)
        background, learner_status = stack.enter_context(_background(settings, opened, learn_with, clock, say))
        observe = Observe(opened, background.seen)
        trails = SearchTrails(clock.monotonic)

        def follow(follower: Callable[[str, int], None]) -> None:
            opened.follow(follower)
            background.follow(follower)

        hummock_version, began_s = version("hummock"), clock.monotonic()

        def status() -> ServiceStatus:
            return ServiceStatus(
                version=hummock_version,
                uptime_s=clock.monotonic() - began_s,
                space=embedder.space,
                advice=advising(),
                store=opened.status(),
                learner=learner_status(),
                embedding=backfill.status(),
            )

        yield UseCases(
            recall=recall,
            render=Render(recall.within, opened, counter, clock, render_turn),
            learn=Learn(opened, embedder, preparation, clock, backfill.wake),
            learn_turn=LearnTurn(
                opened, preparation, clock, make_id, followers=(observe.follow,), on_pending=backfill.wake
            ),
            search=Search(recall, trails, opened),
            explain=Explain(uncached, opened, embedder.space.calibration, clock),
            feedback=Feedback(opened),
            garden=Garden(opened, preparation, clock),
            forget=forget,
            review=Review(opened, preparation, clock),
            projects=Projects(opened, (backfill.forget, background.forget, entries.forget, trails.forget)),
            export=Export(opened),
            import_parts=Import(opened, embedder, preparation, clock, backfill.wake),
            sessions=sessions,
            messages=Messages(opened, preparation, clock),
            settings=ProjectsSettings(opened, embedder.space.calibration.near_twin_bar),
            learning=Learning(opened, entries, background.switched_on),
            observe=observe,
            scan=background.scan,
            status=status,
            embedding_status=backfill.status,
            follow=follow,
            load=loading(recall, opened, embedder),
            trouble=opened.trouble,
        )


def _counter(settings: Settings) -> TokenCounter:
    try:
        return counter_of(settings.tokenizer_file)
    except (OSError, ValueError) as error:
        raise StartError(f"tokenizer_file: {error}") from error


@contextmanager
def _reembedding(
    settings: Settings, choice: ModelChoice, opened: store.WritableStore, say: Say
) -> Iterator[Callable[[], str]]:
    """Embed memories for the chosen successor while the block runs; yields advice about the model."""
    if choice.successor is None:
        # Takes seconds where there are any: once, a week after a switch.
        opened.drop_left_spaces()
        yield partial(advice, choice.model)
        return
    space = space_of(choice.successor)
    opening = partial(models.open_embedder, choice.successor, settings.models_dir, 1)
    with closing(Reembedding(opened, space, opened.space_beside(space), opening)) as reembedding:
        say(f"memories are embedded anew with {choice.successor.name}; a later start uses it")
        reembedding.start()
        yield reembedding.advice


@contextmanager
def _background(
    settings: Settings,
    opened: store.WritableStore,
    learn_with: Callable[[KeywordLearner], LearnKeywords],
    clock: Clock,
    say: Say,
) -> Iterator[tuple[BackgroundLearner, Callable[[], LearnerStatus]]]:
    """Start the background learner. Yields it and a function for its status.

    It has its own connection to the model, so that its questions delay no intent.
    """
    chosen = settings.learning_llm if settings.learning_llm.is_set else settings.llm
    with ExitStack() as stack:
        model = stack.enter_context(llm(chosen, clock))
        one_by_one = settings.learning_question == "entry"
        learner = LearnOffline(opened) if model is None else AskKeywords(model, clock, one_by_one=one_by_one)
        say(f"keywords are learnt {'from what is observed' if model is None else f'by {chosen.model}'}")
        background = stack.enter_context(closing(BackgroundLearner(learn_with(learner), opened.claims, clock)))
        background.start()

        def status() -> LearnerStatus:
            used = LlmUsage() if model is None else model.usage
            return LearnerStatus(
                model="" if model is None else chosen.model,
                requests=used.requests,
                replies=used.replies,
                prompt_tokens=used.prompt_tokens,
                completion_tokens=used.completion_tokens,
                waiting_turns=background.waiting,
                dropped_turns=background.dropped,
            )

        yield background, status


def make_id() -> str:
    """An id that no other machine will ever make."""
    return uuid.uuid4().hex
