"""Files of memories, of our own export and of others, as records for an Import. Talks to nobody."""

from hummock_tools.importing.fields import BadLine, Line, NotWhole, OtherProject, Part, Place, Retired
from hummock_tools.importing.formats import FileFormat, read_file
from hummock_tools.importing.json_items import messages
from hummock_tools.importing.lines import BadFile, lines_of

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
