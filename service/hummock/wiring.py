"""Puts the service together: the only place that names concrete classes. Opens in order, closes in reverse."""

from __future__ import annotations

import asyncio
import gc
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from threading import Thread
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from hummock import models, store
from hummock.config import LlmSettings, Settings
from hummock.core.embedding import EmbeddingSpace
from hummock.core.errors import StartError
from hummock.core.recall import CrossEncoding, IntentMode
from hummock.core.status import LearnerStatus
from hummock.learn import ProjectReferences
from hummock.learn.ask import AskKeywords
from hummock.learn.offline import LearnOffline
from hummock.ports import Clock, KeywordLearner, LlmUsage, Reranker
from hummock.rpc.address import Address
from hummock.rpc.gate import Gate
from hummock.rpc.handlers import Gates
from hummock.rpc.server import serve as serve_calls
from hummock.rpc.use_cases import UseCases
from hummock.text.tokens import EstimatedTokens, TokenCounter, counter_of
from hummock.text.warm import warm as warm_texts
from hummock.usecases.ask_intent import AskIntent
from hummock.usecases.background_learner import BackgroundLearner
from hummock.usecases.cached_recall import CachedRecall
from hummock.usecases.cross_encode import CrossEncode
from hummock.usecases.entries import Entries
from hummock.usecases.explain import Explain
from hummock.usecases.export import Export
from hummock.usecases.feedback import Feedback
from hummock.usecases.garden import Garden
from hummock.usecases.import_parts import Import
from hummock.usecases.learn import Learn, Preparation
from hummock.usecases.learn_keywords import LearnKeywords
from hummock.usecases.learn_turn import LearnTurn
from hummock.usecases.learning import Learning
from hummock.usecases.observe import Observe
from hummock.usecases.projects import Projects
from hummock.usecases.recall import Recall
from hummock.usecases.render import Render
from hummock.usecases.render_turn import RenderTurn
from hummock.usecases.search import Search
from hummock.usecases.search_trail import SearchTrails
from hummock.usecases.sessions import Sessions
from hummock.usecases.settings import Settings as ProjectsSettings
from hummock.usecases.status import Status

if TYPE_CHECKING:
    from hummock.llm import OpenAiCompatible

Say = Callable[[str], None]

WRITE_WORKERS = 16
"""Writes wait for the model and for one fsync, and share both: more of them wait at once than there are cores."""


