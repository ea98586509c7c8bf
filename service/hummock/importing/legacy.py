"""Memories and domain knowledge of the applications before Hummock.

A chat memory is {text, embedding, timestamp, tag, sessionId?, emotionLabel?}; those written before there was a tag say
in `emotion` whether a user or a model spoke. Domain knowledge is {id, projectKey, title, content, embedding, createdAt,
updatedAt}. Embeddings are Base64 of little-endian float32, or lists of numbers.
"""

from __future__ import annotations

import uuid

from hummock.importing import fields as read
from hummock.importing.lines import BadRecord, Fields
from hummock.v1 import memory_pb2 as pb
from hummock.v1.transfer_pb2 import TransferMemory

_ORIGINS = {
    "manual": pb.ORIGIN_MANUAL,
    "summary": pb.ORIGIN_SUMMARY,
    "user_input": pb.ORIGIN_USER_INPUT,
    "ai_output": pb.ORIGIN_AI_OUTPUT,
}
_SPEAKERS = {"user": pb.ORIGIN_USER_INPUT, "ai": pb.ORIGIN_AI_OUTPUT}
"""What `emotion` said while it stood for the speaker; never a feeling."""

_IDS = uuid.UUID("6f1c1b0e-5f0a-5d7c-9c5e-8a3f0d1f2b11")
"""Of ids that are made from what a memory says, so that the same file gives the same ids."""


def memory_of(fields: Fields) -> TransferMemory:
    """A chat memory or a piece of domain knowledge. Raises: BadRecord."""
    if "text" in fields:
        return _chat_memory(fields)
    if "title" in fields or "projectKey" in fields:
        return _domain_knowledge(fields)
    raise BadRecord("has neither text (a memory) nor title and content (domain knowledge)")


def project_key(fields: Fields) -> str:
    """The project that a record belongs to; "" when it names none. Raises: BadRecord."""
    return read.text(fields, "projectKey")


def vector_of(fields: Fields) -> bytes:
    """The record's vector as little-endian float32; b"" when it has none. Raises: BadRecord."""
    return read.embedding(fields, "embedding")


def _chat_memory(fields: Fields) -> TransferMemory:
    text = read.text(fields, "text", required=True)
    tag, session = read.text(fields, "tag").strip().lower(), read.text(fields, "sessionId")
    emotion = read.text(fields, "emotion").strip()
    created = read.time(fields, "timestamp")
    memory = pb.MemoryInput(
        id=read.text(fields, "id") or _made_id(tag, session, text, created.ToJsonString() if created else ""),
        kind=pb.MEMORY_KIND_NOTE,
        origin=_origin(tag, emotion),
        payload=pb.MemoryPayload(content=text),
        session_id=session,
        emotion_label=_feeling(read.text(fields, "emotionLabel").strip()) or _feeling(emotion),
        create_time=created,
    )
    return TransferMemory(memory=memory, update_time=created)


def _domain_knowledge(fields: Fields) -> TransferMemory:
    title, content = read.text(fields, "title", required=True), read.text(fields, "content", required=True)
    created = read.time(fields, "createdAt")
    memory = pb.MemoryInput(
        id=read.text(fields, "id") or _made_id(title),
        kind=pb.MEMORY_KIND_DOMAIN_KNOWLEDGE,
        origin=pb.ORIGIN_MANUAL,
        payload=pb.MemoryPayload(domain_knowledge=pb.DomainKnowledge(domain=title, summary=content)),
        create_time=created,
    )
    return TransferMemory(memory=memory, update_time=read.time(fields, "updatedAt") or created)


def _origin(tag: str, emotion: str) -> pb.Origin.ValueType:
    if tag in _ORIGINS:
        return _ORIGINS[tag]
    if tag:
        raise BadRecord(f"tag is {tag[:64]!r}; it must be one of {', '.join(_ORIGINS)}")
    if emotion.lower() in _SPEAKERS:
        return _SPEAKERS[emotion.lower()]
    raise BadRecord('has no tag, and emotion is neither "user" nor "ai": give it a tag')


def _feeling(label: str) -> str:
    return "" if label.lower() in _SPEAKERS else label


def _made_id(*parts: str) -> str:
    return str(uuid.uuid5(_IDS, "\0".join(parts)))
