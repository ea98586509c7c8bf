"""The lint that refuses docstrings which begin with a fragment."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "service" / "setup" / "check_prose.py"


def _load() -> Callable[[str], Iterator[tuple[int, str]]]:
    spec = importlib.util.spec_from_file_location("check_prose", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast("Callable[[str], Iterator[tuple[int, str]]]", module.fragments)


fragments = _load()

SOURCES = {
    "a module": '"""{0}"""\n',
    "a function": 'def f() -> None:\n    """{0}"""\n',
    "a coroutine": 'async def f() -> None:\n    """{0}"""\n',
    "a class": 'class C:\n    """{0}"""\n',
    "a constant": 'N = 1\n"""{0}"""\n',
    "a field": 'class C:\n    """A value."""\n\n    n: int\n    """{0}"""\n',
    "a line further down": 'def f() -> None:\n    """\n    {0}\n    More.\n    """\n',
    "an else branch": 'if True:\n    pass\nelse:\n    N = 1\n    """{0}"""\n',
}
REFUSED = (
    "Of a job: its name.",
    "That is waited.",
    "As many as fit.",
    "As above.",
    "The same, twice.",
    "Likewise.",
    "Whose it is.",
    "Whom to refuse.",
    "By which it is sorted.",
    "In which it lies.",
)
ALLOWED = (
    "The name of a job.",
    "Offset in bytes.",
    "Thatch, in words.",
    "Assigns a number.",
    "Asks the model.",
    "The sameness of two texts.",
    "In bytes.",
    "True if it is one of that kind.",
    "",
)


@pytest.mark.parametrize("place", SOURCES)
@pytest.mark.parametrize("text", REFUSED)
def test_a_docstring_that_begins_with_a_fragment_is_refused(place: str, text: str) -> None:
    """With the first line of the text, wherever it stands."""
    assert [found for _, found in fragments(SOURCES[place].format(text))] == [text]


@pytest.mark.parametrize("place", SOURCES)
@pytest.mark.parametrize("text", ALLOWED)
def test_a_docstring_that_begins_with_a_noun_or_a_verb_is_allowed(place: str, text: str) -> None:
    """Words that only begin with the same letters are no fragments."""
    assert list(fragments(SOURCES[place].format(text))) == []


@pytest.mark.parametrize(
    "source",
    [
        'def f() -> str:\n    return "That is data."\n',
        'NAMES = ("Of",)\n',
        'def f() -> None:\n    print()\n    "That is no documentation."\n',
        'f = lambda: "Of"\nN = "Of" if f else "As"\n',
        "# Of a comment.\n",
    ],
)
def test_strings_that_document_nothing_are_allowed(source: str) -> None:
    """Data and messages may begin with any word."""
    assert list(fragments(source)) == []


def test_the_line_reported_is_that_of_the_text() -> None:
    """So that an editor jumps to it."""
    assert list(fragments('M = 1\n"""Bytes."""\n\nN = 2\n"""Of all."""\n')) == [(5, "Of all.")]
