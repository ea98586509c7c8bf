"""Ways to ask a slice: the preset, the compared paths, and the parts of a user's settings that are switched off."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bench.eval.metrics import DEPTH
from hummock_client.v1 import recall_pb2


class RecallPath(StrEnum):
    """Method of finding and ordering candidates."""

    VECTOR = "vector"
    KEYWORD = "keyword"
    FUSED = "fused"
    RERANKED = "reranked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Settings for all questions of a slice.

    Attributes:
        preset: A name of `Preset` without its prefix.
        paths: Paths to ask; others have no row.
        is_shipped: True asks like a user: MMR and near-twins work as the preset says. Else both are off.
        top_k: Hits in the main group; None means what the preset says.
    """

    preset: str = "AGENT"
    paths: tuple[RecallPath, ...] = tuple(RecallPath)
    is_shipped: bool = False
    top_k: int | None = DEPTH

    def named(self, slice_name: str) -> str:
        """Name of a slice that is asked this way: `zh`, or `zh@chat` under another preset than AGENT."""
        return slice_name if self.preset == "AGENT" else f"{slice_name}@{self.preset.lower()}"


PATHS_COMPARED = Way()
"""Preset AGENT, every path alone and joined, nothing diversified."""

_JOINED = (RecallPath.FUSED, RecallPath.RERANKED)
AGENT = Way(paths=_JOINED, is_shipped=True)
CHAT = Way(preset="CHAT", paths=_JOINED, is_shipped=True)
CODE = Way(preset="CODE", paths=_JOINED, is_shipped=True)

SETTING = (
    "slices of other people's sets: preset AGENT (50 candidates a path, no decay), MMR and near-twins off, titles and "
    "summaries not given; sets made here: the preset that the row names, as it is shipped, ten hits unless said "
    "otherwise; paths by RecallRequest.paths and late_interaction; reranked: all paths and late interaction"
)

_ONLY = {RecallPath.VECTOR: (recall_pb2.RECALL_PATH_VECTOR,), RecallPath.KEYWORD: (recall_pb2.RECALL_PATH_KEYWORD,)}
_NO_DIFFERENCE = 1.0
_NO_TWINS = 2.0


def recall_of(way: Way, path: RecallPath) -> recall_pb2.RecallRequest:
    """The recall of one path without its question."""
    return recall_pb2.RecallRequest(
        preset=recall_pb2.Preset.Value(f"PRESET_{way.preset}"),
        tuning=recall_pb2.RecallTuning(
            top_k=way.top_k,
            relevance_weight=None if way.is_shipped else _NO_DIFFERENCE,
            near_twin_bar=None if way.is_shipped else _NO_TWINS,
        ),
        paths=_ONLY.get(path, ()),
        late_interaction=path is RecallPath.RERANKED,
    )
