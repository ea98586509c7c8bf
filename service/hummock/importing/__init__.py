"""Files of memories, of our own export and of others, as records for an Import. Talks to nobody."""

from hummock.importing.fields import BadLine, Line, OtherProject
from hummock.importing.formats import FileFormat, Part, read_file
from hummock.importing.json_items import messages

__all__ = ["BadLine", "FileFormat", "Line", "OtherProject", "Part", "messages", "read_file"]
