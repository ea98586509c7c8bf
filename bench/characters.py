"""`python -m bench.characters TARGET`: the tables of Chinese characters that are shipped, out of two libraries.

It needs OpenCC 1.4.2 and pypinyin 0.55.0 (`pip install`), which nothing else here does. Another content needs another
version in `text/normalise.py` or `text/spelling.py`, and the former's a new version of the analyzer.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path

from hummock.text.normalise import SIMPLIFIED_VERSION
from hummock.text.spelling import PINYIN_VERSION

_IDEOGRAPHS = "".join(map(chr, (*range(0x3400, 0x4DC0), *range(0x4E00, 0xA000))))
_KNOWN = frozenset(_IDEOGRAPHS)
_BY_PHRASE = {"瞭": "了", "藉": "借", "妳": "你", "祇": "只"}
"""Characters that a converter changes in some words only; where both sides of a search are changed, all words do."""


def simplified() -> dict[str, str]:
    """The simplified form of each traditional character, within the first plane; no form is itself another's source."""
    of = _BY_PHRASE | _changed("t2s")
    usual = set(of.values())
    for region in ("tw2s", "hk2s"):
        # What a region writes for a simplified character's own (么 of 幺) stays as it is.
        of = {source: form for source, form in _changed(region).items() if source not in usual} | of
    return {source: _last(form, of) for source, form in of.items()}


def _changed(name: str) -> dict[str, str]:
    """The characters that a conversion of OpenCC changes, each by itself."""
    convert: Callable[[str], str] = import_module("opencc").OpenCC(name).convert
    forms = {character: convert(character) for character in _IDEOGRAPHS}
    return {source: form for source, form in forms.items() if form != source and len(form) == 1 and form in _KNOWN}


def _last(form: str, of: Mapping[str, str]) -> str:
    seen = {form}
    while form in of and of[form] not in seen:
        form = of[form]
        seen.add(form)
    return form


def readings() -> dict[str, frozenset[str]]:
    """The characters of everyday text (those of GB 2312) by syllable, in a to z and v for ü, without tones."""
    of = import_module("pypinyin.pinyin_dict").pinyin_dict
    characters: dict[str, set[str]] = {}
    for character in filter(_is_of_everyday, _IDEOGRAPHS):
        for reading in of.get(ord(character), "").split(","):
            if reading:
                characters.setdefault(_toneless(reading), set()).add(character)
    return {syllable: frozenset(of_it) for syllable, of_it in characters.items() if _is_typed(syllable)}


def _is_typed(syllable: str) -> bool:
    """Interjections without a vowel (ng) and readings with another mark are not."""
    return syllable.isascii() and any(vowel in syllable for vowel in "aeiouv")


def _is_of_everyday(character: str) -> bool:
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True


def _toneless(reading: str) -> str:
    parts = unicodedata.normalize("NFD", reading).replace("u\u0308", "v")
    return "".join(part for part in parts if not unicodedata.combining(part))


def _text(version: str, rows: Iterable[tuple[str, Iterable[str]]]) -> str:
    lines = (f"{key}\t{''.join(sorted(values))}" for key, values in sorted(rows))
    return "\n".join([f"# {version}", *lines]) + "\n"


def main(target: Path) -> None:
    """Write both tables into a folder."""
    sources: dict[str, list[str]] = {}
    for source, form in simplified().items():
        sources.setdefault(form, []).append(source)
    for version, rows in ((SIMPLIFIED_VERSION, sources.items()), (PINYIN_VERSION, readings().items())):
        (target / f"{version}.tsv").write_text(_text(version, rows), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
