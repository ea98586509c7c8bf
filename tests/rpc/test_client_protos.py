"""The contract as clients take it: the same, but for the rules."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

ROOT = Path(__file__).parents[2]
FULL, BARE = ROOT / "proto", ROOT / "clients" / "proto"
RULES = "buf/validate/validate.proto"
protoc = pytest.importorskip("grpc_tools.protoc")


def described(folder: Path, target: Path) -> dict[str, FileDescriptorProto]:
    """The files of a folder, as a compiler that knows this folder alone reads them."""
    names = sorted(str(path.relative_to(folder)) for path in folder.glob("hummock/v1/*.proto"))
    well_known = Path(sys.modules["grpc_tools"].__file__ or "").parent / "_proto"
    arguments = [f"-I{folder}", f"-I{well_known}", f"--descriptor_set_out={target}", *names]
    assert protoc.main(["protoc", *arguments]) == 0
    return {one.name: one for one in FileDescriptorSet.FromString(target.read_bytes()).file}


def messages(of: FileDescriptorProto | DescriptorProto) -> Iterator[DescriptorProto]:
    for one in of.message_type if isinstance(of, FileDescriptorProto) else of.nested_type:
        yield one
        yield from messages(one)


def without_rules(file: FileDescriptorProto) -> FileDescriptorProto:
    kept = [name for name in file.dependency if name != RULES]
    del file.dependency[:]
    file.dependency.extend(kept)
    for message in messages(file):
        if not message.options.map_entry:
            message.ClearField("options")
        for part in (*message.field, *message.oneof_decl):
            part.ClearField("options")
    return file


def test_they_say_what_the_contract_says(tmp_path: Path) -> None:
    full, bare = described(FULL, tmp_path / "full"), described(BARE, tmp_path / "bare")
    assert bare.keys() == full.keys()
    for name, file in full.items():
        assert bare[name] == without_rules(file), name


@pytest.mark.parametrize("path", sorted(BARE.glob("hummock/v1/*.proto")), ids=lambda path: path.name)
def test_they_need_no_rules_and_keep_every_comment(path: Path) -> None:
    def comments(text: str) -> list[str]:
        return [line.strip() for line in text.splitlines() if line.lstrip().startswith("//")]

    bare, full = path.read_text("utf-8"), (FULL / "hummock" / "v1" / path.name).read_text("utf-8")
    assert "buf.validate" not in bare
    assert RULES not in bare
    assert comments(bare) == comments(full)


_KEYWORDS = """
    abstract as async await become box break case catch class const constructor continue crate debugger default delete
    do dyn else enum export extends extern false final finally fn for fun function gen if impl implements import in
    instanceof interface is let loop macro match mod move mut new null object override package priv private protected
    pub public ref return self static struct super switch this throw trait true try type typealias typeof unsafe
    unsized use val var virtual void when where while with yield
"""
"""Keywords of Kotlin, TypeScript and Rust: each generator renames fields and calls of these names in its own way."""

_TAKEN = """
    Any Array Blob Boolean Box Cache Comment Date Document Element Err Error Event File Filter Function History Image
    Import Iterator List Location Lock Map Module Node None Nothing Notification Number Object Ok Option Pair Plugin
    Project Promise Proxy Range Record Request Response Result Selection Sequence Session Set Some String Symbol Text
    Triple Unit Vec Vector Worker
"""
"""Types that these languages bring along, or that a plugin's own code is full of."""


def test_no_name_of_the_contract_is_a_word_or_a_type_of_a_clients_language(tmp_path: Path) -> None:
    files = described(BARE, tmp_path / "names").values()
    each = [message for file in files for message in messages(file) if not message.options.map_entry]
    fields = [field.name for message in each for field in message.field]
    fields += [choice.name for message in each for choice in message.oneof_decl]
    calls = [
        method.name[0].lower() + method.name[1:] for file in files for one in file.service for method in one.method
    ]
    assert len(fields) > 500
    assert len(calls) > 40
    assert {*fields, *calls} & set(_KEYWORDS.split()) == set()
    types = {*(message.name for message in each), *(enum.name for file in files for enum in file.enum_type)}
    assert types & set(_TAKEN.split()) == set()
