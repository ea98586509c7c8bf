"""A recall as the fields of a form say it, and as an address carries it."""

from __future__ import annotations

from typing import Final

from google.protobuf import json_format

from hummock_client.time_zone import own_zone
from hummock_client.v1 import memory_pb2, recall_pb2
from hummock_tools.console.fields import BadInput, Fields

NUMBERS: Final = ("relevance_weight", "min_similarity", "half_life_days")
"""Fields of the tuning that the forms of both columns have, as sliders where scripts run."""

PRESETS: Final = tuple(recall_pb2.Preset.values())[1:]
DECAY_MODES: Final = tuple(recall_pb2.DecayMode.values())[1:]

_LARGEST_BASE = 64 * 1024


def recall_of(project: str, fields: Fields, prefix: str = "") -> recall_pb2.RecallRequest:
    """The recall that a form asks for.

    Args:
        project: Project to ask; the project of a request in `recall` is ignored.
        fields: Fields of the form. `recall` may hold a whole request as JSON; the form's own fields replace its values.
            Without a `q` the request is taken as it is.
        prefix: Stands before the names of the settings, not before `q` and `recall`.

    Raises:
        BadInput: A field that no form of ours sends.
    """
    request = _base(fields.text("recall"))
    request.project = project
    request.view = memory_pb2.MEMORY_VIEW_FULL
    if "q" not in fields:
        return request
    request.query_text = fields.text("q")
    request.time_zone = request.time_zone or own_zone()
    preset = fields.choice(f"{prefix}preset", PRESETS)
    request.preset = recall_pb2.Preset.ValueType(preset)
    for name in NUMBERS:
        _set_or_clear(request.tuning, name, fields.number(f"{prefix}{name}"))
    _set_or_clear(request.tuning, "top_k", fields.whole(f"{prefix}top_k"))
    mode = fields.choice(f"{prefix}decay_mode", DECAY_MODES)
    request.tuning.decay_mode = recall_pb2.DecayMode.ValueType(mode)
    return request


def as_text(request: recall_pb2.RecallRequest) -> str:
    """The request as an address carries it."""
    return json_format.MessageToJson(request, indent=None, ensure_ascii=False)


def _base(text: str) -> recall_pb2.RecallRequest:
    request = recall_pb2.RecallRequest()
    if not text:
        return request
    if len(text) > _LARGEST_BASE:
        raise BadInput("the recall of this address is too long")
    try:
        json_format.Parse(text, request, ignore_unknown_fields=True)
    except json_format.ParseError as error:
        raise BadInput("the recall of this address cannot be read") from error
    return request


def _set_or_clear(tuning: recall_pb2.RecallTuning, name: str, value: float | None) -> None:
    if value is None:
        tuning.ClearField(name)  # type: ignore[arg-type] # names of this message's fields
    else:
        setattr(tuning, name, value)
