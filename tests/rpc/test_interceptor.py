"""Authorisation: tokens and scopes before every method of a real server, streams too."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from hummock.access.authenticator import Authenticator, Exposure
from hummock.access.tokens import TokenFile
from hummock.core.access import Caller, Scope, Verb
from hummock.core.errors import StartError, Unavailable
from hummock.core.memory import Draft, LearnCommand, Learned
from hummock.core.project import Project
from hummock.rpc.interceptor import Interceptor
from hummock.rpc.policy import SERVICES, policy_of, projects_of
from hummock.rpc.server import Access
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import context_service_pb2_grpc, explain_pb2, memory_pb2, memory_service_pb2_grpc, recall_pb2
from hummock_client.v1 import memory_service_pb2 as memory_pb
from hummock_client.v1 import project_service_pb2 as project_pb
from tests.rpc import samples
from tests.rpc.edge import Edge, FixedProjects, edge, refusal_of, refused, use_cases

pytestmark = pytest.mark.timed

METHODS = [method for service in SERVICES for method in service.methods]
WITHOUT_PROJECT = {"ListProjects", "GetStatus"}
FOR_DECIDERS = {"ListReview"}
"""Reads of what nobody else is to read."""
Metadata = tuple[tuple[str, str], ...]


def token_of(directory: Path, *scopes: str, name: str = "t") -> Metadata:
    _, text = TokenFile(directory).create(name, [Scope.parse(scope) for scope in scopes], now_s=1.0)
    return (("authorization", f"Bearer {text}"),)


@asynccontextmanager
async def guarded(directory: Path, exposure: Exposure = Exposure.MACHINE, **more: Any) -> AsyncIterator[Edge]:
    access = Access(interceptor=Interceptor(Authenticator(directory, exposure)))
    async with edge(access=access, **more) as serving:
        yield serving


def call_of(channel: aio.Channel, method: Any, request: Message, metadata: Metadata) -> Any:
    """A call of whatever shape, as a stream of one."""
    name = f"/{method.containing_service.full_name}/{method.name}"
    any_shape: Any = channel.stream_stream(name)
    return any_shape(iter([request.SerializeToString()]), metadata=metadata)


def naming(method: Any, project: str) -> Message:
    """A request that names a project wherever it can, and is otherwise empty."""
    request: Message = GetMessageClass(method.input_type)()

    def fill(message: Any, above: tuple[str, ...]) -> None:
        for field in message.DESCRIPTOR.fields:
            if field.name == "project" and field.message_type is None:
                message.project = project
            elif field.message_type and not field.is_repeated and field.message_type.full_name not in above:
                inner: Any = type(getattr(message, field.name))()
                fill(inner, (*above, field.message_type.full_name))
                if inner.ByteSize():
                    getattr(message, field.name).CopyFrom(inner)

    fill(request, ())
    return request


async def status_of(call: Any) -> tuple[grpc.StatusCode, str]:
    try:
        async for _ in call:
            pass
    except aio.AioRpcError as error:
        return error.code(), refusal_of(error).reason
    return grpc.StatusCode.OK, ""


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_has_a_verb_and_names_its_project(method: Any) -> None:
    assert policy_of(method).verb in Verb
    assert bool(projects_of(naming(method, "shop"))) == (method.name not in WITHOUT_PROJECT)


def test_reads_of_the_contract_are_reads_and_nothing_else_is() -> None:
    from hummock.rpc.policy import is_read

    for method in METHODS:
        assert (policy_of(method).verb is Verb.READ) == (is_read(method) and method.name not in FOR_DECIDERS), (
            method.name
        )


async def silence() -> AsyncIterator[bytes]:
    """A caller who has nothing to say yet."""
    await asyncio.Event().wait()
    yield b""


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
async def test_no_method_answers_without_a_token_or_with_a_wrong_one(method: Any, tmp_path: Path) -> None:
    """X11."""
    token_of(tmp_path, "*:admin")
    async with guarded(tmp_path) as serving:
        for metadata in ((), (("authorization", "Bearer hmk_00_x"),)):
            # Not even garbage is looked at. Whoever may send more sends nothing: a write of gRPC's client to a call
            # that has ended is INTERNAL to it, now and then.
            name = policy_of(method).method
            any_shape: Any = serving.channel.stream_stream(name)
            one_message: Any = serving.channel.unary_stream(name)
            call = (
                any_shape(silence(), metadata=metadata)
                if method.client_streaming
                else one_message(b"\xff\xff", metadata=metadata)
            )
            assert await status_of(call) == (grpc.StatusCode.UNAUTHENTICATED, "TOKEN_INVALID")


async def test_a_call_without_a_token_never_waits_for_a_worker(tmp_path: Path) -> None:
    token_of(tmp_path, "*:admin")
    async with guarded(tmp_path, workers=1, waiting_limit=1) as serving:
        await refused(serving.raw("ContextService/Search", b"\xff"))
        assert serving.lanes.read.load.waiting == serving.lanes.read.load.running == 0


async def test_a_token_is_looked_at_once_in_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before gRPC takes in the message, so that no stranger's is kept."""
    looks: list[str | None] = []
    caller = Authenticator.caller

    def counted(self: Authenticator, authorization: str | None, *, is_over_http: bool = False) -> Caller:
        looks.append(authorization)
        return caller(self, authorization, is_over_http=is_over_http)

    monkeypatch.setattr(Authenticator, "caller", counted)
    ((_, token),) = metadata = token_of(tmp_path, "shop:read")
    async with guarded(tmp_path) as serving:
        call: Any = serving.channel.unary_unary("/hummock.v1.ContextService/Recall")
        await call(RECALL.SerializeToString(), metadata=metadata)
        await refused(call(RECALL.SerializeToString()))
    assert looks == [token, None]


