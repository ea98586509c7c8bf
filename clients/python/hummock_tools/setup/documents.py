"""Changes one value of a JSON document, or one table of a TOML document; comments, order and all other bytes stay.

What editors keep as JSON is JSON with comments, which a parse and a dump would destroy. Here the text is changed where
the value stands; comments are blanked for reading, at the same length, so that places in both texts agree. A path is
the keys that lead to a value, outermost first.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, NamedTuple

import tomlkit
from tomlkit.exceptions import TOMLKitError

_UNSAFE: Final = "has a form that cannot be changed safely; put the entry in by hand (--print shows it)"
_COMMENT: Final = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA: Final = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|,(?=\s*[}\]])')
_SPACE: Final = re.compile(r"\s*")
_DECODER: Final = json.JSONDecoder()


class NotReadable(ValueError):
    """The text cannot be read, so it is not changed either."""


class _Member(NamedTuple):
    """A member of an object or an item of a list, as places in the text; an item's key is its index."""

    key: str | int
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


def with_value(text: str, path: Sequence[str], value: object) -> str:
    """The text with a value at a path; objects on the way are made where they are missing. Raises: NotReadable."""
    document = read(text)
    wanted = deepcopy(document)
    known: dict[str, Any] = wanted
    for key in path[:-1]:
        known = _child(known, key, dict)
    if path[-1] in known and known[path[-1]] == value:
        return text
    known[path[-1]] = value
    if not _plain(text).strip():
        return text + _dumped(wanted, "", "  ") + "\n"
    unit = _indent_unit(text)
    place, depth = _container_at(text, _skip(_plain(text), 0)), 0
    while depth < len(path) - 1:
        member = place.member(path[depth])
        if member is None or text[member.value_start] != "{":
            break
        place, depth = _container_at(text, member.value_start), depth + 1
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    return _checked(place.with_member(path[depth], value, (depth + 1) * unit, unit), wanted)


def with_item(text: str, path: Sequence[str], item: object) -> str:
    """The text with an item at the end of the list at a path, unless the list has it. Raises: NotReadable."""
    wanted = read(text)
    known: dict[str, Any] = wanted
    for key in path[:-1]:
        known = _child(known, key, dict)
    items = _child(known, path[-1], list)
    if item in items:
        return text
    found = _place_of(text, path)
    if found is None:
        return with_value(text, path, [item])
    items.append(item)
    unit = _indent_unit(text)
    changed = _container_at(text, found.value_start).with_item(item, (len(path) + 1) * unit, unit)
    return _checked(changed, wanted)


def without(text: str, path: Sequence[str | int]) -> str:
    """Remove the value at a path, whose last part may be an index; unchanged if there is none. Raises: NotReadable."""
    wanted = read(text)
    known: Any = wanted
    for key in path[:-1]:
        known = known.get(key) if isinstance(known, dict) else None
    key = path[-1]
    is_there = key in known if isinstance(known, dict) else isinstance(known, list) and key in range(len(known))
    if not is_there:
        return text
    del known[key]
    place = _container_at(text, _skip(_plain(text), 0))
    for each in path[:-1]:
        place = _container_at(text, next(member for member in place.members if member.key == each).value_start)
    return _checked(place.without_member(key), wanted)


def _child(known: dict[str, Any], key: str, kind: type[Any]) -> Any:
    """The object or list under a key, which is made where it is missing or null. Raises: NotReadable."""
    if known.get(key) is None:
        known[key] = kind()
    if not isinstance(known[key], kind):
        raise NotReadable(f"holds a {key} that is no {'object' if kind is dict else 'list'}")
    return known[key]


def _place_of(text: str, path: Sequence[str]) -> _Member | None:
    """The object or list at a path; None where there is none."""
    if not _plain(text).strip():
        return None
    member, start = None, _skip(_plain(text), 0)
    for key in path:
        member = _container_at(text, start).member(key)
        if member is None or text[member.value_start] not in "{[":
            return None
        start = member.value_start
    return member


