"""The documents of the repository as pages of the site: where each one stands there, and where its links lead."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
CONTRACT = "proto/hummock/v1"

_FOLDERS = ("docs", "bench", "clients", "proto", "tests/conformance")
_LEFT_OUT = {"node_modules", "target", "build", "dist", "setup", "README.md"}
_CHINESE = "docs/zh/"
_HISTORY = "bench/results/"
_NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
"""Beginning of a page that search leaves out: what was measured once says little of today."""

_ROOTS = {"en": "/", "zh": "/zh/"}
_CODE = re.compile(r"^(?:```+|~~~+)[^\n]*\n.*?^(?:```+|~~~+)$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\]\([^()]*\))*)\]\((?P<target>[^()\s]+)\)")
_OUTSIDE = re.compile(r"[a-z]+:|#")
_LIST_AFTER_TEXT = re.compile(r"^(?!\s|[-*] |[|#>]|\d+\. |$)(.+)\n(?=(?:[-*]|1\.) )", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One of the two sites that are built: the English one, or the Chinese one below its `zh/`."""

    language: str
    folder: Path
    """Where its pages are written."""


def documents() -> Iterator[str]:
    """Paths of all documents in the repository, such as `docs/install.md`, in the order of their names."""
    found = [path for path in ROOT.glob("*.md") if path.name not in _LEFT_OUT]
    for folder in _FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*.md") if not _LEFT_OUT & set(path.parts[:-1])]
    return iter(sorted(path.relative_to(ROOT).as_posix() for path in found))


def language_of(document: str) -> str:
    """The site that has this document: `zh` or `en`."""
    return "zh" if document.startswith(_CHINESE) else "en"


def place_of(path: str) -> str:
    """Where a file of the repository stands in the pages of its site."""
    if path.startswith(_CHINESE):
        return path.removeprefix(_CHINESE)
    return path.removeprefix("docs/") if path.startswith("docs/") else f"repository/{path}"


def url_of(page: str) -> str:
    """Address of a page in its site, such as `clients/python/`; empty for the first page."""
    path = PurePosixPath(page)
    below = path.parent if path.name in ("README.md", "index.md") else path.with_suffix("")
    return "" if below == PurePosixPath(".") else f"{below}/"


def write_documents(site: Site) -> None:
    """Write the documents of a site, and the pictures that they show."""
    known = set(documents())
    for document in sorted(known):
        if language_of(document) == site.language:
            text = (ROOT / document).read_text(encoding="utf-8")
            text = _Links(site, document, known).rewritten(text)
            if document.startswith(_HISTORY):
                text = _NOT_SEARCHED + text
            write(site.folder / place_of(document), text)


def write(path: Path, text: str) -> None:
    """Write a text file, in folders that are made as needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class _Links:
    """Links of one document, made to lead to pages of the site."""

    def __init__(self, site: Site, document: str, known: set[str]) -> None:
        self._site = site
        self._document = document
        self._known = known

    def rewritten(self, text: str) -> str:
        """The document with links of the site, and with the empty line that Python-Markdown wants before a list."""
        parts, end = [], 0
        for code in _CODE.finditer(text):
            parts += [self._in_text(text[end : code.start()]), code[0]]
            end = code.end()
        return "".join([*parts, self._in_text(text[end:])])

    def _in_text(self, text: str) -> str:
        return _LINK.sub(self._link, _LIST_AFTER_TEXT.sub(r"\1\n\n", text))

    def _link(self, found: re.Match[str]) -> str:
        text = _LINK.sub(self._link, found["text"])
        if _OUTSIDE.match(found["target"]):
            return f"{found['image']}[{text}]({found['target']})"
        target = self._target(found["target"])
        return f"{found['image']}[{text}]({target})" if target else text

    def _target(self, link: str) -> str:
        """Where a link leads in the site; empty if only the repository has it, and the link becomes its text."""
        path, _, anchor = link.partition("#")
        folder = PurePosixPath(self._document).parent
        wanted = os.path.normpath(folder / path)
        anchor = f"#{anchor}" if anchor else ""
        if wanted == CONTRACT:
            return self._to_page("en", "reference/api/README.md", anchor)
        if wanted.startswith(f"{CONTRACT}/"):
            return self._to_page("en", f"reference/api/{PurePosixPath(wanted).stem.replace('_', '-')}.md", anchor)
        if wanted == "README.md":
            return self._to_page("en", "README.md", anchor)
        if f"{wanted}/README.md" in self._known:
            wanted = f"{wanted}/README.md"
        if wanted in self._known:
            return self._to_page(language_of(wanted), place_of(wanted), anchor)
        if (ROOT / wanted).is_file() and PurePosixPath(wanted).suffix in (".svg", ".png", ".json"):
            copy = self._site.folder / place_of(wanted)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / wanted, copy)
            return os.path.relpath(place_of(wanted), PurePosixPath(place_of(self._document)).parent)
        return ""

    def _to_page(self, language: str, page: str, anchor: str) -> str:
        here = PurePosixPath(place_of(self._document))
        if language == self._site.language:
            return os.path.relpath(page, here.parent) + anchor
        # Another site, which the tool cannot look into: an address as seen from the folder of the page's source.
        mine, other = f"{_ROOTS[self._site.language]}{here.parent}", f"{_ROOTS[language]}{url_of(page)}"
        return os.path.relpath(other, mine) + "/" + anchor