LLM_WORKERS = 8
"""Questions to the language model at once; each is a wait for the network of at most some 300 ms."""


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Unix seconds."""
        return time.time()

    monotonic = staticmethod(time.monotonic)
    """Seconds from some start; never goes back. Asked for at every stage of a recall, without a call in between."""


def make_id() -> str:
    """An id that no other machine will ever make."""
    return uuid.uuid4().hex


@contextmanager
def open_use_cases(settings: Settings, say: Say) -> Iterator[UseCases]:
    """The use cases over an open store and a loaded model; `say` takes a line for people at each step.

    Raises: StartError.
    """
    clock = SystemClock()
    with ExitStack() as stack:
        # Our matrices are small; a second BLAS thread waits more than it works: 27 texts/s embedded instead of 38.
        stack.enter_context(threadpool_limits(limits=1, user_api="blas"))
        store.require_free(settings.data_dir)  # before a model is fetched and loaded in vain
        recorded = store.recorded_model(settings.data_dir)  # first: a directory that cannot be read is said at once
        counter = _counter(settings)
        model = _choose_model(settings, recorded, say)
        embedder = stack.enter_context(closing(models.open_embedder(model, settings.models_dir, settings.workers)))
        say(f"model {model.name}, {embedder.space.dim} dimensions, space {embedder.space.id}")
        opened = stack.enter_context(closing(_open_store(settings, embedder.space, clock, say)))
        say(f"store {settings.data_dir}, {opened.status().project_count} projects")
        # Stored counts are estimates: a file that counts prompts may be another one tomorrow.
        preparation = Preparation(embedder, EstimatedTokens(), make_id)
        reranker = _open_reranker(settings, clock, say)
        cross_encode = CrossEncode(opened, reranker, CrossEncoding[settings.cross_encoder.upper()], clock)
        ask_intent = stack.enter_context(_ask_intent(settings, clock, say))
        uncached = Recall(opened, embedder, clock, cross_encode, ask_intent)
        recall = CachedRecall(uncached, opened, embedder.space.id, clock)
        entries, find_references = Entries(opened), ProjectReferences()
        render = Render(recall, opened, counter, clock, RenderTurn(opened, entries, find_references))
        learn_with = partial(LearnKeywords, opened, entries, uncached, find_references)
        background, learner_status = stack.enter_context(_background(settings, opened, learn_with, clock, say))
        observe = Observe(opened, background.seen)

        def follow(follower: Callable[[str, int], None]) -> None:
            opened.follow(follower)
            background.follow(follower)

        yield UseCases(
            recall=recall,
            render=render,
            render_turn=render.prepare,
            learn=Learn(opened, embedder, preparation, clock),
            learn_turn=LearnTurn(opened, preparation, clock, make_id, followers=(observe.follow,)),
            search=Search(recall, SearchTrails(clock.monotonic)),
            explain=Explain(uncached, opened, embedder.space.calibration, clock),
            feedback=Feedback(opened),
            garden=Garden(opened, preparation, clock),
            projects=Projects(opened),
            export=Export(opened),
            import_parts=Import(opened, embedder, preparation, clock),
            sessions=Sessions(opened, clock, make_id),
            settings=ProjectsSettings(opened, embedder.space.calibration.near_twin_bar),
            learning=Learning(opened, entries, background.switched_on),
            observe=observe,
            scan=background.scan,
            status=Status(opened, embedder, clock, version("hummock"), _advice(model), learner_status),
            follow=follow,
        )


def serve(settings: Settings, say: Say, on_listening: Callable[[Address], None]) -> None:
    """Serve until SIGTERM or SIGINT, then finish what runs and close.

    Args:
        settings: Where and on what.
        say: Takes a line for people at each step.
        on_listening: Told the address, with the port that was chosen, once calls are let in.

    Raises: StartError.
    """
    address = f"unix:{settings.unix_socket}" if settings.unix_socket else f"{settings.host}:{settings.port}"

    def listening(bound: Address) -> None:
        on_listening(bound)
        # Few recalls need it, so that a start need not wait for it; the first Learn would.
        Thread(target=warm_texts, name="warm", daemon=True).start()

    with open_use_cases(settings, say) as use_cases, _gates(settings) as gates:
        # What start-up has made stays: the collector need not look through it during calls.
        gc.freeze()
        gc.enable()
        asyncio.run(
            serve_calls(
                use_cases,
                gates,
                address,
                allow_remote_plaintext=settings.allow_remote_plaintext,
                on_listening=listening,
            )
        )


@contextmanager
def _gates(settings: Settings) -> Iterator[Gates]:
    with (
        ThreadPoolExecutor(settings.workers, thread_name_prefix="read") as reads,
        ThreadPoolExecutor(WRITE_WORKERS, thread_name_prefix="write") as writes,
    ):
        yield Gates(
            reads=Gate(reads, workers=settings.workers, waiting_limit=settings.waiting_calls),
            writes=Gate(writes, workers=WRITE_WORKERS, waiting_limit=settings.waiting_calls),
        )


def _choose_model(settings: Settings, recorded: str | None, say: Say) -> models.EmbeddingModel:
    """The model that the directory was made with, else the configured one; fetched when it is not there.

    Files that are there are never replaced behind the user's back: loading them says when they were altered.
    """
    name = recorded if recorded is not None and settings.model == models.AUTO else settings.model
    wanted = models.candidates(name, settings.models_dir)
    here = models.that_will_do(wanted, settings.models_dir)
    return here or models.pull_first(wanted, settings.models_dir, say)


def _open_reranker(settings: Settings, clock: Clock, say: Say) -> Reranker | None:
    """The cross-encoder, fetched when it is not there; None where the settings want none."""
    if settings.cross_encoder == "off":
        return None
    model = models.find_reranker(settings.cross_encoder_model, settings.models_dir)
    if not models.is_here(model, settings.models_dir):
        models.pull(model, settings.models_dir, say)
    reranker = models.load_reranker(model, settings.models_dir / model.name, clock)
    say(f"cross-encoder {reranker.name}, from {reranker.least_s * 1000:.1f} ms a pair")
    return reranker


@contextmanager
def _llm(chosen: LlmSettings, clock: Clock) -> Iterator[OpenAiCompatible | None]:
    """The configured language model; None where there is none. Nothing is sent before somebody asks."""
    if not chosen.is_set:
        yield None
        return
    from hummock.llm import Endpoint, OpenAiCompatible  # few have one, and it brings an HTTP client

    endpoint = Endpoint(
        base_url=chosen.base_url,
        model=chosen.model,
        timeout_s=chosen.timeout_s,
        api_key=chosen.api_key.get_secret_value(),
    )
    with closing(OpenAiCompatible(endpoint, clock)) as model:
        yield model


@contextmanager
def _ask_intent(settings: Settings, clock: Clock, say: Say) -> Iterator[AskIntent]:
    """Intents by the configured language model, if there is one."""
    with (
        ThreadPoolExecutor(LLM_WORKERS, thread_name_prefix="llm") as executor,
        _llm(settings.llm, clock) as model,
    ):
        if model is not None:
            say(f"language model {settings.llm.model}, intents by default: {settings.intent}")
        yield AskIntent(model, executor, IntentMode[settings.intent.upper()], clock)


@contextmanager
def _background(
    settings: Settings,
    opened: store.EmbeddedStore,
    learn_with: Callable[[KeywordLearner], LearnKeywords],
    clock: Clock,
    say: Say,
) -> Iterator[tuple[BackgroundLearner, Callable[[], LearnerStatus]]]:
    """What learns beside the calls, at work, and how it is doing.

    It has a connection of its own, so that what it asks delays no intent.
    """
    chosen = settings.learning_llm if settings.learning_llm.is_set else settings.llm
    with ExitStack() as stack:
        model = stack.enter_context(_llm(chosen, clock))
        learner = LearnOffline(opened) if model is None else AskKeywords(model, clock)
        say(f"keywords are learnt {'from what is observed' if model is None else f'by {chosen.model}'}")
        background = stack.enter_context(closing(BackgroundLearner(learn_with(learner), clock)))
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


def _counter(settings: Settings) -> TokenCounter:
    try:
        return counter_of(settings.tokenizer_file)
    except (OSError, ValueError) as error:
        raise StartError(f"tokenizer_file: {error}") from error


def _open_store(settings: Settings, space: EmbeddingSpace, clock: Clock, say: Say) -> store.EmbeddedStore:
    return store.open_store(
        settings.data_dir,
        space=space,
        clock=clock,
        map_bytes=settings.storage.map_bytes,
        quota_bytes=settings.storage.quota_bytes,
        memory_budget_bytes=settings.storage.memory_budget_bytes,
        say=say,
    )


def _advice(model: models.EmbeddingModel) -> str:
    """What could be better about the model; empty when there is nothing."""
    better = models.AUTO_ORDER[0]
    if "han" not in model.scripts:
        lack = "knows no Chinese; Chinese memories are found by their words alone"
    elif model == better.first:
        lack = "knows little English and code"
    else:
        return ""
    return (
        f"{model.name} {lack}. A new data directory made with {better.name} (`hummock models pull {better.name}`) "
        "knows both languages and code"
    )