class _Container(NamedTuple):
    """An object or a list in the text: `start` is the place of its bracket, `end` that after the other."""

    text: str
    uncommented: str
    start: int
    end: int
    members: tuple[_Member, ...]

    def member(self, key: str) -> _Member | None:
        """The first member of this key."""
        return next((member for member in self.members if member.key == key), None)

    def with_member(self, key: str, value: object, indent: str, unit: str) -> str:
        """Return the whole text with the member set in this object, replacing one of that key."""
        member = self.member(key)
        if member is None:
            return self._with_last(f"{json.dumps(key, ensure_ascii=False)}: ", value, indent, unit)
        indent = self._indent_of(member) or indent
        return self.text[: member.value_start] + _dumped(value, indent, unit) + self.text[member.end :]

    def with_item(self, item: object, indent: str, unit: str) -> str:
        """Return the whole text with an item behind the others of this list."""
        return self._with_last("", item, indent, unit)

    def _with_last(self, label: str, value: object, indent: str, unit: str) -> str:
        outer = indent.removesuffix(unit)
        if not self.members:
            inner = self.text[self.start + 1 : self.end - 1]
            # A comment may be all that it holds.
            kept = "" if not inner.strip() else inner if "\n" in inner else inner.rstrip()
            closing = kept if "\n" in kept else f"{kept}\n{outer}"
            added = f"\n{indent}{label}{_dumped(value, indent, unit)}"
            return self.text[: self.start + 1] + added + closing + self.text[self.end - 1 :]
        last = self.members[-1]
        if "\n" not in self.text[self.start : self.end]:
            comma = self._comma_behind(last)
            at, added = (last.end, ", {}") if comma is None else (comma + 1, " {},")
            said = f"{label}{json.dumps(value, ensure_ascii=False)}"
            return self.text[:at] + added.replace("{}", said) + self.text[at:]
        indent = self._indent_of(last) or indent
        comma = self._comma_behind(last)
        at = comma + 1 if comma is not None else last.end
        line_end = self.text.find("\n", at, self.end)
        # What is written after the last member on its line belongs to it.
        at = line_end if line_end >= 0 and not self.uncommented[at:line_end].strip() else at
        added = f"\n{indent}{label}{_dumped(value, indent, unit)}{',' if comma is not None else ''}"
        if "\n" not in self.text[at : self.end]:
            added += f"\n{outer}"
        before = self.text[: last.end] + ("," if comma is None else "") + self.text[last.end : at]
        return before + added + self.text[at:]

    def without_member(self, key: str | int) -> str:
        """Return the whole text without the member of this container and its comma."""
        at = next(place for place, member in enumerate(self.members) if member.key == key)
        member = self.members[at]
        start = member.start - len(self._indent_of(member))
        start -= self.text[start - 1] == "\n"
        while at and self.text[start - 1] in " \t":
            start -= 1
        comma = self._comma_behind(member)
        if comma is not None:
            return self.text[:start] + self.text[comma + 1 :]
        before = self._comma_behind(self.members[at - 1]) if at else None
        if before is None:
            return self.text[:start] + self.text[member.end :]
        return self.text[:before] + self.text[before + 1 : start] + self.text[member.end :]

    def _comma_behind(self, member: _Member) -> int | None:
        """The place of the comma that follows, also of one that ends the container."""
        at = _skip(self.uncommented, member.end)
        return at if self.uncommented[at] == "," else None

    def _indent_of(self, member: _Member) -> str:
        line = self.text[self.text.rfind("\n", 0, member.start) + 1 : member.start]
        return line if not line.strip() else ""


def _container_at(text: str, start: int) -> _Container:
    plain = _plain(text)
    members = tuple(_items(plain, start) if plain[start] == "[" else _members(plain, start))
    end = _DECODER.raw_decode(plain, start)[1]
    return _Container(text, _uncommented(text), start, end, members)


def _members(plain: str, start: int) -> Iterator[_Member]:
    at = _skip(plain, start + 1)
    while plain[at] != "}":
        key, key_end = _DECODER.raw_decode(plain, at)
        value_start = _skip(plain, _skip(plain, key_end) + 1)
        _, end = _DECODER.raw_decode(plain, value_start)
        yield _Member(key, at, value_start, end)
        at = _behind_comma(plain, end)


