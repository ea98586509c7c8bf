"""Reads files of memories, of our own export and of others, as records for an import. Makes no calls."""

from hummock_tools.importing.fields import BadLine, Line, NotWhole, OtherProject, Part, Place, Retired
from hummock_tools.importing.formats import FileFormat, read_file
from hummock_tools.importing.json_items import BadFile, lines_of, messages

__all__ = [
    "BadFile",
    "BadLine",
    "FileFormat",
    "Line",
    "NotWhole",
    "OtherProject",
    "Part",
    "Place",
    "Retired",
    "lines_of",
    "messages",
    "read_file",
]
