"""Memories of mem0: what its API returns, and `memories.json` and `memories.jsonl.gz` of its server's backups."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain

from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1.transfer_pb2 import TransferMemory, TransferRecord
from hummock_tools.importing import fields as read
from hummock_tools.importing.fields import BadRecord, Fields, Line, Part, Place, Retired

_ORIGINS = {"user": pb.ORIGIN_USER_INPUT, "assistant": pb.ORIGIN_AI_OUTPUT}
"""Origins by role, for memories that were added verbatim from a conversation."""

_RETIRED = ("deleted", "archived")
_OWNERS = ("user_id", "agent_id", "app_id", "app")
_MOST_TAGS, _LONGEST_TAG = 64, 128
_MOST_FACTS, _LONGEST_NAME, _LONGEST_FACT = 32, 64, 512


def mem0_part(place: Place, fields: Fields, beside: Fields) -> Part:
    """A record as a memory: its categories are tags, whose it is and its own metadata are metadata.

    `beside` is what its file says before the list of memories; there a backup has the names of categories, apps and the
    user, whose ids its memories hold. Raises: BadRecord.
    """
    state = read.text(fields, "state").lower()
    if state in _RETIRED:
        return Retired(place=place, state=state)
    names = dict(_names(beside))
    tags, facts = list(_categories(fields, names)), list(_facts(fields, names))
    kept_tags = [tag for tag in tags if len(tag) <= _LONGEST_TAG and tag.isprintable() and tag.strip("# ")][:_MOST_TAGS]
    kept_facts = [(name, fact) for name, fact in facts if _fits(name) and len(fact) <= _LONGEST_FACT][:_MOST_FACTS]
    text = "content" if fields.get("memory") is None and "content" in fields else "memory"
    created = read.time(fields, "created_at")
    memory = pb.Memory(
        id=read.text(fields, "id", required=True),
        kind=pb.MEMORY_KIND_NOTE,
        # What mem0 keeps otherwise is what a model drew from a conversation.
        origin=_ORIGINS.get(read.text(fields, "role"), pb.ORIGIN_SUMMARY),
        tags=kept_tags,
        content=read.text(fields, text, required=True),
        session_id=read.text(fields, "run_id"),
        speaker=read.text(fields, "actor_id"),
        create_time=created,
        metadata=dict(kept_facts),
    )
    kept = TransferMemory(memory=memory, update_time=read.time(fields, "updated_at") or created)
    unfit = len(tags) - len(kept_tags) + len(facts) - len(kept_facts)
    return Line(place=place, record=TransferRecord(memory=kept), unfit=unfit)


def _names(beside: Fields) -> Iterator[tuple[str, str]]:
    """Pairs of id and the name that it stands for."""
    for listed, name in (("categories", "name"), ("apps", "name"), ("user", "user_id")):
        found = beside.get(listed)
        for one in found if isinstance(found, list) else [found]:
            if isinstance(one, dict) and one.get(name):
                yield read.text(one, "id"), read.text(one, name)


def _categories(fields: Fields, names: dict[str, str]) -> Iterable[str]:
    """Each once. Raises: BadRecord."""
    found = chain(_texts(fields, "categories"), _texts(fields, "category_ids"))
    return dict.fromkeys(names.get(one, one) for one in found if one)


def _facts(fields: Fields, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The record's owners, then its own metadata. Raises: BadRecord."""
    metadata = fields.get("metadata")
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        raise BadRecord("metadata is no object")
    said = {name: fields.get(name) or metadata.get(name) for name in _OWNERS}
    if read.text(fields, "state").lower() not in ("", "active"):
        said["state"] = fields["state"]
    for name, value in (said | {name: metadata[name] for name in metadata if name not in said}).items():
        if value is not None:
            text = read.text({name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}, name)
            yield name, names.get(text, text) if name in _OWNERS else text


def _texts(fields: Fields, name: str) -> list[str]:
    """Texts of a list; none where there is no list. Raises: BadRecord."""
    found = fields.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise BadRecord(f"{name} is no list")
    return [read.text({name: one}, name) for one in found]


def _fits(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable()
