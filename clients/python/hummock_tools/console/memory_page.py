"""One memory: whole, to be changed, removed, brought back; and a new one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import memory_pb2
from hummock_tools.console.guard import BadInput, Fields
from hummock_tools.console.view import View, go_to

NEW_KINDS: Final = (
    memory_pb2.MEMORY_KIND_NOTE,
    memory_pb2.MEMORY_KIND_ENTRY,
    memory_pb2.MEMORY_KIND_LEARNING_RECORD,
    memory_pb2.MEMORY_KIND_DOMAIN_KNOWLEDGE,
)
"""Kinds that people write; code fragments are the indexer's."""

_DONE: Final = {
    context_pb.LEARN_STATUS_CREATED: "created",
    context_pb.LEARN_STATUS_UPDATED: "updated",
    context_pb.LEARN_STATUS_UNCHANGED: "unchanged",
    context_pb.LEARN_STATUS_DUPLICATE: "duplicate",
    context_pb.LEARN_STATUS_HELD: "held",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a form: its name, its value as text, how large it is, and whether it must be filled."""

    name: str
    value: str
    rows: int = 1
    required: bool = False


async def memory(view: View) -> Response:
    """The page of the memory that the address names."""
    found = await _whole(view, view.project, view.query.text("id"))
    return view.page("memory.html", {"memory": found, "fields": _fields_of(found), "version": _version(found)})


async def new_memory(view: View) -> Response:
    """The form for a new memory."""
    kind = view.query.choice("kind", NEW_KINDS) or memory_pb2.MEMORY_KIND_NOTE
    empty = memory_pb2.Memory(kind=memory_pb2.MemoryKind.ValueType(kind))
    return view.page("new_memory.html", {"kind": kind, "kinds": NEW_KINDS, "fields": _fields_of(empty)})


async def add_memory(view: View, form: Fields) -> Response:
    """Learns what the form says; the form names its project."""
    project = form.text("project")
    kind = form.choice("kind", NEW_KINDS)
    memory = memory_pb2.Memory(kind=memory_pb2.MemoryKind.ValueType(kind), origin=memory_pb2.ORIGIN_MANUAL)
    for write in _writers(memory).values():
        write(memory, form)
    return await _learnt(view, project, memory)


async def edit_memory(view: View, form: Fields) -> Response:
    """Changes the fields that the form has changed; what was there can be brought back."""
    project, memory_id = form.text("project"), form.text("id")
    before = await _whole(view, project, memory_id)
    if form.text("version") != _version(before):
        raise BadInput(view.words("error.changed_meanwhile"), 409)
    after = memory_pb2.Memory()
    after.CopyFrom(before)
    changed = []
    for path, write in _writers(before).items():
        was = after.SerializeToString(deterministic=True)
        write(after, form)
        if after.SerializeToString(deterministic=True) != was:
            changed.append(path)
    if not changed:
        return go_to("/memory", project=project, id=memory_id, did="unchanged")
    now = (await view.client.update(project, after, changed)).memory
    key = view.console.undo.keep(project, before, left_as=_version(now))
    return go_to("/memory", project=project, id=memory_id, did="updated", undo=key)


async def delete_memory(view: View, form: Fields) -> Response:
    """Removes a memory; it can be brought back."""
    project, memory_id = form.text("project"), form.text("id")
    before = await _whole(view, project, memory_id)
    await view.client.delete(project, [memory_id])
    return go_to("/garden", project=project, did="deleted", undo=view.console.undo.keep(project, before, left_as=""))


async def undo(view: View, form: Fields) -> Response:
    """Learns a memory again as it was before it was changed or removed here."""
    key = form.text("undo")
    kept = view.console.undo.find(key)
    if kept is None:
        raise BadInput(view.words("error.nothing_to_undo"), 404)
    now = await view.client.batch_get(kept.project, [kept.memory.id], view=memory_pb2.MEMORY_VIEW_INDEX)
    if kept.left_as != "".join(map(_version, now.memories)):
        raise BadInput(view.words("error.overtaken"), 409)
    response = await _learnt(view, kept.project, kept.memory)
    view.console.undo.drop(key)
    return response


async def _learnt(view: View, project: str, memory: memory_pb2.Memory) -> Response:
    (result,) = (await view.client.learn(project, [memory])).results
    did = _DONE.get(result.status, "updated")
    if did == "held":
        return go_to("/review", project=project, did=did)
    redacted = "redacted" if any(found.redacted for found in result.secrets) else None
    return go_to("/memory", project=project, id=result.id, did=did, note=redacted)


async def _whole(view: View, project: str, memory_id: str) -> memory_pb2.Memory:
    if not (project and memory_id):
        raise BadInput(view.words("error.no_memory"))
    return await view.client.get(project, memory_id, view=memory_pb2.MEMORY_VIEW_RAW)


def _version(memory: memory_pb2.Memory) -> str:
    """Version of a memory, which changes with each update."""
    return f"{memory.update_time.ToNanoseconds()}-{memory.content_hash}"


def _fields_of(memory: memory_pb2.Memory) -> list[Field]:
    """The fields of the form for a memory of this kind, with what it has."""
    record, domain = memory.learning_record, memory.domain_knowledge
    own = {
        memory_pb2.MEMORY_KIND_LEARNING_RECORD: [
            Field(name="question", value=record.question, rows=2, required=True),
            Field(name="answer", value=record.answer, rows=8, required=True),
            Field(name="source_files", value="\n".join(record.source_files), rows=2),
        ],
        memory_pb2.MEMORY_KIND_DOMAIN_KNOWLEDGE: [
            Field(name="domain", value=domain.domain, required=True),
            Field(name="domain_summary", value=domain.summary, rows=8, required=True),
            Field(name="aliases", value="\n".join(domain.aliases), rows=2),
            Field(name="key_files", value="\n".join(domain.key_files), rows=2),
        ],
    }.get(memory.kind, [Field(name="content", value=memory.content, rows=8, required=True)])
    return [
        Field(name="title", value=memory.title),
        *own,
        Field(name="tags", value=", ".join(memory.tags)),
        Field(name="emotion_label", value=memory.emotion_label),
    ]


_Write = Callable[[memory_pb2.Memory, Fields], None]


def _writers(memory: memory_pb2.Memory) -> dict[str, _Write]:
    """Functions that write the form's fields into a memory of this kind, by the path of the changed field."""
    own: dict[int, dict[str, _Write]] = {
        memory_pb2.MEMORY_KIND_LEARNING_RECORD: {"detail": _write_record},
        memory_pb2.MEMORY_KIND_DOMAIN_KNOWLEDGE: {"detail": _write_domain},
    }
    return {
        "title": _write_title,
        "tags": _write_tags,
        "emotion_label": _write_emotion,
        **own.get(memory.kind, {"content": _write_content}),
    }


def _write_title(memory: memory_pb2.Memory, form: Fields) -> None:
    memory.title = form.text("title")


def _write_tags(memory: memory_pb2.Memory, form: Fields) -> None:
    memory.tags[:] = form.listed("tags")


def _write_emotion(memory: memory_pb2.Memory, form: Fields) -> None:
    memory.emotion_label = form.text("emotion_label")


def _write_content(memory: memory_pb2.Memory, form: Fields) -> None:
    memory.content = form.text("content")


def _write_record(memory: memory_pb2.Memory, form: Fields) -> None:
    record = memory.learning_record
    record.question, record.answer = form.text("question"), form.text("answer")
    record.source_files[:] = form.listed("source_files", "\n")


def _write_domain(memory: memory_pb2.Memory, form: Fields) -> None:
    domain = memory.domain_knowledge
    domain.domain, domain.summary = form.text("domain"), form.text("domain_summary")
    domain.aliases[:] = form.listed("aliases", "\n")
    domain.key_files[:] = form.listed("key_files", "\n")