def _items(plain: str, start: int) -> Iterator[_Member]:
    at, index = _skip(plain, start + 1), 0
    while plain[at] != "]":
        _, end = _DECODER.raw_decode(plain, at)
        yield _Member(index, at, at, end)
        at, index = _behind_comma(plain, end), index + 1


def _behind_comma(plain: str, end: int) -> int:
    at = _skip(plain, end)
    return _skip(plain, at + 1) if plain[at] == "," else at


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


def _checked(after: str, wanted: dict[str, Any]) -> str:
    """Return the changed text if it says what is wanted and nothing else. Raises: NotReadable."""
    if read(after) != wanted:
        raise NotReadable(_UNSAFE)
    return after


def with_table(text: str, parent: str, name: str, entry: Mapping[str, Any]) -> str:
    """The text with a table below its parent; other keys of the table of before stay. Raises: NotReadable."""
    tables = _tables(text, parent)
    known = tables.get(name)
    merged = {**(known if isinstance(known, dict) else {}), **entry}
    if known == merged:
        return text
    document = _parsed(text)
    if parent not in document:
        document[parent] = tomlkit.table(is_super_table=True)
    if name in tables:
        document[parent][name].update(merged)
    else:
        document[parent][name] = merged
    return _first_that_says(text, parent, {**tables, name: merged}, tomlkit.dumps(document))


def without_table(text: str, parent: str, name: str) -> str:
    """The text without a table below its parent; comments behind it stay. Raises: NotReadable."""
    tables = _tables(text, parent)
    if name not in tables:
        return text
    document = _parsed(text)
    del document[parent][name]
    del tables[name]
    # What tomlkit takes out goes up to the next table, with all comments.
    return _first_that_says(text, parent, tables, _without_lines(text, parent, name), tomlkit.dumps(document))


def with_table_of(text: str, parent: str, name: str, other: str) -> str:
    """The text with the table that another text has, if it has one. Raises: NotReadable."""
    known = _tables(other, parent).get(name)
    return with_table(text, parent, name, known) if isinstance(known, dict) else text


def _tables(text: str, parent: str) -> dict[str, Any]:
    try:
        tables = tomllib.loads(text).get(parent, {})
    except tomllib.TOMLDecodeError as error:
        raise NotReadable(f"is not valid TOML: {error}") from error
    if not isinstance(tables, dict):
        raise NotReadable(f"holds a {parent} that is no table")
    return tables


def _parsed(text: str) -> Any:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise NotReadable(f"is not valid TOML: {error}") from error


def _without_lines(text: str, parent: str, name: str) -> str:
    """The text without the lines of a table and of those inside it, nor the blank line above if another follows.

    It is wrong where a line inside a text or a list looks like the head of a table.
    """
    ours = re.compile(rf"\s*\[\s*{re.escape(parent)}\s*\.\s*{re.escape(name)}\s*[.\]]")
    kept: list[str] = []
    tail: list[str] = []  # blank lines and comments inside, which belong to what follows
    is_inside = False
    for line in [*text.splitlines(keepends=True), ""]:
        if line.lstrip().startswith("[") or not line:
            if is_inside and kept and not kept[-1].strip() and not (tail[0] if tail else line).strip():
                kept.pop()
            is_inside = ours.match(line) is not None
        if not is_inside:
            kept += [*tail, line]
            tail = []
        elif line.strip() and not line.lstrip().startswith("#"):
            tail = []
        else:
            tail.append(line)
    return "".join(kept)


def _first_that_says(before: str, parent: str, wanted: Mapping[str, Any], *texts: str) -> str:
    """Return the first text that says what is wanted below the parent, and nothing new beside. Raises: NotReadable."""
    others = {name: value for name, value in tomllib.loads(before).items() if name != parent}
    for text in texts:
        try:
            said = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        if said.pop(parent, {}) == wanted and said == others:
            return text
    raise NotReadable(_UNSAFE)
