"""Changes one member of a JSON document and no other byte: comments, order, indent and trailing commas stay.

What editors keep as JSON is JSON with comments, which a parse and a dump would destroy. Here the text is changed where
the member stands; comments are blanked for reading, at the same length, so that places in both texts agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

_COMMENT: Final = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA: Final = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|,(?=\s*[}\]])')
_SPACE: Final = re.compile(r"\s*")
_DECODER: Final = json.JSONDecoder()


class NotReadable(ValueError):
    """The text cannot be read, so it is not changed either."""


class _Member(NamedTuple):
    """A member of an object, as places in the text."""

    key: str
    start: int
    value_start: int
    end: int


def read(text: str) -> dict[str, Any]:
    """The document, an object. An empty text is an empty one. Raises: NotReadable."""
    plain = _plain(text)
    if not plain.strip():
        return {}
    try:
        value = json.loads(plain)
    except ValueError as error:
        raise NotReadable(f"is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise NotReadable("is JSON, but no object")
    return value


def with_entry(text: str, table: str, name: str, entry: Mapping[str, Any]) -> str:
    """The text with an entry in a table of the document; both are made where they are missing. Raises: NotReadable."""
    document = read(text)
    if (document.get(table) or {}).get(name) == dict(entry):
        return text
    if not _plain(text).strip():
        return text + _dumped({table: {name: entry}}, "", "  ") + "\n"
    unit = _indent_unit(text)
    whole = _object_at(text, _skip(_plain(text), 0))
    place = next((member for member in whole.members if member.key == table), None)
    if place is None:
        return _checked(text, whole.with_member(table, {name: entry}, unit, unit), document, table, name, entry)
    if not isinstance(document[table], dict):
        raise NotReadable(f"holds a {table} that is no object")
    inner = _object_at(text, place.value_start)
    return _checked(text, inner.with_member(name, entry, 2 * unit, unit), document, table, name, entry)


def without_entry(text: str, table: str, name: str) -> str:
    """Remove an entry of a table from the text; unchanged if there is none. Raises: NotReadable."""
    document = read(text)
    if name not in (document.get(table) or {}):
        return text
    whole = _object_at(text, _skip(_plain(text), 0))
    place = next(member for member in whole.members if member.key == table)
    return _checked(text, _object_at(text, place.value_start).without_member(name), document, table, name, None)


class _Object(NamedTuple):
    """An object in the text: `start` is the place of its brace, `end` that after the other."""

    text: str
    uncommented: str
    start: int
    end: int
    members: tuple[_Member, ...]

    def with_member(self, key: str, value: object, indent: str, unit: str) -> str:
        """Return the whole text with the member set in this object, replacing one of that name."""
        for member in self.members:
            if member.key == key:
                indent = self._indent_of(member) or indent
                return self.text[: member.value_start] + _dumped(value, indent, unit) + self.text[member.end :]
        outer = indent.removesuffix(unit)
        if not self.members:
            inner = self.text[self.start + 1 : self.end - 1]
            # A comment may be all that it holds.
            kept = "" if not inner.strip() else inner if "\n" in inner else inner.rstrip()
            closing = kept if "\n" in kept else f"{kept}\n{outer}"
            added = f"\n{indent}{json.dumps(key)}: {_dumped(value, indent, unit)}"
            return self.text[: self.start + 1] + added + closing + self.text[self.end - 1 :]
        last = self.members[-1]
        indent = self._indent_of(last) or indent
        comma = self._comma_behind(last)
        at = comma + 1 if comma is not None else last.end
        line_end = self.text.find("\n", at, self.end)
        # What is written after the last member on its line belongs to it.
        at = line_end if line_end >= 0 and not self.uncommented[at:line_end].strip() else at
        added = f"\n{indent}{json.dumps(key)}: {_dumped(value, indent, unit)}{',' if comma is not None else ''}"
        if "\n" not in self.text[at : self.end]:
            added += f"\n{outer}"
        before = self.text[: last.end] + ("," if comma is None else "") + self.text[last.end : at]
        return before + added + self.text[at:]

    def without_member(self, key: str) -> str:
        """Return the whole text without the member of this object and its comma."""
        at = next(place for place, member in enumerate(self.members) if member.key == key)
        member = self.members[at]
        start = member.start - len(self._indent_of(member))
        start -= self.text[start - 1] == "\n"
        comma = self._comma_behind(member)
        if comma is not None:
            return self.text[:start] + self.text[comma + 1 :]
        before = self._comma_behind(self.members[at - 1]) if at else None
        if before is None:
            return self.text[:start] + self.text[member.end :]
        return self.text[:before] + self.text[before + 1 : start] + self.text[member.end :]

    def _comma_behind(self, member: _Member) -> int | None:
        """The place of the comma that follows, also of one that ends the object."""
        at = _skip(self.uncommented, member.end)
        return at if self.uncommented[at] == "," else None

    def _indent_of(self, member: _Member) -> str:
        line = self.text[self.text.rfind("\n", 0, member.start) + 1 : member.start]
        return line if not line.strip() else ""


def _object_at(text: str, start: int) -> _Object:
    plain = _plain(text)
    members = tuple(_members(plain, start))
    end = _DECODER.raw_decode(plain, start)[1]
    return _Object(text, _uncommented(text), start, end, members)


def _members(plain: str, start: int) -> Iterator[_Member]:
    at = _skip(plain, start + 1)
    while plain[at] != "}":
        key, key_end = _DECODER.raw_decode(plain, at)
        value_start = _skip(plain, _skip(plain, key_end) + 1)
        _, end = _DECODER.raw_decode(plain, value_start)
        yield _Member(key, at, value_start, end)
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)


def _plain(text: str) -> str:
    """The text with comments and trailing commas as spaces, at the same places."""
    return _TRAILING_COMMA.sub(_blanked, _uncommented(text))


def _uncommented(text: str) -> str:
    """The text with comments as spaces, at the same places."""
    return _COMMENT.sub(_blanked, text.replace("\ufeff", " ", 1))


def _blanked(token: re.Match[str]) -> str:
    return token[0] if token[0].startswith('"') else re.sub(r"[^\n]", " ", token[0])


def _skip(plain: str, at: int) -> int:
    found = _SPACE.match(plain, at)
    return found.end() if found else at


def _indent_unit(text: str) -> str:
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else "  "


def _dumped(value: object, indent: str, unit: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", f"\n{indent}")


def _checked(
    before: str, after: str, document: dict[str, Any], table: str, name: str, entry: Mapping[str, Any] | None
) -> str:
    """Return the changed text if only the entry differs. Raises: NotReadable."""
    wanted = {**document, table: dict(document.get(table) or {})}
    if entry is None:
        del wanted[table][name]
    else:
        wanted[table][name] = dict(entry)
    if read(after) != wanted:
        raise NotReadable("has a form that cannot be changed safely; put the entry in by hand (--print shows it)")
    return after
