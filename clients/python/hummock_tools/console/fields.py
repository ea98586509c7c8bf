"""Fields of a query or a form, read by name and checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self
from urllib.parse import parse_qsl

from starlette.requests import Request

from hummock_tools.console.guard import MAX_BODY_BYTES

_MAX_FIELDS = 2000
_LARGEST_WHOLE = (1 << 32) - 1


class BadInput(Exception):
    """A request that no page of ours sends; the message is for people."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Fields:
    """Names and values in their order; a name may come more than once."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._pairs = tuple(pairs)

    @classmethod
    def of_query(cls, request: Request) -> Self:
        """The fields of an address's query string."""
        return cls(request.query_params.multi_items())

    @classmethod
    async def of_body(cls, request: Request) -> Self:
        """The fields of a form, with the ends of lines as they are stored. Raises: BadInput."""
        if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
            raise BadInput("forms are sent as application/x-www-form-urlencoded", 415)
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY_BYTES:
                raise BadInput(f"the form has more than {MAX_BODY_BYTES} bytes", 413)
        try:
            pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
        except ValueError as error:
            raise BadInput(f"the form cannot be read: {error}") from error
        return cls([(name, value.replace("\r\n", "\n")) for name, value in pairs])

    def __contains__(self, name: str) -> bool:
        return any(name == each for each, _ in self._pairs)

    def text(self, name: str) -> str:
        """The value, or an empty text."""
        return next((value for each, value in self._pairs if each == name), "")

    def many(self, name: str) -> list[str]:
        """All values of a name that are not empty."""
        return [value for each, value in self._pairs if each == name and value]

    def listed(self, name: str, separator: str = ",") -> list[str]:
        """Parts of a text between separators; white space around a part is removed, empty parts are left out."""
        return [part for part in (each.strip() for each in self.text(name).split(separator)) if part]

    def number(self, name: str) -> float | None:
        """The number; None where nothing is said. Raises: BadInput."""
        value = self.text(name).strip()
        if not value:
            return None
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise BadInput(f"{name} is no number")
        return number

    def whole(self, name: str) -> int | None:
        """The number, which fits 32 bits; None where nothing is said. Raises: BadInput."""
        number = self.number(name)
        if number is None:
            return None
        if not number.is_integer() or not 0 <= number <= _LARGEST_WHOLE:
            raise BadInput(f"{name} is no whole number from 0 to {_LARGEST_WHOLE}")
        return int(number)

    def choice(self, name: str, among: Sequence[int]) -> int:
        """One of these values of an enum; 0 where nothing is said. Raises: BadInput."""
        value = self.whole(name) or 0
        if value and value not in among:
            raise BadInput(f"{name} is none of those that there are")
        return value
