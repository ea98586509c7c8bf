"""One memory: whole, to be changed, removed, brought back; and a new one."""

from __future__ import annotations

from typing import Final, NamedTuple

from starlette.responses import Response

from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import memory_pb2
from hummock_tools.console.guard import BadInput, Fields
from hummock_tools.console.view import View, go_to, keep

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


class Field(NamedTuple):
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
    for path in _paths(memory):
        _write(memory, path, form)
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
    for path in _paths(before):
        was = after.SerializeToString(deterministic=True)
        _write(after, path, form)
        if after.SerializeToString(deterministic=True) != was:
            changed.append(path)
    if not changed:
        return go_to("/memory", project=project, id=memory_id, did="unchanged")
    now = (await view.client.update(project, after, changed)).memory
    key = keep(view.console.undo, project, before, left_as=_version(now))
    return go_to("/memory", project=project, id=memory_id, did="updated", undo=key)


async def delete_memory(view: View, form: Fields) -> Response:
    """Removes a memory; it can be brought back."""
    project, memory_id = form.text("project"), form.text("id")
    before = await _whole(view, project, memory_id)
    await view.client.delete(project, [memory_id])
    return go_to("/garden", project=project, did="deleted", undo=keep(view.console.undo, project, before, left_as=""))


async def undo(view: View, form: Fields) -> Response:
    """Learns a memory again as it was before it was changed or removed here."""
    key = form.text("undo")
    kept = view.console.undo.get(key)
    if kept is None:
        raise BadInput(view.words("error.nothing_to_undo"), 404)
    now = await view.client.batch_get(kept.project, [kept.memory.id], view=memory_pb2.MEMORY_VIEW_INDEX)
    if kept.left_as != "".join(map(_version, now.memories)):
        raise BadInput(view.words("error.overtaken"), 409)
    response = await _learnt(view, kept.project, kept.memory)
    view.console.undo.pop(key, None)
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
    record, domain = memory.learning_record, memory.domain_knowledge
    own = {
        memory_pb2.MEMORY_KIND_LEARNING_RECORD: [
            Field("question", record.question, rows=2, required=True),
            Field("answer", record.answer, rows=8, required=True),
            Field("source_files", "\n".join(record.source_files), rows=2),
        ],
        memory_pb2.MEMORY_KIND_DOMAIN_KNOWLEDGE: [
            Field("domain", domain.domain, required=True),
            Field("domain_summary", domain.summary, rows=8, required=True),
            Field("aliases", "\n".join(domain.aliases), rows=2),
            Field("key_files", "\n".join(domain.key_files), rows=2),
        ],
    }.get(memory.kind, [Field("content", memory.content, rows=8, required=True)])
    return [
        Field("title", memory.title),
        *own,
        Field("tags", ", ".join(memory.tags)),
        Field("emotion_label", memory.emotion_label),
    ]


def _paths(memory: memory_pb2.Memory) -> tuple[str, ...]:
    """The fields that the form for a memory of this kind has."""
    has_detail = memory.kind in (memory_pb2.MEMORY_KIND_LEARNING_RECORD, memory_pb2.MEMORY_KIND_DOMAIN_KNOWLEDGE)
    return "title", "tags", "emotion_label", "detail" if has_detail else "content"


def _write(memory: memory_pb2.Memory, path: str, form: Fields) -> None:
    if path == "tags":
        memory.tags[:] = form.listed("tags")
    elif path != "detail":
        setattr(memory, path, form.text(path))
    elif memory.kind == memory_pb2.MEMORY_KIND_LEARNING_RECORD:
        record = memory.learning_record
        record.question, record.answer = form.text("question"), form.text("answer")
        record.source_files[:] = form.listed("source_files", "\n")
    else:
        domain = memory.domain_knowledge
        domain.domain, domain.summary = form.text("domain"), form.text("domain_summary")
        domain.aliases[:] = form.listed("aliases", "\n")
        domain.key_files[:] = form.listed("key_files", "\n")
