"""Changes one table of a TOML document, such as `[mcp_servers.hummock]`; comments, order and the rest stay."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from hummock_tools.setup.jsonc import NotReadable


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
    return _checked(text, parent, {**tables, name: merged}, tomlkit.dumps(document))


def without_table(text: str, parent: str, name: str) -> str:
    """The text without a table below its parent; comments behind it stay. Raises: NotReadable."""
    tables = _tables(text, parent)
    if name not in tables:
        return text
    document = _parsed(text)
    del document[parent][name]
    del tables[name]
    # What tomlkit takes out goes up to the next table, with all comments.
    return _checked(text, parent, tables, _without_lines(text, parent, name), tomlkit.dumps(document))


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


def _checked(before: str, parent: str, wanted: Mapping[str, Any], *texts: str) -> str:
    """Return the first text that says what is wanted below the parent, and nothing new beside. Raises: NotReadable."""
    others = {name: value for name, value in tomllib.loads(before).items() if name != parent}
    for text in texts:
        try:
            said = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        if said.pop(parent, {}) == wanted and said == others:
            return text
    raise NotReadable("has a form that cannot be changed safely; put the entry in by hand (--print shows it)")
