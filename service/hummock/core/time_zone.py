"""Time zones by their names, and wall-clock times in them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from hummock.core.errors import InvalidRequest

UTC_NAME: Final = "UTC"
"""Names UTC where an empty name would leave the zone to the project."""

_OFFSET: Final = re.compile(r"([+-])(\d\d):([0-5]\d)", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(1024)
def zone_of(name: str, field: str = "time_zone") -> tzinfo:
    """The zone of an IANA name such as "Asia/Shanghai" or an offset such as "+08:00"; UTC for an empty name.

    Raises: InvalidRequest, for `field`: there is no such zone.
    """
    if not name:
        return UTC
    offset = _OFFSET.fullmatch(name)
    try:
        if offset is None:
            return ZoneInfo(name)
        sign = -1 if offset[1] == "-" else 1
        return timezone(sign * timedelta(hours=int(offset[2]), minutes=int(offset[3])))
    except (ValueError, OSError, LookupError):  # not found, a path, or the name of a folder
        message = (
            f'is {name!r}, which is no time zone; give a name such as "Asia/Shanghai" or an offset such as "+08:00"'
        )
        raise InvalidRequest(field, message) from None


def wall_clock(moment_s: float, zone: tzinfo) -> datetime:
    """The wall clock in the zone at these Unix seconds, as if it were UTC. Raises: OverflowError."""
    moment = _EPOCH + timedelta(seconds=moment_s)
    return moment if zone is UTC else moment.astimezone(zone).replace(tzinfo=UTC)


def day_number(moment_s: float, zone: tzinfo) -> int:
    """Days from 1970-01-01 to the day of the wall clock in the zone. Raises: OverflowError."""
    return (wall_clock(moment_s, zone) - _EPOCH).days


def unix_seconds(wall: datetime, zone: tzinfo) -> float:
    """Inverse of `wall_clock`; a time that occurs twice in autumn is taken as the first.

    At the end of the calendar the zone's offset is taken as 0.
    """
    if zone is not UTC:
        try:
            wall = wall.replace(tzinfo=zone).astimezone(UTC)
        except OverflowError:
            wall = wall.replace(tzinfo=UTC)
    return (wall - _EPOCH).total_seconds()
