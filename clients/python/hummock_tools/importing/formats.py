"""The formats of files of memories: our own export, also of version 1, what mem0 gives out, and others."""

from __future__ import annotations

import json
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import BinaryIO, cast

from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1.transfer_pb2 import TransferChunk, TransferEnd, TransferMemory, TransferRecord
from hummock_tools.importing import json_items as read
from hummock_tools.importing.conversations import SOURCE, Finding, Found, LeftOut, Wrong, hash_of
from hummock_tools.importing.databases import NotRead
from hummock_tools.importing.json_items import (
    BadFile,
    BadLine,
    BadRecord,
    Fields,
    Item,
    Line,
    NotWhole,
    OtherProject,
    Part,
    Place,
    Retired,
    Value,
    items,
    lines_of,
    messages,
)

_VERSION, _CURRENT = 1, 2
_HISTORY = {"messages": "maxMessages", "characters": "maxCharacters"}


def upgraded(value: Value) -> Value:
    """Convert a record's JSON to the current export version; a current one is unchanged."""
    memory, header = _within(value, "memory", "memory"), _within(value, "header", "settings")
    if memory:
        return _with(value, "memory", "memory", _flat(memory))
    history = header.get("history")
    if isinstance(history, dict):
        renamed: Fields = {_HISTORY.get(name, name): number for name, number in history.items()}
        return _with(value, "header", "settings", {**header, "history": renamed})
    return value


def _within(value: Value, outer: str, inner: str) -> Fields:
    """The object at a path of two names; an empty one where there is none."""
    above = value.get(outer) if isinstance(value, dict) else None
    found = above.get(inner) if isinstance(above, dict) else None
    return found if isinstance(found, dict) else {}


def _with(value: Value, outer: str, inner: str, fields: Fields) -> Value:
    """A copy of the value with another object at a path of two names; the value itself if it has no `outer` object."""
    above = value[outer] if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(above, dict):
        return value
    return {**value, outer: {**above, inner: fields}}


def _flat(memory: Fields) -> Fields:
    flat = {name: value for name, value in memory.items() if name not in ("index", "payload")}
    for name in ("index", "payload"):
        held = memory.get(name, {})
        flat |= held if isinstance(held, dict) else {name: held}
    return flat


def records(lines: Iterable[bytes]) -> Iterator[Part]:
    """The records of an export, which ends with how many there are. Raises: BadFile."""
    found = messages(lines, TransferRecord, upgraded)
    read = memories = wrong = last = 0
    for one in found:
        if isinstance(one, BadLine):
            last, wrong = one.place.line, wrong + 1
            yield one
        else:
            place, record = one
            last = place.line
            if record.HasField("header") and read + wrong:
                yield _another(place)
                return
            if record.header.version == _VERSION:
                record.header.version = _CURRENT
            yield Line(place=place, record=record)
            if record.HasField("end"):
                yield from _behind(place, _differing(record.end, read, memories, wrong), found)
                return
            read += 1
            memories += record.HasField("memory")
    yield NotWhole(place=Place(line=last + 1), reason="was cut off: it has no end" if last else "is empty")


def _differing(end: TransferEnd, read: int, memories: int, wrong: int) -> str:
    """Describes a mismatch with the counts of the end record; empty if there is none. A bad line may be a memory."""
    if end.record_count and end.record_count != read + wrong:
        return f"is not what was exported: it says {end.record_count} records, and holds {read + wrong}"
    if not memories <= end.memory_count <= memories + wrong:
        return f"is not what was exported: it says {end.memory_count} memories, and holds {memories}"
    return ""


def _behind(end: Place, differing: str, found: Iterator[tuple[Place, TransferRecord] | BadLine]) -> Iterator[NotWhole]:
    one = None if differing else next(found, None)
    if differing:
        yield NotWhole(place=end, reason=differing)
    elif isinstance(one, tuple) and one[1].HasField("header"):
        yield _another(one[0])
    elif one is not None:
        place = one.place if isinstance(one, BadLine) else one[0]
        yield NotWhole(place=place, reason=f"goes on behind its end: {place} was not read, nor what follows")


def _another(place: Place) -> NotWhole:
    reason = f"is more than one export: another one begins on {place}, and was not read; give each a file of its own"
    return NotWhole(place=place, reason=reason)


_ORIGINS = {"user": pb.ORIGIN_USER_INPUT, "assistant": pb.ORIGIN_AI_OUTPUT}
"""Origins by role, for memories that were added verbatim from a conversation."""

_RETIRED = ("deleted", "archived")
_OWNERS = ("user_id", "agent_id", "app_id", "app")
_MOST_TAGS, _LONGEST_TAG = 64, 128
_MOST_FACTS, _LONGEST_NAME, _LONGEST_FACT = 32, 64, 512


def mem0_part(place: Place, fields: Fields, beside: Fields) -> Part:
    """Convert a record to a memory: categories become tags, owner and metadata become metadata.

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
    metadata = {} if fields.get("metadata") is None else fields["metadata"]
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
    if found is not None and not isinstance(found, list):
        raise BadRecord(f"{name} is no list")
    return [read.text({name: one}, name) for one in found or ()]


def _fits(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable()


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
    """Yield the records of a file in order; faults are yielded, not raised. NotWhole comes last or not at all.

    Of legacy records it reads those of this project, or without one, or all; vectors if their `emb_space` is given.
    """
    try:
        match format:
            case FileFormat.JSONL:
                yield from records(lines)
            case FileFormat.MEM0:
                yield from _foreign(items(lines), mem0_part)
            case FileFormat.LEGACY:
                yield from _foreign(items(lines), partial(_legacy, project_key=project_key, emb_space=emb_space))
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


_MEMBERS = ("memories.jsonl.gz", "memories.json")


def openmemory_member(path: Path) -> str:
    """The file of memories in an OpenMemory export; empty if the path is no such ZIP."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = frozenset(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return ""
    return next((name for name in _MEMBERS if name in names), "")


def read_mem0(path: Path) -> Iterator[Finding]:
    """The memories of a file of mem0 or OpenMemory: an answer of the API, a backup, or a ZIP. Raises: NotRead."""
    member = openmemory_member(path)
    try:
        with ExitStack() as stack:
            if member:
                archive = stack.enter_context(zipfile.ZipFile(path))
                file = cast(BinaryIO, stack.enter_context(archive.open(member)))
            else:
                file = stack.enter_context(path.open("rb"))
            yield from _parts(str(path), file)
    except (OSError, zipfile.BadZipFile, RuntimeError) as error:
        raise NotRead(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _parts(name: str, file: BinaryIO) -> Iterator[Finding]:
    for part in read_file(lines_of(file), FileFormat.MEM0):
        match part:
            case Line(record=record, unfit=unfit):
                memory = record.memory.memory
                if len(memory.metadata) < _MOST_FACTS:
                    memory.metadata[SOURCE] = "mem0"
                memory.source_hash = hash_of(memory.SerializeToString(deterministic=True))
                yield Found(memory=memory)
                if unfit:
                    yield LeftOut(reason="tags and facts that are too long or too many", count=unfit)
            case Retired(state=state):
                yield LeftOut(reason=f"memories that are {state}")
            case BadLine(place=place, reason=reason) | NotWhole(place=place, reason=reason):
                yield Wrong(where=f"{name}, {place}", reason=reason)
