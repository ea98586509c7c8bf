"""The chart of a recall by Hummock and by other stores, as SVG."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape

OURS = "Hummock"
"""Names of our own bars begin with it."""
_TITLE = "Recall, p50, as a multiple of our own shortest: vector + words, filter by project and tag,"
_TITLE_GOES_ON = "10 of 50 made different, texts; 100,000 memories unless it says otherwise; one client"
_WIDTH, _LABEL, _VALUE, _ROW, _BAR, _TOP, _FOOT = 860, 300, 130, 26, 16, 58, 30
_OUR_COLOUR, _THEIR_COLOUR = "#2f6f9f", "#b8bec6"
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#24292f}.small{font-size:11px;fill:#57606a}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}}"
)


def chart(p50_ms: Mapping[str, float], caption: str) -> str:
    """Horizontal bars that begin at 0, the shortest time first; 1 is our own shortest.

    Args:
        p50_ms: By name, above 0; one or more names begin with OURS, and these stand out.
        caption: Source of the figures, for the last line.
    """
    ordered = sorted(p50_ms.items(), key=lambda bar: bar[1])
    unit_ms = min(value for name, value in ordered if name.startswith(OURS))
    longest_ms = ordered[-1][1]
    height = _TOP + _ROW * len(ordered) + _FOOT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}">',
        f"<style>{_STYLE}</style>",
        f'<text x="0" y="18">{escape(_TITLE)}</text>',
        f'<text x="0" y="36">{escape(_TITLE_GOES_ON)}</text>',
    ]
    for place, (name, value_ms) in enumerate(ordered):
        y = _TOP + _ROW * place
        length = (_WIDTH - _LABEL - _VALUE) * value_ms / longest_ms
        colour = _OUR_COLOUR if name.startswith(OURS) else _THEIR_COLOUR
        lines += [
            f'<text x="{_LABEL - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{_LABEL}" y="{y}" width="{length:.1f}" height="{_BAR}" fill="{colour}"/>',
            f'<text x="{_LABEL + length + 6:.1f}" y="{y + 13}">{value_ms / unit_ms:.2f} × ({value_ms:.3g} ms)</text>',
        ]
    lines += [f'<text class="small" x="0" y="{height - 10}">{escape(caption)}</text>', "</svg>"]
    return "\n".join(lines) + "\n"
