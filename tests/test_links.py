"""Every relative link of a document leads to a file, and every decision that is named has its page in the index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_DECISIONS = _ROOT / "docs/decisions"
_NOTES = _ROOT / "bench/results/notes"
_MADE = {"node_modules", "target", "build", "dist"}
_CODE = re.compile(r"^(```+|~~~+)[^\n]*\n.*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
_DECISION = re.compile(r"\bdecisions?/(\d{3})|\b[Dd]ecision (\d{3})\b")
_STATUS = re.compile(r"^Status: (accepted|superseded by \[\d{3}\]\(.+\))$", re.MULTILINE)
_LONGEST = 60
"""Lines of a decision: one screen."""


def _below(folder: str, *endings: str) -> list[Path]:
    files = (path for path in (_ROOT / folder).rglob("*") if path.suffix in endings)
    return sorted(path for path in files if not _MADE & set(path.parts))


_DOCUMENTS = [
    *sorted(_ROOT.glob("*.md")),
    *(path for folder in ("docs", "bench", "clients", "proto", "tests/conformance") for path in _below(folder, ".md")),
]
_PAGES = sorted(_DECISIONS.glob("[0-9]*.md"))


def _name(path: Path) -> str:
    return str(path.relative_to(_ROOT))


def test_the_documents_are_found() -> None:
    assert {"README.md", "docs/README.md", "bench/README.md", "docs/decisions/README.md"} <= set(map(_name, _DOCUMENTS))


@pytest.mark.parametrize("document", _DOCUMENTS, ids=_name)
def test_every_relative_link_of_a_document_leads_to_a_file(document: Path) -> None:
    links = [a or b for a, b in _LINK.findall(_CODE.sub("", document.read_text("utf-8")))]
    files = [link.partition("#")[0] for link in links if not re.match(r"[a-z]+:", link)]
    assert [each for each in files if each and not (document.parent / each).exists()] == []


@pytest.mark.long
def test_every_decision_that_is_named_has_a_page() -> None:
    pages = {page.name[:3] for page in _PAGES}
    folders = ("service", "kernels", "clients", "proto", "tests", "bench", "docs")
    sources = [path for folder in folders for path in _below(folder, ".py", ".md", ".proto", ".sql", ".go", ".kt")]
    for path in [*_ROOT.glob("*.md"), *(path for path in sources if _NOTES not in path.parents)]:
        named = {a or b for a, b in _DECISION.findall(path.read_text("utf-8"))}
        assert named <= pages, _name(path)


def test_the_index_of_decisions_has_each_page_with_its_title_and_status() -> None:
    index = (_DECISIONS / "README.md").read_text("utf-8")
    for page in _PAGES:
        text = page.read_text("utf-8")
        number, title = page.name[:3], text.splitlines()[0].removeprefix("# ")
        status = _STATUS.search(text)
        assert status, page.name
        assert f"| [{number}]({page.name}) | {title.removeprefix(number).strip()} | {status[1].split()[0]} |" in index
        assert len(text.splitlines()) <= _LONGEST, page.name
    assert len(re.findall(r"^\| \[\d{3}\]", index, re.MULTILINE)) == len(_PAGES)
