"""Use cases over a real store, and what brings projects out of it and into it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from hummock.memories.preparation import Preparation
from hummock.projects.projects import Projects, Settings
from hummock.projects.transfer import Export, Import
from hummock.rpc.methods import UseCases
from hummock.rpc.project_transfer import export_project, import_lines
from hummock.text.tokens import EstimatedTokens
from hummock_client.v1 import memory_pb2, transfer_pb2
from hummock_client.v1 import project_service_pb2 as pb
from tests.rpc.edge import use_cases
from tests.workplace import Workplace, workplace


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A workplace, and what brings projects out of it and into it."""

    work: Workplace
    cases: UseCases

    def out(self, project: str, *, with_vectors: bool = False) -> list[transfer_pb2.TransferRecord]:
        return [record for message in self.messages(project, with_vectors) for record in message.records]

    def messages(self, project: str, with_vectors: bool = False) -> Iterator[pb.ExportProjectResponse]:
        request = pb.ExportProjectRequest(project=project, with_vectors=with_vectors)
        for message in export_project(self.cases, request):
            assert isinstance(message, pb.ExportProjectResponse)
            yield message

    def take(self, project: str, records: list[transfer_pb2.TransferRecord]) -> pb.ImportProjectResponse:
        lines = [pb.ImportLine(number=number, record=record) for number, record in enumerate(records, start=1)]
        return import_lines(self.cases, pb.ImportProjectRequest(project=project, lines=lines))


@contextmanager
def port() -> Iterator[Port]:
    with tempfile.TemporaryDirectory() as name, workplace(Path(name)) as work:
        numbers = count(1000)
        preparation = Preparation(work.embedder, EstimatedTokens(), make_id=lambda: f"m{next(numbers)}")
        cases = use_cases(
            projects=Projects(work.store),
            settings=Settings(work.store, near_twin_bar=0.9),
            export=Export(work.store),
            import_parts=Import(work.store, work.embedder, preparation, work.clock, work.backfill.wake),
        )
        yield Port(work=work, cases=cases)


def memory(content: str, memory_id: str = "a", **more: object) -> transfer_pb2.TransferRecord:
    sent = memory_pb2.Memory(id=memory_id, kind=memory_pb2.MEMORY_KIND_NOTE, content=content)
    return transfer_pb2.TransferRecord(memory=transfer_pb2.TransferMemory(memory=sent, **more))  # type: ignore[arg-type] # fields
