"""`hummock export`: all memories of a project as lines of JSON."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from google.protobuf.json_format import MessageToJson

from hummock.cli.connection import DEFAULT_TARGET, connect
from hummock.cli.meter import Meter
from hummock.cli.options import TargetOption, utf8
from hummock.v1 import project_service_pb2 as pb

__all__ = ["export"]


def export(
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="The project to write out.", callback=utf8)],
    vectors: Annotated[bool, typer.Option("--vectors", help="With vectors, for a service of the same model.")] = False,
    target: TargetOption = DEFAULT_TARGET,
) -> None:
    """Write all memories of a project to stdout, a line of JSON each, for `hummock import`."""
    request = pb.ProjectServiceExportRequest(project=project, with_vectors=vectors)
    done = 0
    with connect(target) as service, Meter() as meter:
        for message in service.projects.Export(request):
            for record in message.records:
                line = MessageToJson(record, ensure_ascii=False, indent=None)
                # UTF-8 whatever the terminal speaks.
                sys.stdout.buffer.write(line.encode() + b"\n")
                done += record.HasField("memory")
            meter.show("exporting", done, max(message.memory_count, done))
    sys.stdout.buffer.flush()
