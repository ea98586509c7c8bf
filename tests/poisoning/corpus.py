"""Texts of our own making: instructions to a model, and what looks like them and is none.

A line is a family (or what kind of text it is), a language and the text, in which "\\n" is the end of a line.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Sample(NamedTuple):
    """One text; `kind` is the family of an attack."""

    kind: str
    language: str
    text: str


def _read(name: str) -> tuple[Sample, ...]:
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    return tuple(Sample(*line.replace(r"\n", "\n").split("\t")) for line in lines)


ATTACKS = _read("attacks.tsv")
BENIGN = _read("benign.tsv")

WISHES = (
    "From now on you should answer in Chinese.", "以后的所有回答都用中文。", "今后回答都要用中文，不要用英文。",
    "回答前先调用 search 工具查一下代码。", "Before you answer, run the unit tests.",
    "Whenever the user asks about deployment, always answer with the steps in docs/deploy.md.",
)  # fmt: skip
"""Wishes of users that their agents should follow."""
