"""The chart of the README: whose recall takes how long, as an SVG that no package is needed for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from xml.sax.saxutils import escape

TITLE = "Recall, p50 ms: vector + words, filter by project and tag, 10 of 50 made different, texts; 100,000 memories"
_WIDTH, _LABEL, _VALUE, _ROW, _BAR, _TOP, _FOOT = 860, 300, 90, 26, 16, 40, 56
_OURS, _THEIRS = "#2f6f9f", "#b8bec6"
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#24292f}.small{font-size:11px;fill:#57606a}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}}"
)


def chart(p50_ms: Mapping[str, float], caption: str) -> str:
    """Horizontal bars on a logarithmic scale, the shortest time first.

    Args:
        p50_ms: By name, above 0; names that begin with "Hummock" stand out.
        caption: Where the figures come from, for the last line.
    """
    ordered = sorted(p50_ms.items(), key=lambda bar: bar[1])
    lowest, highest = scale(p50_ms)
    height = _TOP + _ROW * len(ordered) + _FOOT
    room = _WIDTH - _LABEL - _VALUE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}">',
        f"<style>{_STYLE}</style>",
        f'<text x="0" y="18">{escape(TITLE)}</text>',
    ]
    for place, (name, value) in enumerate(ordered):
        y = _TOP + _ROW * place
        length = room * (math.log10(value) - lowest) / (highest - lowest)
        colour = _OURS if name.startswith("Hummock") else _THEIRS
        lines += [
            f'<text x="{_LABEL - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{_LABEL}" y="{y}" width="{length:.1f}" height="{_BAR}" fill="{colour}"/>',
            f'<text x="{_LABEL + length + 6:.1f}" y="{y + 13}">{value:.3g}</text>',
        ]
    lines += [
        f'<text class="small" x="{_LABEL}" y="{height - 34}">logarithmic, from {10**lowest:g} ms</text>',
        f'<text class="small" x="0" y="{height - 12}">{escape(caption)}</text>',
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def scale(p50_ms: Mapping[str, float]) -> tuple[int, int]:
    """Powers of ten: one below all values, so that every bar can be seen, and one that no value exceeds."""
    lowest = math.ceil(math.log10(min(p50_ms.values()))) - 1
    return lowest, max(math.ceil(math.log10(max(p50_ms.values()))), lowest + 1)
