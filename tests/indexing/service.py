"""A service in memory that keeps what it is sent, for faults that the real one does not have."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc

from hummock.core.errors import InvalidRequest
from hummock.rpc.status import to_proto
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory_pb
from hummock_client.v1 import project_service_pb2 as project_pb


class KeptMemories:
    """Memories by project and id; `refuses` says of a memory whether its batch fails, `cut_after` ends a stream."""

    def __init__(self) -> None:
        self.memories: dict[str, dict[str, pb.Memory]] = {}
        self.batches: list[context_pb.LearnRequest] = []
        self.refuses: Callable[[pb.Memory], bool] = lambda memory: False
        self.cut_after: int | None = None
        self.infos: dict[str, project_pb.ProjectInfo] = {}
        self.updates: list[project_pb.UpdateProjectRequest] = []

    def learn_stream(
        self, requests: Iterator[context_pb.LearnStreamRequest], context: grpc.ServicerContext
    ) -> Iterator[context_pb.LearnStreamResponse]:
        stored = 0
        for place, request in enumerate(requests):
            if place == self.cut_after:
                context.abort(grpc.StatusCode.UNAVAILABLE, "the server is going away")
            batch = request.learn
            self.batches.append(batch)
            if any(self.refuses(memory) for memory in batch.memories):
                failed = to_proto(InvalidRequest("memories[0]", "no"))
                yield context_pb.LearnStreamResponse(batch_index=place, failed=failed, stored_count=stored)
                continue
            self.memories.setdefault(batch.project, {}).update({memory.id: memory for memory in batch.memories})
            stored += len(batch.memories)
            outcome = context_pb.LearnResponse(seq=place)
            yield context_pb.LearnStreamResponse(batch_index=place, learnt=outcome, stored_count=stored)

    def list(
        self, request: memory_pb.ListMemoriesRequest, context: grpc.ServicerContext
    ) -> memory_pb.ListMemoriesResponse:
        wanted = [
            memory for memory in self.memories.get(request.project, {}).values() if _passes(memory, request.filter)
        ]
        first = int(request.page_token or 0)
        page = wanted[first : first + request.page_size]
        rest = first + len(page) < len(wanted)
        shown = ("id", "kind", "title", "tags", "source_hash", "metadata")
        return memory_pb.ListMemoriesResponse(
            memories=[pb.Memory(**{name: getattr(each, name) for name in shown}) for each in page],
            next_page_token=str(first + len(page)) if rest else "",
        )

    def delete(
        self, request: memory_pb.DeleteMemoriesRequest, context: grpc.ServicerContext
    ) -> memory_pb.DeleteMemoriesResponse:
        held = self.memories.get(request.project, {})
        removed = [held.pop(key) for key in request.ids if key in held]
        return memory_pb.DeleteMemoriesResponse(deleted_count=len(removed))

    def project(
        self, request: project_pb.GetProjectRequest, context: grpc.ServicerContext
    ) -> project_pb.GetProjectResponse:
        if request.project not in {*self.infos, *self.memories}:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such project")
        return project_pb.GetProjectResponse(project=self._project(request.project))

    def update(
        self, request: project_pb.UpdateProjectRequest, context: grpc.ServicerContext
    ) -> project_pb.UpdateProjectResponse:
        """Updates project information like the service: fields with origin MANUAL stay."""
        self.updates.append(request)
        info = self.infos.setdefault(request.project, project_pb.ProjectInfo())
        for name in request.update_mask.paths:
            if getattr(info, f"{name}_origin") != pb.ORIGIN_MANUAL:
                info.ClearField(name)  # type: ignore[arg-type] # a path of the mask is a field's name
                info.MergeFrom(project_pb.ProjectInfo(**{name: getattr(request.info, name)}))
        return project_pb.UpdateProjectResponse(project=self._project(request.project))

    def _project(self, name: str) -> project_pb.ProjectDetails:
        return project_pb.ProjectDetails(name=name, info=self.infos.get(name))


def _passes(memory: pb.Memory, wanted: pb.MemoryFilter) -> bool:
    return (
        memory.kind in wanted.kinds
        and memory.origin in wanted.origins
        and all(tag in memory.tags for tag in wanted.tags)
    )


@contextmanager
def serving(kept: KeptMemories) -> Iterator[grpc.Channel]:
    """A channel to a server on loopback that serves `kept`."""
    server = grpc.server(ThreadPoolExecutor(max_workers=2))
    unary, stream = grpc.unary_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
    for service, name, form, method, request, response in (
        (
            "Context",
            "LearnStream",
            stream,
            kept.learn_stream,
            context_pb.LearnStreamRequest,
            context_pb.LearnStreamResponse,
        ),
        ("Memory", "ListMemories", unary, kept.list, memory_pb.ListMemoriesRequest, memory_pb.ListMemoriesResponse),
        (
            "Memory",
            "DeleteMemories",
            unary,
            kept.delete,
            memory_pb.DeleteMemoriesRequest,
            memory_pb.DeleteMemoriesResponse,
        ),
        ("Project", "GetProject", unary, kept.project, project_pb.GetProjectRequest, project_pb.GetProjectResponse),
        (
            "Project",
            "UpdateProject",
            unary,
            kept.update,
            project_pb.UpdateProjectRequest,
            project_pb.UpdateProjectResponse,
        ),
    ):
        handler = form(method, request.FromString, response.SerializeToString)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(f"hummock.v1.{service}Service", {name: handler}),)
        )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel
    finally:
        server.stop(grace=None).wait()
