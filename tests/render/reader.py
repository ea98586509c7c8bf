"""Readers that know only our delimiters, and get back exactly what was stored."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass

from hummock.render.section import Wording
from hummock.text.markers import inert, is_spoken

_ENTITY = re.compile(r"&((?:amp;)*)(lt;|#[0-9]{2,5};)")
_SIGNS = {"lt;": "<", "#65308;": "＜", "#65124;": "﹤", "#91;": "[", "#65339;": "［", "#65095;": "﹇"} | {
    "#93;": "]", "#65341;": "］", "#65096;": "﹈"
}  # fmt: skip
_BLOCK = re.compile(r"((?:`{3,}|~{3,})[^\S\n]{0,8}\\*)\\(?=tool_(?:code|outputs?|call|response))")


def uninert(text: str) -> str:
    """Inverse of `inert`: an entity stands for a character that the text after it makes dangerous."""
    read = _BLOCK.sub(r"\1", text)
    for found in reversed(list(_ENTITY.finditer(read))):
        if found[2] not in _SIGNS:
            continue
        plain = f"&{found[1][4:]}{found[2]}" if found[1] else _SIGNS[found[2]]
        before, behind = read[: found.start()], read[found.end() :]
        near = before[-2:]
        if inert(near + plain + behind[:120]).startswith(near + found[0]):
            read = before + plain + behind
    return read


def unspoken(text: str, also: str = r"(?!)") -> str:
    """The text without the backslashes before lines that read as a speaker's, or as one of these."""
    return "\n".join(_without_backslash(line, rf"[^\S\n]*\\*(?:{also})") for line in text.split("\n"))


def _without_backslash(line: str, beginning: str) -> str:
    is_marked = re.match(beginning, line) or is_spoken(line)
    return re.sub(r"^([^\S\n]*)\\", r"\1", line) if is_marked else line


def unquoted(text: str) -> str:
    return uninert(unspoken(text, r"\d+\. \[ID:|> Summary:"))


def unstring(text: str) -> str:
    return uninert(re.sub(r"\\(.)", r"\1", text))


def read_entries(rest: str) -> tuple[list[tuple[str, str]], str]:
    """Ids and bodies of the memories in full that a text begins with, and what is after them."""
    full = []
    while rest.startswith("<recalled_memory "):
        entry, _, rest = rest.partition("\n</recalled_memory>\n\n")
        tag, _, body = entry.partition("\n")
        identifier = re.match(r'<recalled_memory id="([^"]*)" kind="\w+"(?: \w+="[^"]*")*>$', tag)
        assert identifier, tag
        full.append((html.unescape(identifier[1]), unquoted(body)))
    return full, rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Content of an entry of the index."""

    memory_id: str
    title: str
    tags: str
    origin: str
    summary: str


def read_index(text: str, opening: str) -> list[Listed]:
    """The entries of an index that is the whole text."""
    assert text.startswith(opening)
    assert text.endswith("</memory_index>\n")
    rest = text.removeprefix(opening).removesuffix("</memory_index>\n")
    entry_form = (
        r'(\d+)\. \[ID: ("(?:[^"\\]|\\.)*"|[^\]]*)\] "((?:[^"\\]|\\.)*)"'
        r"(?: \(Tags: ((?:[^()\\]|\\.)*)\))?(?: \(Origin: (\w+)\))?(?: \(Warning: Old\)| \[Unverified\])*\n"
        r"(?:   > Summary: (.*)\n)?"
    )
    assert re.fullmatch(f"(?:{entry_form})*", rest)
    listed = []
    for number, found in enumerate(re.finditer(entry_form, rest), start=1):
        assert int(found[1]) == number
        memory_id = json.loads(found[2]) if found[2].startswith('"') else found[2]
        listed.append(
            Listed(
                memory_id=memory_id,
                title=unstring(found[3]),
                tags=unstring(f"Tags: {found[4]}").removeprefix("Tags: ") if found[4] else "",
                origin=found[5] or "manual",
                summary=uninert(found[6] or ""),
            )
        )
    return listed


def read_waterfall(text: str, wording: Wording) -> tuple[list[tuple[str, str]], list[Listed]]:
    """Ids and bodies in full; the entries of the index."""
    opening = f"<recalled_memories>\n{wording.data_notice}\n\n"
    assert text.startswith(opening)
    assert text.endswith("</recalled_memories>\n")
    assert text.count("</recalled_memories>") == text.count("<recalled_memories>") == 1
    full, rest = read_entries(text.removeprefix(opening).removesuffix("</recalled_memories>\n"))
    notice = f"{wording.index_notice}\n{wording.read_on}".format(tool="read_memory")
    return full, read_index(rest, f"<memory_index>\n{notice}\n\n") if rest else []


def read_memories(text: str, wording: Wording) -> list[tuple[str, str]]:
    """Origins and texts of the memories form."""
    opening, closing = "Relevant Memories (for reference):\n", f"\n{wording.data_notice}\n"
    assert text.startswith(opening)
    assert text.endswith(closing)
    lines = text.removeprefix(opening).removesuffix(closing).split("\n")
    assert lines.pop() == ""
    memories: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.startswith("  "):
            memories[-1][1].append(line[2:])
        else:
            found = re.match(r"- \[\d{4}-\d\d-\d\d \d\d:\d\d\]\[(\w+)\] (.*)$", line)
            assert found, line
            memories.append((found[1], [found[2]]))
    return [(origin, uninert(unspoken("\n".join(texts)))) for origin, texts in memories]


# The context form. A label ends a field.

_MARKED = (
    r"\s*\\*(?:#{2,}|\\#\s|(?:-[ \t]*){3,}$|(?:=[ \t]*){3,}$|(?:\*[ \t]*){3,}$|(?:_[ \t]*){3,}$"
    r"|问题:|答案:|涉及文件:|关键文件:|文件:|File:)"
)


def unmarked(text: str) -> str:
    return uninert("\n".join(_without_backslash(line, _MARKED) for line in text.split("\n")))


def read_body(lines: list[str], *stops: str) -> str:
    """The lines before the first that begins with one of these."""
    body = []
    while lines and not lines[0].startswith(stops):
        body.append(lines.pop(0))
    return unmarked("\n".join(body)).rstrip()


def read_field(lines: list[str], label: str) -> str:
    """Text after a label, until the next label or heading."""
    assert lines[0].startswith(label)
    first = lines.pop(0).removeprefix(label)
    lines[:0] = [first.removeprefix(" ")] if first else []
    return read_body(lines, "问题:", "答案:", "涉及文件:", "### ", "## ")


def read_fragment(lines: list[str], label: str) -> tuple[str, str]:
    """Path and code of the fragment that the lines begin with, and the empty line after it."""
    assert lines[0].startswith(f"{label} ")
    path = uninert(lines.pop(0).removeprefix(f"{label} "))
    delimiter = lines.pop(0)
    assert re.fullmatch("`{3,}", delimiter)
    end = lines.index(delimiter)
    code = uninert(unspoken("\n".join(lines[:end])))
    del lines[: end + 2]
    return path, code
