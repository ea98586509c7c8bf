"""Memories of mem0, as its `get_all` returns them and its Platform exports them.

An item is {id, memory, hash, metadata, created_at, updated_at, user_id?, agent_id?, app_id?, run_id?, actor_id?, role?,
categories?, expiration_date?}; a file holds one a line, a list of them, or an object with the list in `results`.

Source: docs.mem0.ai/api-reference/memory/get-memory, docs.mem0.ai/cookbooks/essentials/exporting-memories, and
`MemoryItem` in mem0/configs/base.py of mem0ai/mem0.
"""

from __future__ import annotations

from collections.abc import Iterator

from hummock.importing import fields as read
from hummock.importing.lines import BadRecord, Fields, Value
from hummock.v1 import memory_pb2 as pb
from hummock.v1.transfer_pb2 import TransferMemory

_ORIGINS = {"user": pb.ORIGIN_USER_INPUT, "assistant": pb.ORIGIN_AI_OUTPUT}
"""Who speaks, in memories that were added as they were said."""

_OWNERS = ("user_id", "agent_id", "app_id")
_MAX_TAGS = 64
_MAX_TAG_CHARACTERS = 128


def memory_of(fields: Fields) -> TransferMemory:
    """A memory of mem0, with whom it belongs to, its categories and its plain metadata as tags. Raises: BadRecord."""
    content = read.text(fields, "memory", required=True)
    created = read.time(fields, "created_at")
    memory = pb.MemoryInput(
        id=read.text(fields, "id", required=True),
        kind=pb.MEMORY_KIND_NOTE,
        # What mem0 keeps otherwise is what a model drew from a conversation.
        origin=_ORIGINS.get(read.text(fields, "role"), pb.ORIGIN_SUMMARY),
        index=pb.MemoryIndex(tags=_tags(fields)),
        payload=pb.MemoryPayload(content=content),
        session_id=read.text(fields, "run_id"),
        speaker=read.text(fields, "actor_id"),
        create_time=created,
    )
    return TransferMemory(memory=memory, update_time=read.time(fields, "updated_at") or created)


def _tags(fields: Fields) -> list[str]:
    """In the order of their worth: the last are left out where there are too many."""
    named = {name: read.text(fields, name) for name in _OWNERS}
    found = [f"{name}:{value}" for name, value in named.items() if value]
    found += _texts(fields.get("categories"))
    metadata = fields.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise BadRecord("metadata is no object")
    for name, value in (metadata or {}).items():
        found += [f"{name}:{one}" for one in _texts(value)]
    short = [tag for tag in dict.fromkeys(found) if len(tag) <= _MAX_TAG_CHARACTERS and tag.isprintable()]
    return [tag for tag in short if tag.strip("# ")][:_MAX_TAGS]


def _texts(value: Value) -> Iterator[str]:
    """Plain values as they are written; those of a list one by one."""
    if isinstance(value, bool):
        yield str(value).lower()
    elif isinstance(value, str | int | float):
        yield str(value)
    elif isinstance(value, list):
        for one in value:
            if not isinstance(one, list):
                yield from _texts(one)
