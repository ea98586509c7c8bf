"""Reference pages of the contract: a page for each file of proto/, with every call, message, field and value."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
)

from docs.site.tables import cell, table

_PACKAGE = ".hummock.v1."
_WELL_KNOWN = {
    ".google.protobuf.Duration": "https://protobuf.dev/reference/protobuf/google.protobuf/#duration",
    ".google.protobuf.FieldMask": "https://protobuf.dev/reference/protobuf/google.protobuf/#field-mask",
    ".google.protobuf.Timestamp": "https://protobuf.dev/reference/protobuf/google.protobuf/#timestamp",
    ".google.rpc.Status": "https://cloud.google.com/apis/design/errors#error_model",
}
_ERRORS = "errors"

_Path = tuple[int, ...]


def contract_pages(proto: Path) -> dict[str, str]:
    """Markdown of each page by its file name, `README.md` being the list of all calls.

    Args:
        proto: The folder that holds `hummock/v1`.
    """
    files = [file for file in _descriptors(proto).file if file.name.startswith("hummock/v1/")]
    homes = {f"{_PACKAGE}{message.name}": _stem(file) for file in files for message in file.message_type}
    homes |= {f"{_PACKAGE}{enum.name}": _stem(file) for file in files for enum in file.enum_type}
    pages = {f"{_stem(file)}.md": _Page(file, homes).text() for file in files}
    return {"README.md": _index(files), **pages}


def _descriptors(proto: Path) -> FileDescriptorSet:
    with tempfile.TemporaryDirectory(prefix="hummock-docs-") as folder:
        out = Path(folder) / "contract.binpb"
        sources = sorted(str(path.relative_to(proto)) for path in proto.glob("hummock/v1/*.proto"))
        command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", "--include_imports", "--include_source_info"]
        subprocess.run([*command, f"--descriptor_set_out={out}", *sources], cwd=proto, check=True)
        return FileDescriptorSet.FromString(out.read_bytes())


def _index(files: list[FileDescriptorProto]) -> str:
    parts = [
        "# The contract",
        "Every call and every field of `hummock.v1`, made from the comments of `proto/` when this site is built. "
        "A call that fails gives one of the [reasons](errors.md).",
    ]
    for file in files:
        for number, service in enumerate(file.service):
            comments = _comments(file)
            rows = [
                (
                    f"[{method.name}]({_stem(file)}.md#{_anchor_of_call(method)})",
                    _first_sentence(comments, (6, number, 2, place)),
                )
                for place, method in enumerate(service.method)
            ]
            parts += [f"## {service.name}", table(("call", "does"), rows)]
    shared = [f"- [{_title(file)}]({_stem(file)}.md)" for file in files if not file.service]
    return "\n\n".join([*parts, "## Shared messages", "\n".join(shared)]) + "\n"


class _Page:
    """The page of one file."""

    def __init__(self, file: FileDescriptorProto, homes: dict[str, str]) -> None:
        self._file = file
        self._homes = homes
        self._comments = _comments(file)

    def text(self) -> str:
        """The page as Markdown."""
        return "\n\n".join([f"# {_title(self._file)}", *self._parts()]) + "\n"

    def _parts(self) -> Iterator[str]:
        for number, service in enumerate(self._file.service):
            yield self._said((6, number))
            for place, method in enumerate(service.method):
                yield f"## {method.name} {{ #{_anchor_of_call(method)} }}"
                yield self._said((6, number, 2, place))
                yield self._signature(method)
        for number, message in enumerate(self._file.message_type):
            yield from self._message(message, (4, number))
        for number, enum in enumerate(self._file.enum_type):
            yield from self._enum(enum, (5, number))

    def _signature(self, method: MethodDescriptorProto) -> str:
        asked, answered = self._link(method.input_type), self._link(method.output_type)
        if method.client_streaming:
            asked = f"a stream of {asked}"
        if method.server_streaming:
            answered = f"a stream of {answered}"
        return f"Takes {asked}, answers {answered}."

    def _message(self, message: DescriptorProto, path: _Path) -> Iterator[str]:
        yield f"## {message.name} {{ #{message.name.lower()} }}"
        yield self._said(path)
        entries = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
        rows = [
            (f"`{field.name}`", self._type(field, entries), self._field(message, field, (*path, 2, number), path))
            for number, field in enumerate(message.field)
        ]
        yield table(("field", "type", "meaning"), rows) if rows else "It has no fields."

    def _field(self, message: DescriptorProto, field: FieldDescriptorProto, path: _Path, parent: _Path) -> str:
        said = self._said(path)
        if not field.HasField("oneof_index") or field.proto3_optional:
            return said
        choice = message.oneof_decl[field.oneof_index].name
        return f"{said} One of `{choice}`: {self._said((*parent, 8, field.oneof_index))}"

    def _enum(self, enum: EnumDescriptorProto, path: _Path) -> Iterator[str]:
        yield f"## {enum.name} {{ #{enum.name.lower()} }}"
        yield self._said(path)
        said = [(value, self._said((*path, 2, number))) for number, value in enumerate(enum.value)]
        if _stem(self._file) == _ERRORS:
            prefix = enum.value[0].name.removesuffix("UNSPECIFIED")
            reasons = [(value.name.removeprefix(prefix), *_code_and_meaning(meaning)) for value, meaning in said[1:]]
            yield table(("reason", "code", "meaning"), [(f"`{reason}`", code, rest) for reason, code, rest in reasons])
        else:
            yield table(("value", "number", "meaning"), [(f"`{v.name}`", str(v.number), text) for v, text in said])

    def _type(self, field: FieldDescriptorProto, entries: dict[str, DescriptorProto]) -> str:
        entry = entries.get(field.type_name.rpartition(".")[2])
        if entry is not None:
            key, value = (self._type(each, {}) for each in entry.field)
            return f"map of {key} to {value}"
        scalar = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
        name = self._link(field.type_name) if field.type_name else scalar
        if field.label == FieldDescriptorProto.LABEL_REPEATED:
            return f"repeated {name}"
        return f"optional {name}" if field.proto3_optional else name

    def _link(self, name: str) -> str:
        if name in self._homes:
            short = name.removeprefix(_PACKAGE)
            return f"[{short}]({self._homes[name]}.md#{short.lower()})"
        return f"[{name.rpartition('.')[2]}]({_WELL_KNOWN[name]})"

    def _said(self, path: _Path) -> str:
        return self._comments.get(path, "")


def _comments(file: FileDescriptorProto) -> dict[_Path, str]:
    return {tuple(one.path): cell(one.leading_comments) for one in file.source_code_info.location}


def _first_sentence(comments: dict[_Path, str], path: _Path) -> str:
    return comments.get(path, "").partition(". ")[0].removesuffix(".") + "."


def _code_and_meaning(comment: str) -> tuple[str, str]:
    code, _, meaning = comment.partition(": ")
    return code, meaning[:1].upper() + meaning[1:]


def _anchor_of_call(method: MethodDescriptorProto) -> str:
    return f"call-{method.name.lower()}"


def _stem(file: FileDescriptorProto) -> str:
    """Name of the file's page, without its ending."""
    return Path(file.name).stem.replace("_", "-")


def _title(file: FileDescriptorProto) -> str:
    if _stem(file) == _ERRORS:
        return "Error reasons"
    return file.service[0].name if file.service else f"Messages: {_stem(file).replace('-', ' ')}"
