"""Files for language models (llmstxt.org): `llms.txt` lists the pages, `llms-full.txt` has the guides in one file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from docs.site.pages import url_of, write

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n\n", re.DOTALL)
_TITLE = re.compile(r"^# (.+?)(?: \{.*\})?$", re.MULTILINE)
_FIRST_TEXT = re.compile(r"(?:\A|(?<=\n\n))(?!```)[^\s#|!<\-].*?(?=\n\n|\Z)", re.DOTALL)
_END_OF_SENTENCE = re.compile(r"\. (?=[A-Z`])")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
_SUMMARY = (
    "Hummock is a memory service for AI agents, IDE plugins and chat apps, for Chinese, English and code. It stores "
    "what they learn and answers each request with the few memories that matter, written to fit a token budget."
)
_OF_CONTRIBUTORS = "Contribute"
_GENERATED = "Reference"

Nav = Sequence[Any]


def write_llms(nav: Nav, pages: Path, out: Path) -> None:
    """Write both files, and the Markdown of each page in the list as `index.md` beside its HTML.

    Args:
        nav: The navigation of the site, as its configuration has it.
        pages: Folder of the site's Markdown.
        out: Folder of the built site.
    """
    lines, texts = ["# Hummock", "", f"> {_SUMMARY}"], []
    for section, listed in _sections(nav):
        lines += ["", f"## {section}", ""]
        for page in listed:
            text = _FRONT_MATTER.sub("", (pages / page).read_text(encoding="utf-8"))
            address = f"{url_of(page)}index.md"
            write(out / address, text)
            lines.append(f"- [{title_of(text)}]({address}): {_summary_of(text)}")
            if section not in (_OF_CONTRIBUTORS, _GENERATED):
                texts.append(text)
    write(out / "llms.txt", "\n".join(lines) + "\n")
    write(out / "llms-full.txt", "\n\n".join(texts))


def title_of(text: str) -> str:
    """The first heading of a page. Raises: ValueError, where it has none."""
    found = _TITLE.search(text)
    if found is None:
        raise ValueError(f"a page has no title: {text[:60]!r}")
    return found[1]


def _summary_of(text: str) -> str:
    found = _FIRST_TEXT.search(_TITLE.split(text, maxsplit=1)[-1].strip())
    plain = _LINK.sub(r"\1", " ".join(found[0].split())).replace("**", "") if found else ""
    return _END_OF_SENTENCE.split(plain, maxsplit=1)[0].rstrip(".:") + "."


def _sections(nav: Nav) -> Iterator[tuple[str, list[str]]]:
    """Title of each section, and its pages in their order."""
    for one in nav:
        for title, below in one.items():
            yield title, list(pages_of([below]))


def pages_of(nav: Nav) -> Iterator[str]:
    """Every page of a navigation, in its order."""
    for one in nav:
        if isinstance(one, str):
            yield one
        elif isinstance(one, list):
            yield from pages_of(one)
        else:
            yield from pages_of(list(one.values()))
