"""Texts that are made to be slow, and whether the time that they take grows with their length alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from time import thread_time
from types import FrameType
from typing import Any, Final

UNITS: Final = (
    *"`~\t \n#<>[](){}|\"'\\*_-+=.,:;/&@!?%$^0a1AZbxs",
    *"中，。：；！？「」『』“”’（）【】…年月日前后第三不的\u3000\u0301\u200d\ufe0f\u2028",
    *"\u1160\u2800\u00e9\u00df\ufb01ａ가ー\U0001f600",
    *("\r\n", "A1", "aB", "a b ", "A.", "a.", "a-", "a_", "a'", "a/", "a:", "a, ", "ab cd. ", "{{", "}}", "{%"),
    *("<|", "|>", "<|a", "</", "<!--", "-->", "/*", "*/", "//", "<?", "?>", "{-", "(*", '"""', "'''", "```\n"),
    *("~~~\n", "```a\n", "- ", "* ", "1. ", "# ", "## ", "> ", "---\n", "===\n", "| ", "[a](", "](b", "![a]("),
    *("http://", "://", "://a:", "a@", "a@b.", "user:", "User: ", "Human:\n", "系统：", "password=", "password: "),
    *("token", "key", "pass_", "secret_", "密码", "密码 ", "密码是", "key=a", "--token ", "bearer ", "eyJ"),
    *("eyJaaaaaaaa.", "sk-", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "AKIA", "&amp;", "&lt;", "&#"),
    *("[INST]", "[ID:", "<tool_", "::", "2024-", "2024-01-01 ", "12:", "1,", "0x", "v1", "(v1)", "_v2", "第三版"),
    *("第二天", "两周", "三天前", "last ", "day ", "before ", "after ", "the day before ", "ignore ", "previous "),
    *("your ", "system prompt ", "忽略", "之前", "指令", "you are ", "i g n ", "YWJj", "+/", "==", "c++", '\\"'),
    *("\\'", "“a", "「a", "(a", "generated ", "copyright ", "sha1-", "ex:"),
)
"""Units that patterns and loops start at, continue through, or search for in vain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Texts of one form: a unit again and again, with something before and after it; `others` fill the second half."""

    unit: str
    front: str = ""
    behind: str = ""
    others: str = ""

    def text(self, size: int) -> str:
        """One of about so many characters."""
        first = run(self.unit, size // 2 if self.others else size)
        return self.front + first + (run(self.others, size // 2) if self.others else "") + self.behind


def shapes(random: Random, count: int) -> list[Shape]:
    """Runs of each unit, then so many texts of two units."""
    pairs = [(random.choice(UNITS), random.choice(UNITS)) for _ in range(count)]
    made = (
        lambda a, b: Shape(unit=a + b),
        lambda a, b: Shape(unit=a, others=b),
        lambda a, b: Shape(unit=a, behind=b),
        lambda a, b: Shape(unit=a, front=b),
    )
    return [*(Shape(unit=unit) for unit in UNITS), *(random.choice(made)(a, b) for a, b in pairs)]


def run(unit: str, size: int) -> str:
    """The unit again and again, cut at the size."""
    return (unit * (size // len(unit) + 1))[:size]


_FREE_S: Final = 0.02
"""Time of the largest size below which nothing is judged: other work on the machine makes ratios of it random."""

_MOST_TIMES: Final = 9.0
"""Largest factor of time for four times the text; linear work takes 4 times, quadratic work 16."""


def grows_with_its_length_alone(work: Callable[[str], object], shape: Shape, size: int) -> str:
    """Empty where it does; else the times that it took for a quarter of the size and for all of it."""
    whole, quarter = shape.text(size), shape.text(size // 4)
    best_whole = best_quarter = float("inf")
    for _ in range(4):
        best_whole = min(best_whole, took(work, whole))
        if best_whole < _FREE_S:
            return ""
        best_quarter = min(best_quarter, took(work, quarter))
        if best_whole < _MOST_TIMES * best_quarter:
            return ""
    return f"{best_quarter * 1000:.1f} ms, then {best_whole * 1000:.1f} ms"


def took(work: Callable[[str], object], text: str) -> float:
    """Seconds of this thread's processor time."""
    began_s = thread_time()
    work(text)
    return thread_time() - began_s


def longest_step(work: Callable[[str], object], text: str) -> tuple[float, str]:
    """The longest that a call in C takes in a piece of work, in seconds of processor time, and which it is.

    The interpreter changes threads between such calls only, so that all others wait for so long.
    """
    steps: list[tuple[float, str]] = [(0.0, "")]
    began = [0.0]

    def note(frame: FrameType, event: str, told: Any) -> None:
        now = thread_time()
        if event == "c_call":
            began[0] = now
        elif event == "c_return" and now - began[0] > steps[0][0]:
            steps[0] = now - began[0], f"{told.__name__} in {frame.f_code.co_qualname}"

    sys.setprofile(note)
    try:
        work(text)
    finally:
        sys.setprofile(None)
    return steps[0]
