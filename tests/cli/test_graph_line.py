"""What `hummock projects show` says of a project's graph."""

from __future__ import annotations

import pytest

from hummock_client.v1 import project_service_pb2 as pb
from hummock_tools.cli.projects import graph_line


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (pb.GraphStatus(state=pb.GRAPH_STATE_NONE), "none"),
        (pb.GraphStatus(state=pb.GRAPH_STATE_BUILDING, row_count=7), "building"),
        (
            pb.GraphStatus(state=pb.GRAPH_STATE_KEPT, row_count=60_000, recall=0.993, time_share=0.41),
            "kept, 60000 vectors, 0.993 of the nearest 50 in 0.41 of the time of sign bits",
        ),
        (
            pb.GraphStatus(
                state=pb.GRAPH_STATE_DROPPED, row_count=60_000, recall=0.9, time_share=0.4, reason="it finds too few"
            ),
            "dropped, 60000 vectors, 0.900 of the nearest 50 in 0.40 of the time of sign bits; it finds too few",
        ),
    ],
)
def test_a_graph_is_said_with_what_it_was_measured_to_do(graph: pb.GraphStatus, said: str) -> None:
    assert graph_line(graph) == said