RECALL = recall_pb2.RecallRequest(project="shop", query_text="q")
LEARN = context_pb.LearnRequest(project="shop", memories=[memory_pb2.Memory(content="x")])
ALLOWED = [
    ("ContextService/Recall", RECALL, "shop:read"),
    ("ContextService/Explain", explain_pb2.ExplainRequest(recall=RECALL, memory_id="m"), "shop:read"),
    ("ContextService/Learn", LEARN, "shop:learn"),
    ("MemoryService/GetMemory", memory_pb.GetMemoryRequest(project="shop", id=samples.MEMORY.id), "shop:read"),
    ("MemoryService/DeleteMemories", memory_pb.DeleteMemoriesRequest(project="shop", ids=["m1"]), "shop:learn"),
    ("ProjectService/ListProjects", project_pb.ListProjectsRequest(), "*:read"),
]


@pytest.mark.parametrize(("method", "request_", "scope"), ALLOWED, ids=[method for method, _, _ in ALLOWED])
async def test_a_scope_allows_its_project_and_verb_and_no_other(
    method: str, request_: Message, scope: str, tmp_path: Path
) -> None:
    """X11."""
    good = token_of(tmp_path, scope)
    project, _, verb = scope.partition(":")
    foreign = f"sho:{verb}" if project == "shop" else "shop*:admin"
    bad = [token_of(tmp_path, foreign, "other-*:admin", name="b")]
    if verb == "learn":
        bad.append(token_of(tmp_path, f"{project}:read", name="c"))
    async with guarded(tmp_path) as serving:
        call: Any = serving.channel.unary_unary(f"/hummock.v1.{method}")
        await call(request_.SerializeToString(), metadata=good)
        for metadata in bad:
            refusal = await refused(call(request_.SerializeToString(), metadata=metadata))
            assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")
            assert "hummock tokens create" in refusal.message
            assert refusal.metadata["verb"] == verb


@pytest.mark.parametrize(
    "method", [each for each in METHODS if each.name not in WITHOUT_PROJECT], ids=lambda method: method.name
)
async def test_a_foreign_project_and_a_missing_one_are_refused_alike(method: Any, tmp_path: Path) -> None:
    """Nothing is looked up for an unauthorised caller; an invalid request is refused before."""
    metadata = token_of(tmp_path, "mine:admin")
    async with guarded(tmp_path) as serving:
        said = {
            await status_of(call_of(serving.channel, method, naming(method, project), metadata))
            for project in ("loan", "never-made")
        }
        assert len(said) == 1
        ((code, _),) = said
        if method.name != "LearnStream":
            assert code in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.INVALID_ARGUMENT)


