"""Forms of words for times: patterns that stand in one table, searched for together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, NamedTuple

from hummock.text.time_spans import Span

NOT_INSIDE_A_NAME: Final = r"(?<![A-Za-z0-9_$@#/\\.:-])"
NOT_BEFORE_A_NAME: Final = r"(?![A-Za-z0-9_(]|[./:\\-][A-Za-z0-9_])"
"""What stands around words of ASCII that are no piece of a name, a path, a call or a number."""

_SHORTEST: Final = timedelta(seconds=1)
"""A span below it is none. Unix seconds are told in floats, whose steps grow to 30 µs at the end of the calendar."""

Resolve = Callable[[re.Match[str], datetime], Span | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One form of words.

    Attributes:
        pattern: Groups that are read by `resolve` have names.
        resolve: The span that a match means at a moment; None when it means none (a 30th of February). LookupError,
            OverflowError and ValueError say the same.
    """

    pattern: str
    resolve: Resolve


class Compiled(NamedTuple):
    """The patterns of a table: of all rules together, and of each."""

    joint: re.Pattern[str]
    each: Sequence[re.Pattern[str]]


class Rules:
    """A table of rules; of those that match at one place the first counts."""

    def __init__(
        self, rules: Sequence[Rule], *, hints: Sequence[str] = (), hint: str, before: str = "", after: str = ""
    ) -> None:
        """Opens a table.

        Args:
            rules: Forms of words.
            hints: In small letters; no rule matches a text that has none of them nor the next, and most texts do not.
            hint: A pattern, where a word says too little.
            before: What must stand before each match (an assertion of width 0).
            after: What must stand behind it.
        """
        self._rules = rules
        self._hints = hints
        self._hint = re.compile(hint)
        self._before = before
        self._after = after

    @cached_property
    def compiled(self) -> Compiled:
        """The table as patterns, made when a text first needs it: that takes longer than a hundred recalls."""

        def surrounded(pattern: str) -> re.Pattern[str]:
            return re.compile(f"{self._before}(?:{pattern}){self._after}", re.IGNORECASE)

        # Names may occur once in a pattern, so the joint one has a name a rule and no others.
        bare = [re.sub(r"\(\?P<\w+>", "(?:", rule.pattern) for rule in self._rules]
        joint = "|".join(f"(?P<rule{number}>{pattern})" for number, pattern in enumerate(bare))
        return Compiled(joint=surrounded(joint), each=[surrounded(rule.pattern) for rule in self._rules])

    def find(self, text: str, now: datetime) -> Iterator[tuple[re.Match[str], Span]]:
        """Matches that mean a span, in the order of the text, without overlaps."""
        small = text.lower()
        if not any(hint in small for hint in self._hints) and not self._hint.search(small):
            return
        compiled = self.compiled
        for found in compiled.joint.finditer(text):
            number = int((found.lastgroup or "").removeprefix("rule"))
            match = compiled.each[number].match(text, found.start())
            span = None if match is None else _resolved(self._rules[number].resolve, match, now)
            if match is not None and span is not None:
                yield match, span


def _resolved(resolve: Resolve, match: re.Match[str], now: datetime) -> Span | None:
    try:
        span = resolve(match, now)
    except (LookupError, OverflowError, ValueError):
        # No such word (to a pattern ı and İ are an i, to a table they are not), no such number, or no such year.
        return None
    return None if span is None or span.end - span.start < _SHORTEST else span
