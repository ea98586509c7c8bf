"""Synchronises a project of the service with a folder, without touching the memories of other roots.

The service is spoken to as any client does. What it lists decides what is sent: a run that was cut short, or that
another machine made, costs nothing twice, and an unchanged repository sends nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import grpc
from google.protobuf.field_mask_pb2 import FieldMask

from hummock_client.errors import describe, status_error
from hummock_client.requests import new_request_id
from hummock_client.streaming import batches
from hummock_client.v1 import context_service_pb2 as pb
from hummock_client.v1 import memory_pb2, memory_service_pb2
from hummock_client.v1 import project_service_pb2 as projects_pb
from hummock_client.v1.context_service_pb2_grpc import ContextServiceStub
from hummock_client.v1.memory_service_pb2_grpc import MemoryServiceStub
from hummock_client.v1.project_service_pb2_grpc import ProjectServiceStub
from hummock_tools.indexing.folder import Folder, Indexed, OtherIndex, StoredFragment, made_names, root_of
from hummock_tools.indexing.project_info import MOST_NAMED, Made
from hummock_tools.indexing.skips import OnSkip, SkipReason
from hummock_tools.indexing.tree import ROOT, Changes, Guessed, OnFile, WalkCounts, index_name, shown_root

Stage: TypeAlias = Literal["read", "send", "delete"]

_PAGE_MEMORIES = 1000
_DELETE_MEMORIES = 512
_UNARY_TIMEOUT_S = 60.0
_FIELDS = ("tech_stack", "path")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a stage: files read, memories sent or deleted; `total` is None while it is not known."""

    stage: Stage
    done: int
    total: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A batch that the service refused: which memories, and its reason for clients and for people."""

    ids: tuple[str, ...]
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InfoReport:
    """Project information after a run, and what the manifests name.

    `kept` has "tech_stack" or "path" if a person had set another value than was found.
    """

    tech_stack: tuple[str, ...]
    path: str
    made: Made
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """Result of a run.

    Attributes:
        root: The root that the folder belongs to, and `part`, the folder below it; empty for all of the root.
        name: Name of the root's index in the project; the first index has none.
        nested: Paths of repositories inside the folder that it leaves out, and that are not indexed in the project.
        taken: Paths of files with memories that were not sent: another index has their ids.
        undecided: Paths of files that were left out because no encoding was likely, or several were.
        info: None where nothing was found to index.
    """

    project: str
    root: str
    part: str
    name: str
    others: tuple[OtherIndex, ...]
    nested: tuple[str, ...]
    taken: tuple[str, ...]
    guessed: tuple[Guessed, ...]
    undecided: tuple[str, ...]
    walked: WalkCounts
    fragments: int
    domain_entries: int
    sent: int
    deleted: int
    unchanged: int
    failures: tuple[Failure, ...]
    secrets: tuple[pb.SecretsFound, ...]
    without_grammar: tuple[str, ...]
    info: InfoReport | None


OnProgress: TypeAlias = Callable[[Progress], None]


def sync(
    path: Path, project: str, channel: grpc.Channel, *, name: str = "", on_progress: OnProgress, on_skip: OnSkip
) -> SyncReport:
    """Index a folder into the project, which it creates: send what changed, then delete what vanished.

    What the manifests say it is made with, and where it lies, becomes the project's information, unless a person has
    said otherwise. The technologies of several roots of one project add up. `name` is put before all paths; empty keeps
    the index's present one, and further roots get one each. `on_skip` is not called for what git ignores.

    Raises:
        ValueError: `name` is no single part of a path, or another folder's.
        FileNotFoundError, NotADirectoryError: `path` is not a directory.
        grpc.RpcError: The service cannot be reached or refuses the project. What it has acknowledged is kept, and the
            next run goes on from there.
    """
    folder = Folder(path, name, on_file=counting(on_progress), on_skip=on_skip)
    folder.look()
    return bring(folder, project, channel, on_progress=on_progress)


def preview(
    path: Path, project: str, channel: grpc.Channel, *, name: str = "", on_progress: OnProgress, on_skip: OnSkip
) -> tuple[Changes, WalkCounts]:
    """What `sync` would send and delete, and what it would leave out; raises its errors, and changes nothing."""
    folder = Folder(path, name, on_file=counting(on_progress), on_skip=on_skip)
    folder.look()
    indexed = _Service(project=project, channel=channel).indexed()
    folder.settle(indexed)
    plan, _ = folder.plan(indexed)
    return plan, folder.tree.counts


def counting(on_progress: OnProgress) -> OnFile:
    """Report indexed files as progress."""
    return lambda files: on_progress(Progress(stage="read", done=files, total=None))


def bring(folder: Folder, project: str, channel: grpc.Channel, *, on_progress: OnProgress) -> SyncReport:
    """Synchronise the project with the folder as last read; raises the errors of `sync`."""
    service = _Service(project=project, channel=channel)
    indexed = service.indexed()
    folder.settle(indexed)
    if folder.tree.name not in indexed.owners:
        # Reading takes a while, in which another root may have begun an index of this name.
        indexed = service.indexed()
        folder.settle(indexed)
    while True:
        tree, begins = folder.tree, folder.tree.name not in indexed.owners
        report = _brought(folder, indexed, service, on_progress)
        if not begins or not report.sent:
            return report
        # Or it did so while this one was sent. Then the later one takes what it sent away again.
        indexed = service.indexed()
        folder.settle(indexed)
        if folder.tree is tree:
            return report


def remove(path: Path, project: str, channel: grpc.Channel, *, name: str = "", on_progress: OnProgress) -> int:
    """Delete the index of a root, which need not be there any more, or that of a name; how many memories it had.

    Raises: ValueError, where the project has no such index, or several of the root and no name is given; grpc.RpcError.
    """
    service = _Service(project=project, channel=channel)
    indexed = service.indexed()
    resolved = path.resolve()
    root = root_of(resolved)
    names = {name} if name else {indexed.name_of(resolved), *made_names(resolved)}
    ids = [each.id for each in indexed.held if each.name in names and (name or each.root == root)]
    if not ids:
        roots = ", ".join(sorted(filter(None, indexed.roots))) or "nothing"
        raise ValueError(f"{name or root} is no root that {project} has an index of; indexed is {roots}")
    deleted = service.delete(ids, on_progress)
    service.forget_path(root)
    return deleted


def _brought(folder: Folder, indexed: Indexed, service: "_Service", on_progress: OnProgress) -> SyncReport:
    tree = folder.tree
    plan, others = folder.plan(indexed)
    memories = tree.memories(plan.send, root_of(tree.root))
    failures, secrets = service.send(memories, on_progress)
    deleted = service.delete(plan.delete, on_progress)
    local, domains = len(tree.hashes()), tree.domain_entries()
    adds_up = bool(others or tree.name)
    info = service.describe(tree.made(), shown_root(tree), adds_up=adds_up) if local else None
    tree.release()
    known = {each.root for each in others}
    inner = (tree.root / path for path, reason in tree.left_out if reason == SkipReason.NESTED_REPOSITORY)
    nested = (str(each) for each in inner if root_of(each) not in known)
    return SyncReport(
        project=service.project,
        root=str(tree.root),
        part=tree.part.rstrip("/"),
        name=tree.name,
        others=others,
        nested=tuple(sorted(nested)),
        taken=tuple(sorted(tree.paths_of(plan.taken))),
        guessed=tuple(tree.guessed()),
        undecided=tuple(path for path, reason in tree.left_out if reason == SkipReason.UNDECIDED),
        walked=tree.counts,
        fragments=local - domains,
        domain_entries=domains,
        sent=len(memories) - sum(len(failure.ids) for failure in failures),
        deleted=deleted,
        unchanged=plan.unchanged,
        failures=tuple(failures),
        secrets=_summed(secrets),
        without_grammar=tuple(tree.without_grammar()),
        info=info,
    )


class _Service:
    """The project at the service, as far as the indexer's memories go."""

    def __init__(self, *, project: str, channel: grpc.Channel) -> None:
        self.project = project
        self._contexts = ContextServiceStub(channel)
        self._memories = MemoryServiceStub(channel)
        self._projects = ProjectServiceStub(channel)

    def indexed(self) -> Indexed:
        """The indexer's memories in the project."""
        held = list(self._listed())
        info = self._info() if any(not each.name and not each.root for each in held) else None
        is_indexers = info is not None and info.path_origin == memory_pb2.ORIGIN_INDEXER
        return Indexed(held, info.path if info is not None and is_indexers else "")

    def _listed(self) -> Iterator[StoredFragment]:
        request = memory_service_pb2.ListMemoriesRequest(
            project=self.project,
            filter=memory_pb2.MemoryFilter(
                kinds=[memory_pb2.MEMORY_KIND_CODE_FRAGMENT, memory_pb2.MEMORY_KIND_DOMAIN_KNOWLEDGE],
                origins=[memory_pb2.ORIGIN_INDEXER],
            ),
            page_size=_PAGE_MEMORIES,
            view=memory_pb2.MEMORY_VIEW_INDEX,
            # The first run makes the project.
            allow_missing=True,
        )
        while True:
            page = self._memories.ListMemories(request, timeout=_UNARY_TIMEOUT_S)
            for memory in page.memories:
                yield StoredFragment(
                    id=memory.id,
                    source_hash=memory.source_hash,
                    name=index_name(memory.tags),
                    root=memory.metadata.get(ROOT, ""),
                )
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def send(
        self, memories: Sequence[memory_pb2.Memory], on_progress: OnProgress
    ) -> tuple[list[Failure], list[pb.SecretsFound]]:
        """Learn the memories batch by batch, and return the refused batches and the secrets that were found."""
        if not memories:
            return [], []
        parts = list(batches(memories))
        learns = (pb.LearnRequest(project=self.project, request_id=new_request_id(), memories=part) for part in parts)
        requests = (pb.LearnStreamRequest(learn=learn) for learn in learns)
        failures: list[Failure] = []
        secrets: list[pb.SecretsFound] = []
        done = 0
        for answer in self._contexts.LearnStream(requests):
            batch = parts[answer.batch_index]
            done += len(batch)
            if answer.WhichOneof("outcome") == "failed":
                error, ids = status_error(answer.failed), tuple(memory.id for memory in batch)
                failures.append(Failure(ids=ids, reason=error.reason, message=describe(error, "")))
            secrets += [each for result in answer.learnt.results for each in result.secrets]
            on_progress(Progress(stage="send", done=done, total=len(memories)))
        return failures, secrets

    def delete(self, ids: Sequence[str], on_progress: OnProgress) -> int:
        """Delete memories by id; the number that were there."""
        deleted = 0
        for first in range(0, len(ids), _DELETE_MEMORIES):
            part = ids[first : first + _DELETE_MEMORIES]
            request = memory_service_pb2.DeleteMemoriesRequest(
                project=self.project, request_id=new_request_id(), ids=part
            )
            deleted += self._memories.DeleteMemories(request, timeout=_UNARY_TIMEOUT_S).deleted_count
            on_progress(Progress(stage="delete", done=first + len(part), total=len(ids)))
        return deleted

    def describe(self, made: Made, path: str, *, adds_up: bool) -> InfoReport:
        """Update the project's tech stack, adding to that of other roots or not, and path, if nobody else set them."""
        before = self._info()
        stack = made.tech_stack
        if adds_up:
            stack = tuple(dict.fromkeys((*before.tech_stack, *stack)))[:MOST_NAMED]
        wanted = projects_pb.ProjectInfo(tech_stack=stack, path=path)
        differing = [name for name in _FIELDS if getattr(wanted, name) and _differs(name, before, wanted)]
        now = self._say(wanted, differing) if differing else before
        return InfoReport(
            tech_stack=tuple(now.tech_stack),
            path=now.path,
            made=made,
            kept=tuple(name for name in differing if _differs(name, now, wanted)),
        )

    def forget_path(self, path: str) -> None:
        """Clear the project's path if an indexer set it."""
        before = self._info()
        if before.path == path and before.path_origin == memory_pb2.ORIGIN_INDEXER:
            self._say(projects_pb.ProjectInfo(), ["path"])

    def _info(self) -> projects_pb.ProjectInfo:
        """Stored information about the project; empty if the project does not exist."""
        request = projects_pb.GetProjectRequest(project=self.project)
        try:
            return self._projects.GetProject(request, timeout=_UNARY_TIMEOUT_S).project.info
        except grpc.RpcError as error:
            if isinstance(error, grpc.Call) and error.code() is grpc.StatusCode.NOT_FOUND:
                return projects_pb.ProjectInfo()
            raise

    def _say(self, info: projects_pb.ProjectInfo, names: Sequence[str]) -> projects_pb.ProjectInfo:
        request = projects_pb.UpdateProjectRequest(
            project=self.project,
            request_id=new_request_id(),
            info=info,
            update_mask=FieldMask(paths=names),
            origin=memory_pb2.ORIGIN_INDEXER,
        )
        return self._projects.UpdateProject(request, timeout=_UNARY_TIMEOUT_S).project.info


def _summed(secrets: Iterable[pb.SecretsFound]) -> tuple[pb.SecretsFound, ...]:
    counts: Counter[tuple[str, bool]] = Counter()
    for each in secrets:
        counts[each.kind, each.redacted] += each.count
    found = sorted(counts.items())
    return tuple(pb.SecretsFound(kind=kind, count=count, redacted=redacted) for (kind, redacted), count in found)


def _differs(name: str, one: projects_pb.ProjectInfo, other: projects_pb.ProjectInfo) -> bool:
    return bool(getattr(one, name) != getattr(other, name))
