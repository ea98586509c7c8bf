"""The bilingual sample that `hummock demo` learns and indexes: memories, a repository, and questions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple

from google.protobuf.json_format import ParseDict

from hummock_client.v1 import memory_pb2


class Sample(NamedTuple):
    """Memories to learn, whose ids make a second run change nothing; questions by language: `zh`, `en` and `code`."""

    memories: Sequence[memory_pb2.Memory]
    questions: Mapping[str, str]


def load_sample() -> Sample:
    """The sample that ships with the package."""
    data = json.loads(files("hummock_tools.demo").joinpath("records.json").read_text(encoding="utf-8"))
    return Sample([ParseDict(each, memory_pb2.Memory()) for each in data["memories"]], data["questions"])


@contextmanager
def sample_repository() -> Iterator[Path]:
    """The folder of the small Java project `repayment`; it may be a temporary copy, gone at exit."""
    with as_file(files("hummock_tools.demo").joinpath("repayment")) as folder:
        yield folder
