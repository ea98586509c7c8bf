"""Files as records, by their format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum

from google.protobuf.json_format import Parse, ParseError

from hummock.importing import foreign
from hummock.importing.fields import BadLine, BadRecord, Fields, Line, OtherProject
from hummock.importing.json_items import Item, items
from hummock.v1.transfer_pb2 import TransferChunk, TransferMemory, TransferRecord

Part = Line | BadLine | OtherProject


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
            return _foreign(items(lines), lambda number, fields: _line(number, foreign.mem0_memory(fields)))
        case FileFormat.LEGACY:
            return _foreign(items(lines), lambda number, fields: _legacy(number, fields, project_key, emb_space))


def _records(lines: Iterable[bytes]) -> Iterator[Part]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield Line(number=number, record=Parse(text, TransferRecord()))
            except UnicodeDecodeError as error:
                yield BadLine(number=number, reason=f"is not UTF-8 (byte {error.start})")
            except (ParseError, RecursionError) as error:
                yield BadLine(number=number, reason=" ".join(str(error).split()))


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
    key = foreign.legacy_project_key(fields)
    if project_key and key not in ("", project_key):
        return OtherProject(number=number, key=key)
    memory, values = foreign.legacy_memory(fields), foreign.legacy_vector(fields)
    if values and emb_space:
        memory.emb_space = emb_space
        memory.chunks.append(TransferChunk(values=values))
    return _line(number, memory, has_unused_vector=bool(values and not emb_space))


def _line(number: int, memory: TransferMemory, *, has_unused_vector: bool = False) -> Line:
    return Line(number=number, record=TransferRecord(memory=memory), has_unused_vector=has_unused_vector)
