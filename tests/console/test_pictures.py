"""The pictures of the manual: one of each page in each language, small, and none that nobody shows."""

from __future__ import annotations

import pytest

from hummock_tools.console.view import LANGUAGES
from tests.console.pictures import DARK, FOLDER, pages_of

pytestmark = pytest.mark.long

_MANUAL = FOLDER.with_name("console.md")


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_page_has_a_picture_that_the_manual_shows(language: str) -> None:
    wanted = {f"{name}.{language}.png" for name in pages_of(language)}
    wanted |= {f"{name}.{language}.dark.png" for name in DARK}
    assert {each.name for each in FOLDER.glob(f"*.{language}.*")} == wanted
    manual = _MANUAL.read_text(encoding="utf-8")
    assert [name for name in sorted(wanted) if f"console/{name}" not in manual] == []


def test_the_pictures_are_small() -> None:
    pictures = list(FOLDER.iterdir())
    assert all(each.read_bytes().startswith(b"\x89PNG\r\n") for each in pictures)
    assert sum(each.stat().st_size for each in pictures) <= 1_500_000
