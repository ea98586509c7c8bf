"""Files of memories, of our own export and of others, as records for an Import. Talks to nobody."""

from hummock.importing.fields import BadLine, Line, OtherProject
from hummock.importing.reading import FileFormat, Part, read_file

__all__ = ["BadLine", "FileFormat", "Line", "OtherProject", "Part", "read_file"]