async def test_a_batch_of_a_foreign_project_is_not_stored_and_the_stream_goes_on(tmp_path: Path) -> None:
    stored: list[str] = []
    metadata = token_of(tmp_path, "shop:learn")

    def learn(command: Any) -> Any:
        stored.append(command.project)
        return samples.learned(command)

    async with guarded(tmp_path, chosen=use_cases(learn=learn)) as serving:
        call: Any = serving.channel.stream_stream("/hummock.v1.ContextService/LearnStream")
        batches = [
            context_pb.LearnStreamRequest(
                learn=context_pb.LearnRequest(project=project, memories=[memory_pb2.Memory(content="x")])
            ).SerializeToString()
            for project in ("other", "shop")
        ]
        replies = [
            context_pb.LearnStreamResponse.FromString(each) async for each in call(iter(batches), metadata=metadata)
        ]
        assert [each.HasField("failed") for each in replies] == [True, False]
        assert replies[0].failed.code == grpc.StatusCode.PERMISSION_DENIED.value[0]
    assert stored == ["shop"]


async def test_a_stream_of_batches_stores_no_more_when_its_token_is_revoked(tmp_path: Path) -> None:
    metadata = token_of(tmp_path, "shop:learn", name="w")
    async with guarded(tmp_path) as serving:
        open_stream: Any = serving.channel.stream_stream("/hummock.v1.ContextService/LearnStream")
        stream = open_stream(metadata=metadata)
        outcomes = []
        for turn in range(2):
            await stream.write(context_pb.LearnStreamRequest(learn=LEARN).SerializeToString())
            outcomes.append(context_pb.LearnStreamResponse.FromString(await stream.read()))
            if turn == 0:
                TokenFile(tmp_path).revoke("w", now_s=2.0)
        await stream.done_writing()
        assert [each.HasField("failed") for each in outcomes] == [False, True]
        assert outcomes[1].failed.code == grpc.StatusCode.UNAUTHENTICATED.value[0]


@dataclass
class Growing(FixedProjects):
    """A project in which more memories wait at each look."""

    def stored(self, name: str) -> Project:
        self.asked.append((name,))
        return replace(samples.PROJECT, name=name, pending_count=len(self.asked))


async def all_of(watch: Any) -> None:
    while isinstance(await watch.read(), bytes):
        pass


async def test_a_watch_ends_when_its_token_is_revoked(tmp_path: Path) -> None:
    """The next thing that it would tell is not told."""
    metadata = token_of(tmp_path, "loan:read", name="w")
    async with guarded(tmp_path, chosen=use_cases(projects=Growing())) as serving:
        call: Any = serving.channel.unary_stream("/hummock.v1.ProjectService/WatchProject")
        watch = call(project_pb.WatchProjectRequest(project="loan").SerializeToString(), metadata=metadata)
        assert isinstance(await watch.read(), bytes)
        TokenFile(tmp_path).revoke("w", now_s=2.0)
        # What was sent before is read; then it ends.
        assert (await refused(all_of(watch))).reason == "TOKEN_INVALID"


async def test_health_stays_open_and_reflection_is_a_setting(tmp_path: Path) -> None:
    token_of(tmp_path, "*:admin")
    for has_reflection in (True, False):
        access = Access(
            interceptor=Interceptor(Authenticator(tmp_path, Exposure.MACHINE)), has_reflection=has_reflection
        )
        async with edge(access=access) as serving:
            health = health_pb2_grpc.HealthStub(serving.channel)
            assert (await health.Check(health_pb2.HealthCheckRequest())).status == 1
            ask = reflection_pb2.ServerReflectionRequest(list_services="")
            info = reflection_pb2_grpc.ServerReflectionStub(serving.channel).ServerReflectionInfo(iter([ask]))
            code, _ = await status_of(info)
            assert code is (grpc.StatusCode.OK if has_reflection else grpc.StatusCode.UNIMPLEMENTED)


