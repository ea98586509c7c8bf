"""Fields of a call for the audit log and the log of slow calls: names, ids and numbers, never content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

MOST_IDS = 20
"""Most ids noted for one call; `counts` says how many there were in all."""
_DEPTH = 2
_NO_IDS = frozenset({"request_id", "missing_ids", "unknown_ids"})
_NUMBERS = (FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64)


class AuditFields:
    """Projects, ids and counts in the messages of a call."""

    def __init__(self) -> None:
        self.projects: dict[str, None] = {}
        self.ids: dict[str, None] = {}
        self.counts: Counter[str] = Counter()

    def request(self, request: Message, projects: Iterable[str]) -> None:
        """Note a request: the projects it names, the ids in it, and the sizes of its lists."""
        self.projects.update(dict.fromkeys(projects))
        self.counts["requests"] += 1
        self._note(request, _DEPTH)

    def reply(self, reply: Message) -> None:
        """Notes a reply: the ids in it, and what it counts."""
        self._note(reply, _DEPTH)

    def told(self) -> Mapping[str, Any]:
        """The parts of a line that are not empty."""
        said = {"projects": list(self.projects), "ids": list(self.ids), "counts": dict(self.counts)}
        return {name: value for name, value in said.items() if value}

    def _note(self, message: Message, depth: int) -> None:
        for field, value in message.ListFields():
            if field.message_type is not None:
                self._note_inner(field, field.message_type, value, depth)
            elif field.name.endswith("_count") and field.cpp_type in _NUMBERS:
                self.counts[field.name] += value
            elif field.name == "seq":
                self.counts["seq"] = value
            elif field.name not in _NO_IDS and field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
                if field.name == "id" or field.name.endswith("_id"):
                    self._note_ids([value])
                elif field.name == "ids" or field.name.endswith("_ids"):
                    self.counts[field.name] += len(value)
                    self._note_ids(value[:MOST_IDS])

    def _note_inner(self, field: FieldDescriptor, kind: Descriptor, value: Any, depth: int) -> None:
        if kind.GetOptions().map_entry or not kind.full_name.startswith("hummock."):
            return
        if field.is_repeated:
            self.counts[field.name] += len(value)
        if depth > 1:
            for each in value[:MOST_IDS] if field.is_repeated else (value,):
                self._note(each, depth - 1)

    def _note_ids(self, ids: Any) -> None:
        for each in ids:
            if len(self.ids) < MOST_IDS:
                self.ids[each] = None
