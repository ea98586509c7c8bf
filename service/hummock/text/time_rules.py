"""Forms of words for times: patterns that stand in one table, searched for together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

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
        self._hints = hints
        self._hint = re.compile(hint)
        self._resolve = [rule.resolve for rule in rules]
        self._each = [re.compile(before + f"(?:{rule.pattern})" + after, re.IGNORECASE) for rule in rules]
        # Names may occur once in a pattern, so the joint one has a name a rule and no others.
        bare = [re.sub(r"\(\?P<\w+>", "(?:", rule.pattern) for rule in rules]
        joint = "|".join(f"(?P<rule{number}>{pattern})" for number, pattern in enumerate(bare))
        self._joint = re.compile(before + f"(?:{joint})" + after, re.IGNORECASE)

    def find(self, text: str, now: datetime) -> Iterator[tuple[re.Match[str], Span]]:
        """Matches that mean a span, in the order of the text, without overlaps."""
        small = text.lower()
        if not any(hint in small for hint in self._hints) and not self._hint.search(small):
            return
        for found in self._joint.finditer(text):
            number = int((found.lastgroup or "").removeprefix("rule"))
            match = self._each[number].match(text, found.start())
            span = None if match is None else _resolved(self._resolve[number], match, now)
            if match is not None and span is not None:
                yield match, span


def _resolved(resolve: Resolve, match: re.Match[str], now: datetime) -> Span | None:
    try:
        span = resolve(match, now)
    except (LookupError, OverflowError, ValueError):
        # No such word (to a pattern ı and İ are an i, to a table they are not), no such number, or no such year.
        return None
    return None if span is None or span.end - span.start < _SHORTEST else span
