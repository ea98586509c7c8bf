"""Files of memories as records, by their format: our own export, mem0, and the applications before Hummock."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

from hummock.importing import fields as read
from hummock.importing.fields import BadLine, BadRecord, Fields, Line, OtherProject, Value
from hummock.importing.first_version import of_today, upgraded
from hummock.importing.json_items import Item, items, messages
from hummock.v1 import memory_pb2 as pb
from hummock.v1.transfer_pb2 import TransferChunk, TransferMemory, TransferRecord

Part = Line | BadLine | OtherProject

_LEGACY_ORIGINS = {
    "manual": pb.ORIGIN_MANUAL,
    "summary": pb.ORIGIN_SUMMARY,
    "user_input": pb.ORIGIN_USER_INPUT,
    "ai_output": pb.ORIGIN_AI_OUTPUT,
}

_SPEAKERS = {"user": pb.ORIGIN_USER_INPUT, "ai": pb.ORIGIN_AI_OUTPUT}
"""What `emotion` said while it stood for the speaker; never a feeling."""

_IDS = uuid.UUID("6f1c1b0e-5f0a-5d7c-9c5e-8a3f0d1f2b11")
"""Of ids that are made from what a memory says, so that the same file gives the same ids."""

_MEM0_ORIGINS = {"user": pb.ORIGIN_USER_INPUT, "assistant": pb.ORIGIN_AI_OUTPUT}
"""Who speaks, in memories that were added as they were said."""

_OWNERS = ("user_id", "agent_id", "app_id")
_MAX_TAGS = 64
_MAX_TAG_CHARACTERS = 128


class FileFormat(StrEnum):
    """What a file is."""

    JSONL = "jsonl"
    MEM0 = "mem0"
    LEGACY = "legacy"


def read_file(lines: Iterable[bytes], format: FileFormat, project_key: str = "", emb_space: str = "") -> Iterator[Part]:
    """The records of a file, in its order; nothing is raised for what is wrong in it.

    Args:
        lines: Of the file.
        format: The file's.
        project_key: Of legacy records that name a project, only those of this one; empty takes all.
        emb_space: Of the vectors that legacy records hold; empty leaves them out.
    """
    match format:
        case FileFormat.JSONL:
            return _records(lines)
        case FileFormat.MEM0:
            return _foreign(items(lines), lambda number, fields: _line(number, _mem0_memory(fields)))
        case FileFormat.LEGACY:
            return _foreign(items(lines), lambda number, fields: _legacy(number, fields, project_key, emb_space))


def _records(lines: Iterable[bytes]) -> Iterator[Part]:
    for found in messages(lines, TransferRecord, upgraded):
        yield found if isinstance(found, BadLine) else Line(number=found[0], record=of_today(found[1]))


def _foreign(found: Iterable[Item | BadLine], line_of: Callable[[int, Fields], Part]) -> Iterator[Part]:
    for item in found:
        if isinstance(item, BadLine):
            yield item
            continue
        number, value = item
        try:
            if not isinstance(value, dict):
                raise BadRecord("is no JSON object")
            yield line_of(number, value)
        except BadRecord as error:
            yield BadLine(number=number, reason=str(error))


def _legacy(number: int, fields: Fields, project_key: str, emb_space: str) -> Part:
    key = read.text(fields, "projectKey")
    if project_key and key not in ("", project_key):
        return OtherProject(number=number, key=key)
    memory, values = _legacy_memory(fields), read.embedding(fields, "embedding")
    if values and emb_space:
        memory.emb_space = emb_space
        memory.chunks.append(TransferChunk(values=values))
    return _line(number, memory, has_unused_vector=bool(values and not emb_space))


def _line(number: int, memory: TransferMemory, *, has_unused_vector: bool = False) -> Line:
    return Line(number=number, record=TransferRecord(memory=memory), has_unused_vector=has_unused_vector)


def _mem0_memory(fields: Fields) -> TransferMemory:
    """A memory of mem0, with whom it belongs to, its categories and its plain metadata as tags. Raises: BadRecord."""
    content = read.text(fields, "memory", required=True)
    created = read.time(fields, "created_at")
    memory = pb.Memory(
        id=read.text(fields, "id", required=True),
        kind=pb.MEMORY_KIND_NOTE,
        # What mem0 keeps otherwise is what a model drew from a conversation.
        origin=_MEM0_ORIGINS.get(read.text(fields, "role"), pb.ORIGIN_SUMMARY),
        tags=_tags(fields),
        content=content,
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


def _legacy_memory(fields: Fields) -> TransferMemory:
    """A chat memory or a piece of domain knowledge. Raises: BadRecord."""
    if "text" in fields:
        return _chat_memory(fields)
    if "title" in fields or "projectKey" in fields:
        return _domain_knowledge(fields)
    raise BadRecord("has neither text (a memory) nor title and content (domain knowledge)")


def _chat_memory(fields: Fields) -> TransferMemory:
    text = read.text(fields, "text", required=True)
    tag, session = read.text(fields, "tag").strip().lower(), read.text(fields, "sessionId")
    emotion = read.text(fields, "emotion").strip()
    created = read.time(fields, "timestamp")
    memory = pb.Memory(
        id=read.text(fields, "id") or _made_id(tag, session, text, created.ToJsonString() if created else ""),
        kind=pb.MEMORY_KIND_NOTE,
        origin=_origin(tag, emotion),
        content=text,
        session_id=session,
        emotion_label=_feeling(read.text(fields, "emotionLabel").strip()) or _feeling(emotion),
        create_time=created,
    )
    return TransferMemory(memory=memory, update_time=created)


def _domain_knowledge(fields: Fields) -> TransferMemory:
    title, content = read.text(fields, "title", required=True), read.text(fields, "content", required=True)
    created = read.time(fields, "createdAt")
    memory = pb.Memory(
        id=read.text(fields, "id") or _made_id(title),
        kind=pb.MEMORY_KIND_DOMAIN_KNOWLEDGE,
        origin=pb.ORIGIN_MANUAL,
        domain_knowledge=pb.DomainKnowledge(domain=title, summary=content),
        create_time=created,
    )
    return TransferMemory(memory=memory, update_time=read.time(fields, "updatedAt") or created)


def _origin(tag: str, emotion: str) -> pb.Origin.ValueType:
    if tag in _LEGACY_ORIGINS:
        return _LEGACY_ORIGINS[tag]
    if tag:
        raise BadRecord(f"tag is {tag[:64]!r}; it must be one of {', '.join(_LEGACY_ORIGINS)}")
    if emotion.lower() in _SPEAKERS:
        return _SPEAKERS[emotion.lower()]
    raise BadRecord('has no tag, and emotion is neither "user" nor "ai": give it a tag')


def _feeling(label: str) -> str:
    return "" if label.lower() in _SPEAKERS else label


def _made_id(*parts: str) -> str:
    return str(uuid.uuid5(_IDS, "\0".join(parts)))
