"""A real server on a real socket in front of use cases that tests choose."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc import aio

from hummock.core import session as core
from hummock.core.activity import ProcessLoad
from hummock.core.memory import Changes, Deleted, EventPage, Filter, LearnCommand, Learned, Memory, Origin, Updated
from hummock.core.project import Project, Stars
from hummock.core.recall import Recalled, RecallQuery
from hummock.core.render import Rendered, RenderQuery
from hummock.core.settings import ProjectSettings, SettingsShown
from hummock.memories.garden import Garden
from hummock.ports.store import Page
from hummock.ports.writes import Written
from hummock.recall.cache import Answer
from hummock.rpc.admission import AdmissionQueue
from hummock.rpc.lanes import Lanes, inline_queue
from hummock.rpc.methods import UseCases
from hummock.rpc.server import Access, Server
from tests.rpc import samples
from tests.rpc.fixed_learning import FixedLearning, FixedScan, observe

Asked = TypeVar("Asked")
Given = TypeVar("Given")
LOOPBACK = "127.0.0.1:0"
CLIENT_OPTIONS = (("grpc.max_send_message_length", 64 << 20), ("grpc.max_receive_message_length", 16 << 20))


@dataclass
class FixedGarden(Garden):
    """A garden that notes what it was asked and answers with the samples."""

    asked: list[tuple[Any, ...]] = field(default_factory=list)
    memories: dict[str, Memory] = field(default_factory=lambda: {samples.MEMORY.id: samples.MEMORY})
    pages: Callable[[int, int], Page] = lambda after, limit: Page(memories=(samples.MEMORY,), next_after=None)
    event_pages: Callable[[int], EventPage] = lambda after: EventPage(events=(), seq=after)

    def get(self, project: str, ids: Sequence[str], min_seq: int, *, full: bool) -> list[Memory | None]:
        self.asked.append((project, tuple(ids), min_seq, full))
        return [self.memories.get(memory_id) for memory_id in ids]

    def memory_count(self, project: str) -> int:
        return len(self.memories)

    def stars(self, project: str, after: int, limit: int) -> Stars:
        return Stars()

    def stars_of(self, project: str, ids: Sequence[str]) -> Stars:
        return Stars()

    def superseded_by(self, project: str, memories: Iterable[Memory | None]) -> Mapping[str, tuple[str, ...]]:
        return {}

    def page(
        self,
        project: str,
        where: Filter,
        after: int,
        limit: int,
        *,
        full: bool,
        newest_first: bool = False,
        contains: str = "",
    ) -> Page:
        self.asked.append((project, where, after, limit, full, newest_first, contains))
        return self.pages(after, limit)

    def seq(self, project: str) -> int:
        return samples.PROJECT.seq

    def events(self, project: str, after: int, where: Filter, *, full: bool) -> EventPage:
        self.asked.append((project, after, where, full))
        return self.event_pages(after)

    def update(self, project: str, request_id: str, memory_id: str, changes: Changes, fingerprint: bytes) -> Updated:
        self.asked.append((project, request_id, memory_id, changes, fingerprint))
        return samples.UPDATED

    def delete(self, project: str, request_id: str, ids: Sequence[str], fingerprint: bytes) -> Deleted:
        self.asked.append((project, request_id, tuple(ids), fingerprint))
        return samples.DELETED


@dataclass
class FixedProjects:
    """Projects with these names, in the order of their bytes."""

    names: tuple[str, ...] = ("loan",)
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    def stored(self, name: str) -> Project:
        return self.get(name)

    def require(self, name: str, *, allow_stale: bool = False) -> None:
        self.stored(name)

    def get(self, name: str) -> Project:
        return replace(samples.PROJECT, name=name)

    def page(self, after: str, limit: int) -> list[Project]:
        behind = [name for name in self.names if name.encode() > after.encode()]
        return [replace(samples.PROJECT, name=name) for name in behind[:limit]]

    def update(
        self,
        name: str,
        request_id: str,
        tech_stack: tuple[str, ...] | None,
        path: str | None,
        origin: Origin,
        fingerprint: bytes,
    ) -> Project:
        self.asked.append((name, request_id, tech_stack, path, origin, fingerprint))
        return replace(samples.PROJECT, name=name)


@dataclass
class FixedSettings:
    """Settings that answer with the samples and note what they were asked."""

    asked: list[tuple[Any, ...]] = field(default_factory=list)

    def get(self, project: str) -> SettingsShown:
        self.asked.append((project,))
        return samples.SETTINGS

    def change(
        self, project: str, request_id: str, values: ProjectSettings, paths: Collection[str], fingerprint: bytes
    ) -> SettingsShown:
        self.asked.append((project, request_id, values, paths, fingerprint))
        return samples.SETTINGS


SESSION = core.Session(id="s", title="还款方式", create_time=1.0, update_time=2.0, message_count=1)
MESSAGE = core.SessionMessage(
    id="m", role=core.PromptRole.USER, content="还款方式", raw="", send_time=2.0, position=1, memory_id="u"
)


class FixedSessions:
    """Stands in for the use case."""

    def active(self, project: str) -> core.Active:
        return core.Active(session=SESSION, is_new=False)

    def create(self, asked: core.CreateSession) -> core.WrittenSession:
        return core.WrittenSession(session=SESSION, seq=1)

    def get(self, project: str, session_id: str) -> core.Session:
        return SESSION

    def page(self, project: str, behind: int | None, limit: int, *, archived: bool) -> core.SessionPage:
        return core.SessionPage(sessions=(SESSION,), next_behind=None)

    def change(self, asked: core.ChangeSession) -> core.WrittenSession:
        return core.WrittenSession(session=SESSION, seq=2)

    def delete(self, asked: core.DeleteSession) -> core.DeletedSession:
        return core.DeletedSession(message_count=1, seq=3)

    def append(self, asked: core.AppendMessage) -> core.AppendedMessage:
        return core.AppendedMessage(message_id=asked.message_id or "m", position=1, seq=4)

    def messages(
        self, project: str, session_id: str, before: int | None, limit: int, *, characters: int | None, most_bytes: int
    ) -> core.MessagePage:
        return core.MessagePage(messages=(MESSAGE,), has_before=False)

    def position_before(self, project: str, session: core.Session, newest: int, most_bytes: int) -> int:
        return max(0, session.last_position - newest)

    def news(self, project: str, session: core.Session, position: int, revision: int) -> FixedNews:
        return FixedNews(position)


class FixedNews:
    """Stands in for what comes of a session: its message, where that stands behind the position."""

    is_current = True
    revision = 0

    def __init__(self, position: int) -> None:
        self.position = position

    def read(self, most_bytes: int) -> tuple[tuple[core.SessionMessage, ...], tuple[core.SessionMessage, ...]]:
        appended = (MESSAGE,) if self.position < MESSAGE.position else ()
        self.position = max(self.position, MESSAGE.position)
        return appended, ()


class FixedMessages:
    """Stands in for the use case that changes messages."""

    def update(self, asked: core.UpdateMessage) -> Written[core.UpdatedMessage]:
        updated = core.UpdatedMessage(position=1, memory_id="u", held_for=(), deleted_count=0)
        return Written(seq=5, reply=updated)

    def delete(self, asked: core.DeleteMessage) -> Written[core.DeletedMessages]:
        return Written(seq=6, reply=core.DeletedMessages(deleted_count=1))


class Noted(Generic[Asked, Given]):
    """A use case that notes what it is asked, and answers with a sample."""

    def __init__(self, answer: Callable[[Asked], Given]) -> None:
        self.asked: list[Asked] = []
        self._answer = answer

    def __call__(self, asked: Asked) -> Given:
        self.asked.append(asked)
        return self._answer(asked)


def use_cases(**chosen: Any) -> UseCases:
    """Use cases that answer with the samples, but for those chosen. A Learn that is chosen answers at once."""
    learn: Callable[[LearnCommand], Learned] = chosen.pop("learn", samples.learned)
    recall: Callable[[RecallQuery], Recalled] = chosen.pop("recall", samples.recalled)
    fixed: dict[str, Any] = {
        "recall": recall if hasattr(recall, "inline") else OnWorkers(recall),
        "render": FixedRender(chosen.pop("render", samples.rendered)),
        "learn": lambda command: known(learn(command)),
        "learn_turn": samples.learned_turn,
        "search": samples.searched,
        "explain": samples.explained,
        "feedback": samples.feedback_noted,
        "garden": FixedGarden(),
        "forget": samples.Forgotten(),
        "review": samples.Reviewed(),
        "projects": FixedProjects(),
        "export": samples.Exported(),
        "import_parts": samples.imported,
        "sessions": FixedSessions(),
        "messages": FixedMessages(),
        "learning": FixedLearning(),
        "observe": observe,
        "scan": lambda project, scope, chosen: FixedScan(),
        "settings": FixedSettings(),
        "status": samples.status,
        "embedding_status": lambda: samples.status().embedding,
        "follow": lambda follower: None,
        "load": ProcessLoad,
        "trouble": lambda: "",
    }
    return UseCases(**(fixed | chosen))


def known(learned: Learned) -> Future[Learned]:
    """A future that has its result already."""
    said: Future[Learned] = Future()
    said.set_result(learned)
    return said


@dataclass(frozen=True, slots=True)
class FixedRender:
    """A rendering, which counts nothing."""

    render: Callable[[RenderQuery], Rendered]

    def __call__(self, query: RenderQuery) -> Rendered:
        return self.render(query)

    def prepare(self, query: RenderQuery) -> Callable[[], Rendered]:
        return partial(self.render, query)


@dataclass(frozen=True, slots=True)
class OnWorkers:
    """A recall that the event loop never answers itself."""

    recall: Callable[[RecallQuery], Recalled]

    def __call__(self, query: RecallQuery) -> Recalled:
        return self.recall(query)

    def answer(self, query: RecallQuery) -> Answer:
        return samples.fresh(self.recall(query))

    def inline(self, query: RecallQuery) -> None:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A server that serves, and a channel to it."""

    server: Server
    lanes: Lanes
    channel: aio.Channel

    async def raw(self, method: str, data: bytes) -> bytes:
        """Calls a unary method with bytes."""
        call: Any = self.channel.unary_unary(f"/hummock.v1.{method}")
        reply = await call(data)
        assert isinstance(reply, bytes)
        return reply