async def test_two_tokens_are_none(tmp_path: Path) -> None:
    good = token_of(tmp_path, "*:admin")
    async with guarded(tmp_path) as serving:
        call: Any = serving.channel.unary_unary("/hummock.v1.ContextService/Recall")
        refusal = await refused(call(RECALL.SerializeToString(), metadata=good * 2))
        assert (refusal.reason, refusal.message) == ("TOKEN_INVALID", "the call has two tokens; send one")


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]"])  # noqa: S104 # refused, that is the point
async def test_other_machines_are_let_in_with_tokens_alone(host: str, tmp_path: Path) -> None:
    """X11."""
    access = Access(interceptor=Interceptor(Authenticator(tmp_path, Exposure.NETWORK)), allow_remote_plaintext=True)
    with pytest.raises(StartError, match="hummock tokens create"):
        async with edge(access=access, address=f"{host}:0"):
            pass


@pytest.mark.parametrize(
    ("scope", "trusts"),
    [("p:learn", [0.4, 0.4, 0.1, 1.0]), ("p:index", [1.0, 0.9, 0.1, 1.0]), ("*:admin", [1.0, 0.9, 0.1, 1.0])],
)
async def test_who_may_not_index_is_hardly_believed_to_be_an_indexer(
    tmp_path: Path, scope: str, trusts: list[float]
) -> None:
    drafts: list[Draft] = []

    def learn(command: LearnCommand) -> Learned:
        drafts.extend(lesson.draft for lesson in command.lessons)
        return samples.learned(command)

    metadata = token_of(tmp_path, scope)
    indexer = memory_pb2.ORIGIN_INDEXER
    memories = [
        memory_pb2.Memory(content="a", origin=indexer),
        memory_pb2.Memory(content="b", origin=indexer, trust=0.9),
        memory_pb2.Memory(content="c", origin=indexer, trust=0.1),
        memory_pb2.Memory(content="d"),
    ]
    request = context_pb.LearnRequest(project="p", memories=memories)
    async with guarded(tmp_path, chosen=use_cases(learn=learn)) as serving:
        stub: Any = context_service_pb2_grpc.ContextServiceStub(serving.channel)
        await stub.Learn(request, metadata=metadata)
        async for _ in stub.LearnStream(iter([context_pb.LearnStreamRequest(learn=request)]), metadata=metadata):
            pass
    assert [draft.trust for draft in drafts] == trusts * 2


async def test_who_may_not_index_makes_no_memory_one_of_the_indexers(tmp_path: Path) -> None:
    metadata = token_of(tmp_path, "p:learn")
    request = memory_pb.UpdateMemoryRequest(
        project="p",
        memory=memory_pb2.Memory(id="m", origin=memory_pb2.ORIGIN_INDEXER),
        update_mask=FieldMask(paths=["origin"]),
    )
    async with guarded(tmp_path) as serving:
        stub: Any = memory_service_pb2_grpc.MemoryServiceStub(serving.channel)
        refusal = await refused(stub.UpdateMemory(request, metadata=metadata))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "SCOPE_MISSING")


async def test_who_may_not_do_it_does_not_wait_in_the_line_of_the_project(tmp_path: Path) -> None:
    mine, foreign = token_of(tmp_path, "p:read"), token_of(tmp_path, "other:read", name="b")
    kept, let_go = threading.Semaphore(0), threading.Event()

    def keep(_: object) -> NoReturn:
        kept.release()
        let_go.wait()
        raise Unavailable("kept for long enough")

    request = context_pb.RenderRequest(project="p", recall=recall_pb2.RecallRequest(project="p", query_text="q"))
    async with guarded(tmp_path, chosen=use_cases(render=keep), workers=2) as serving, asyncio.timeout(30):
        stub: Any = context_service_pb2_grpc.ContextServiceStub(serving.channel)
        calls = [refused(stub.Render(request, metadata=mine)) for _ in range(2)]
        keeping = [asyncio.ensure_future(call) for call in calls]
        for _ in keeping:
            await asyncio.to_thread(kept.acquire)
        assert (await refused(stub.Render(request, metadata=foreign))).reason == "SCOPE_MISSING"
        let_go.set()
        await asyncio.gather(*keeping)
