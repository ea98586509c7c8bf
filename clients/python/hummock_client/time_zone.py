"""The time zone of whoever calls, as the environment names it or this machine's clock has it."""

from __future__ import annotations

import os
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

ZONE_VARIABLE: Final = "HUMMOCK_TIME_ZONE"

_LOCAL_TIME: Final = Path("/etc/localtime")
_ZONES: Final = "/zoneinfo/"
_SAYS_NOTHING: Final = frozenset(["UTC", "UCT", "GMT", "Universal", "Zulu"])


def named_zone() -> str:
    """The zone that HUMMOCK_TIME_ZONE names; empty where it names none."""
    return os.environ.get(ZONE_VARIABLE, "")


def own_zone() -> str:
    """The zone of a person at this machine: as named, else an IANA name or an offset of the machine's clock.

    Empty where the clock shows UTC, as in most containers: that says nothing of where somebody lives.
    """
    zone = named_zone() or _machine_zone()
    if zone:
        return "" if zone.startswith("Etc/") or zone in _SAYS_NOTHING else zone
    offset = f"{datetime.now().astimezone():%z}"
    return "" if offset == "+0000" else f"{offset[:3]}:{offset[3:5]}"


def own_clock() -> tzinfo:
    """The zone in which a person at this machine reads and writes times.

    Raises: ValueError: HUMMOCK_TIME_ZONE names no zone.
    """
    zone = own_zone()
    if not zone:
        return UTC
    try:
        return datetime.strptime(zone, "%z").tzinfo or UTC if zone[0] in "+-" else ZoneInfo(zone)
    except (OSError, LookupError, ValueError) as error:
        message = f'{ZONE_VARIABLE} is {zone!r}; give a name such as "Asia/Shanghai" or an offset such as "+08:00"'
        raise ValueError(message) from error


def _machine_zone() -> str:
    """The IANA name that TZ or /etc/localtime gives; empty where there is none."""
    named = os.environ.get("TZ", "").removeprefix(":") or str(_LOCAL_TIME.resolve()).rpartition(_ZONES)[2]
    try:
        return ZoneInfo(named).key if named else ""
    except (OSError, LookupError, ValueError):
        return ""
