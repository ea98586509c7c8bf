"""Requests out of what the command line says."""

from __future__ import annotations

from collections.abc import Sequence

from hummock.cli.options import KindName, OriginName, PresetName
from hummock.v1 import memory_pb2 as memory_pb
from hummock.v1 import recall_pb2 as pb

__all__ = ["filter_of", "kind_value", "origin_value", "preset_value", "recall_request"]


def preset_value(name: PresetName | None) -> pb.Preset.ValueType:
    """The contract's value; unspecified for None."""
    return pb.PRESET_UNSPECIFIED if name is None else pb.Preset.Value(f"PRESET_{name.name}")


def kind_value(name: KindName) -> memory_pb.MemoryKind.ValueType:
    """The contract's value."""
    return memory_pb.MemoryKind.Value(f"MEMORY_KIND_{name.name}")


def origin_value(name: OriginName) -> memory_pb.Origin.ValueType:
    """The contract's value."""
    return memory_pb.Origin.Value(f"ORIGIN_{name.name}")


def filter_of(
    tags: Sequence[str] | None,
    kinds: Sequence[KindName] | None = None,
    origins: Sequence[OriginName] | None = None,
    sessions: Sequence[str] | None = None,
) -> memory_pb.Filter:
    """Memories with all of these tags, and any of each of the others; None sets no condition."""
    return memory_pb.Filter(
        tags=tags or (),
        kinds=[kind_value(kind) for kind in kinds or ()],
        origins=[origin_value(origin) for origin in origins or ()],
        session_ids=sessions or (),
    )


def recall_request(
    project: str, text: str, preset: PresetName | None, top_k: int | None, tags: Sequence[str] | None
) -> pb.RecallRequest:
    """What to recall; what is None is left to the preset."""
    return pb.RecallRequest(
        project=project, query_text=text, preset=preset_value(preset), top_k=top_k, filter=filter_of(tags)
    )