@asynccontextmanager
async def edge(
    chosen: UseCases | None = None,
    *,
    workers: int = 2,
    waiting_limit: int = 256,
    address: str = LOOPBACK,
    opened: bool = True,
    access: Access | None = None,
) -> AsyncIterator[Edge]:
    """A server with these use cases, opened unless said otherwise, and a channel to it."""
    async with AsyncExitStack() as stack:
        lanes = _lanes(stack, workers, waiting_limit)
        server = await Server.start(chosen or use_cases(), lanes, address, access=access or Access())
        stack.push_async_callback(server.stop, 0)
        if opened:
            await server.open()
        channel = await stack.enter_async_context(aio.insecure_channel(str(server.address), options=CLIENT_OPTIONS))
        yield Edge(server=server, lanes=lanes, channel=channel)


def _lanes(stack: AsyncExitStack, workers: int, waiting_limit: int) -> Lanes:
    reads, writes, streams = (stack.enter_context(ThreadPoolExecutor(workers)) for _ in range(3))
    return Lanes(
        read=AdmissionQueue(reads, workers=workers, waiting_limit=waiting_limit),
        write=AdmissionQueue(writes, workers=workers, waiting_limit=waiting_limit),
        stream=AdmissionQueue(streams, workers=workers, waiting_limit=waiting_limit),
        inline=inline_queue(waiting_limit),
    )


