"""Files of memories, of our own export and of others, as records for an Import. Talks to nobody."""

from hummock.importing.fields import BadLine, Line, NotWhole, OtherProject, Part, Place, Retired
from hummock.importing.formats import FileFormat, read_file
from hummock.importing.json_items import messages
from hummock.importing.lines import BadFile, lines_of

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
