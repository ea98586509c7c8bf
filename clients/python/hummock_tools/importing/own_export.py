"""Files of `hummock export`: whether one is whole, and what it holds up to where it is not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hummock_client.v1.transfer_pb2 import TransferEnd, TransferRecord
from hummock_tools.importing.fields import BadLine, Line, NotWhole, Part, Place
from hummock_tools.importing.first_version import of_today, upgraded
from hummock_tools.importing.json_items import messages


def records(lines: Iterable[bytes]) -> Iterator[Part]:
    """The records of an export, which ends with how many there are. Raises: BadFile."""
    found = messages(lines, TransferRecord, upgraded)
    read = memories = wrong = last = 0
    for one in found:
        if isinstance(one, BadLine):
            last, wrong = one.place.line, wrong + 1
            yield one
        else:
            place, record = one
            last = place.line
            if record.HasField("header") and read + wrong:
                yield _another(place)
                return
            yield Line(place=place, record=of_today(record))
            if record.HasField("end"):
                yield from _behind(place, _differing(record.end, read, memories, wrong), found)
                return
            read += 1
            memories += record.HasField("memory")
    yield NotWhole(place=Place(line=last + 1), reason="was cut off: it has no end" if last else "is empty")


def _differing(end: TransferEnd, read: int, memories: int, wrong: int) -> str:
    """Describes a mismatch with the counts of the end record; empty if there is none. A bad line may be a memory."""
    if end.record_count and end.record_count != read + wrong:
        return f"is not what was exported: it says {end.record_count} records, and holds {read + wrong}"
    if not memories <= end.memory_count <= memories + wrong:
        return f"is not what was exported: it says {end.memory_count} memories, and holds {memories}"
    return ""


def _behind(end: Place, differing: str, found: Iterator[tuple[Place, TransferRecord] | BadLine]) -> Iterator[NotWhole]:
    if differing:
        yield NotWhole(place=end, reason=differing)
        return
    for one in found:
        place = one.place if isinstance(one, BadLine) else one[0]
        if not isinstance(one, BadLine) and one[1].HasField("header"):
            yield _another(place)
        else:
            yield NotWhole(place=place, reason=f"goes on behind its end: {place} was not read, nor what follows")
        return


def _another(place: Place) -> NotWhole:
    reason = f"is more than one export: another one begins on {place}, and was not read; give each a file of its own"
    return NotWhole(place=place, reason=reason)
