"""Files of memories as records, by their format: our own export, mem0, and the applications before Hummock."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import partial

from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1.transfer_pb2 import TransferChunk, TransferMemory, TransferRecord
from hummock_tools.importing import fields as read
from hummock_tools.importing.fields import BadLine, BadRecord, Fields, Line, NotWhole, OtherProject, Part, Place
from hummock_tools.importing.json_items import Item, items
from hummock_tools.importing.lines import BadFile
from hummock_tools.importing.mem0 import mem0_part
from hummock_tools.importing.own_export import records

_LEGACY_ORIGINS = {
    "manual": pb.ORIGIN_MANUAL,
    "summary": pb.ORIGIN_SUMMARY,
    "user_input": pb.ORIGIN_USER_INPUT,
    "ai_output": pb.ORIGIN_AI_OUTPUT,
}

_SPEAKERS = {"user": pb.ORIGIN_USER_INPUT, "ai": pb.ORIGIN_AI_OUTPUT}
"""Origins by the values that `emotion` had while it stood for the speaker; these are never feelings."""

_IDS = uuid.UUID("6f1c1b0e-5f0a-5d7c-9c5e-8a3f0d1f2b11")
"""Namespace of ids that are derived from a memory's content, so that the same file gives the same ids."""


class FileFormat(StrEnum):
    """Format of an import file."""

    JSONL = "jsonl"
    MEM0 = "mem0"
    LEGACY = "legacy"


def read_file(lines: Iterable[bytes], format: FileFormat, project_key: str = "", emb_space: str = "") -> Iterator[Part]:
    """The records of a file, in its order; of what is wrong in it nothing is raised. NotWhole comes last or not at all.

    Args:
        lines: Lines of the file.
        format: Format of the file.
        project_key: Reads only legacy records of this project, or without a project; empty reads all.
        emb_space: Embedding space of the vectors in legacy records; empty leaves them out.
    """
    try:
        match format:
            case FileFormat.JSONL:
                yield from records(lines)
            case FileFormat.MEM0:
                yield from _foreign(items(lines), mem0_part)
            case FileFormat.LEGACY:
                legacy = partial(_legacy, project_key=project_key, emb_space=emb_space)
                yield from _foreign(items(lines), legacy)
    except BadFile as error:
        yield NotWhole(place=Place(line=error.number), reason=str(error))


def _foreign(
    found: Iterable[Item | BadLine | NotWhole], part_of: Callable[[Place, Fields, Fields], Part]
) -> Iterator[Part]:
    for item in found:
        if not isinstance(item, Item):
            yield item
            continue
        try:
            if not isinstance(item.value, dict):
                raise BadRecord("is no JSON object")
            yield part_of(item.place, item.value, item.beside)
        except BadRecord as error:
            yield BadLine(place=item.place, reason=str(error))


def _legacy(place: Place, fields: Fields, _: Fields, *, project_key: str, emb_space: str) -> Part:
    key = read.text(fields, "projectKey")
    if project_key and key not in ("", project_key):
        return OtherProject(place=place, key=key)
    memory, values = _legacy_memory(fields), read.embedding(fields, "embedding")
    if values and emb_space:
        memory.emb_space = emb_space
        memory.chunks.append(TransferChunk(values=values))
    unused = bool(values and not emb_space)
    return Line(place=place, record=TransferRecord(memory=memory), has_unused_vector=unused)


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
