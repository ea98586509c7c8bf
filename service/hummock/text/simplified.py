"""Chinese characters in their simplified forms, so that either way of writing finds the other.

The table is a versioned data file of the package (`characters/`): a line a simplified character, with those that are
written for it elsewhere. It was made of OpenCC's (`NOTICE`, `bench/characters.py`). A character is changed by itself,
whatever the word: where two traditional ones share a simplified one (後 and 后), all three are one to a search.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

SIMPLIFIED_VERSION: Final = "simplified.v1"
SIMPLIFIED_SHA256: Final = "78338bd7c640fadc0c3b759c26453664a2229c1210f8b247b4006309dbf770e9"


class CharactersDamaged(Exception):
    """A data file is not the one that this version was made with."""


def simplified(text: str) -> str:
    """The text with every traditional character in its simplified form; as long as it was.

    Applying it twice changes nothing.
    """
    return text if text.isascii() else text.translate(simplified_forms())


@cache
def simplified_forms() -> Mapping[int, int]:
    """The simplified form of each traditional character, both as code points below 0x10000; read on first use.

    Raises:
        CharactersDamaged: The file is not the one that this version was made with.
    """
    rows = table(SIMPLIFIED_VERSION, SIMPLIFIED_SHA256)
    return {ord(source): ord(form) for form, sources in rows.items() for source in sources}


def table(version: str, sha256: str) -> dict[str, str]:
    """The rows of a data file: what stands before the tab of each line, and the characters behind it.

    Raises:
        CharactersDamaged: The file is not the one that this version was made with.
    """
    content = resources.files("hummock.text").joinpath("characters", f"{version}.tsv").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise CharactersDamaged(f"the characters {version} have the SHA-256 {digest}, not {sha256}")
    lines = content.decode("utf-8").splitlines()[1:]
    rows = (line.partition("\t") for line in lines)
    return {key: characters for key, _, characters in rows}
