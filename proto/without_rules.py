"""Writes the contract as clients take it: without validation rules, so that no client needs buf/validate.

    python without_rules.py protos FOLDER      the .proto files, comments kept, and those of google/rpc alongside
    python without_rules.py descriptors FROM TO  a descriptor set without the import; rules stay as bytes of options

The stubs of Python are made of the latter: who does not know the rules never sees them, and the service reads them from
the very classes that clients use. Run in this folder, by `make proto` and wherever a client is built; the former needs
nothing but Python.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

RULES = "buf/validate/validate.proto"
_IMPORT = re.compile(rf'^import "{RULES}";\n', re.MULTILINE)
_STATEMENT = re.compile(r"^ *option \(buf\.validate\.[^;]*;\n\n?", re.MULTILINE)
_FIELD_OPTIONS = re.compile(r"(?<= \d) \[|(?<= \d\d) \[")
_COMMENT_OR_TEXT = re.compile(r'//[^\n]*|"(?:[^"\\]|\\.)*"')


def main() -> None:
    """Runs the command that the first argument names."""
    match sys.argv[1:]:
        case ["protos", folder]:
            write_protos(Path(folder))
        case ["descriptors", source, target]:
            from google.protobuf.descriptor_pb2 import FileDescriptorSet

            descriptors = FileDescriptorSet.FromString(Path(source).read_bytes())
            Path(target).write_bytes(without_import(descriptors).SerializeToString())
        case _:
            sys.exit(__doc__)


def write_protos(folder: Path) -> None:
    """Writes all files that a client needs, at the paths by which they import each other."""
    for source in sorted(Path().glob("hummock/v1/*.proto")):
        _write(folder / source, without_rules(source.read_text(encoding="utf-8")))
    for source in sorted(Path().glob("google/rpc/*")):
        _write(folder / source, source.read_text(encoding="utf-8"))


def without_rules(proto: str) -> str:
    """A copy of the file's text without validation rules. Raises: ValueError, where some are left."""
    bare = _STATEMENT.sub("", _IMPORT.sub("", proto))
    # Brackets in comments and texts close nothing: they are looked at as if they were blank.
    seen = _COMMENT_OR_TEXT.sub(lambda found: "_" * len(found[0]), bare)
    parts: list[str] = []
    end = 0
    for found in _FIELD_OPTIONS.finditer(seen):
        parts.append(bare[end : found.start()])
        end = _closing(seen, found.end() - 1) + 1
    text = "".join(parts) + bare[end:]
    if "buf.validate" in _COMMENT_OR_TEXT.sub("", text):
        raise ValueError("a rule is written in a way that is not known here")
    return text


def without_import(descriptors: FileDescriptorSet) -> FileDescriptorSet:
    """A copy of the files without the file of the rules; no file imports it any more."""
    bare = type(descriptors)()
    for file in descriptors.file:
        if file.name == RULES:
            continue
        kept = [name for name in file.dependency if name != RULES]
        del file.dependency[:]
        file.dependency.extend(kept)
        bare.file.append(file)
    return bare


def _closing(text: str, start: int) -> int:
    """The place of the bracket that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"[": 1, "]": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise ValueError("a bracket is not closed")


def _write(path: Path, text: str) -> None:
    """Leaves a file alone that has this text: another client may be built of it right now."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