def one_worker(executor: ThreadPoolExecutor) -> Lanes:
    """Lanes that share an executor of one thread."""
    read, write, stream = (AdmissionQueue(executor, workers=1) for _ in range(3))
    return Lanes(read=read, write=write, stream=stream)


@contextmanager
def edge_on_a_thread(chosen: UseCases | None = None, **options: Any) -> Iterator[str]:
    """The address of a server whose event loop runs on another thread, for callers that block."""
    address: list[str] = []
    started, stop = threading.Event(), threading.Event()

    async def run() -> None:
        async with edge(chosen, **options) as serving:
            address.append(str(serving.server.address))
            started.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    try:
        assert started.wait(60), "the server did not start"
        yield address[0]
    finally:
        stop.set()
        thread.join()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A status with its details taken apart."""

    code: grpc.StatusCode
    message: str
    reason: str
    metadata: dict[str, str]
    violations: dict[str, str]
    retry_after_s: float | None


async def refused(call: Any) -> Refusal:
    """The refusal that the call ends with."""
    with pytest.raises(aio.AioRpcError) as caught:
        await call
    return refusal_of(caught.value)


def refusal_of(error: Any) -> Refusal:
    """The details of a status."""
    packed = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
    retry_after_s = None
    for detail in status_pb2.Status.FromString(packed).details:
        detail.Unpack(info)
        detail.Unpack(bad)
        if detail.Unpack(retry):
            retry_after_s = retry.retry_delay.ToNanoseconds() / 1e9
    return Refusal(
        code=error.code(),
        message=error.details(),
        reason=info.reason,
        metadata=dict(info.metadata),
        violations={violation.field: violation.description for violation in bad.field_violations},
        retry_after_s=retry_after_s,
    )
