from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.chart import chart

SVG = "{http://www.w3.org/2000/svg}"
BARS = st.dictionaries(st.text("还aZ<&> ", min_size=1), st.floats(min_value=0.01, max_value=1000), max_size=8)


def drawn(p50_ms: dict[str, float]) -> tuple[list[float], list[str]]:
    """Lengths of the bars and all texts."""
    root = ElementTree.fromstring(chart(p50_ms, "a machine"))  # noqa: S314 - just drawn
    return [float(bar.attrib["width"]) for bar in root.iter(f"{SVG}rect")], [
        text.text or "" for text in root.iter(f"{SVG}text")
    ]


@given(BARS, st.floats(min_value=0.01, max_value=1000))
def test_lengths_are_as_the_times_are(others: dict[str, float], ours_ms: float) -> None:
    times_ms = {**others, "Hummock, in process": ours_ms}
    lengths, _ = drawn(times_ms)

    longest = max(times_ms.values())
    assert lengths == pytest.approx([max(lengths) * each / longest for each in sorted(times_ms.values())], abs=0.1)


def test_times_are_told_as_multiples_of_our_own_shortest() -> None:
    _, texts = drawn({"Hummock, over gRPC": 2.5, "Hummock, in process": 1.25, "peer": 1.0, "slow": 100.0})

    assert [text for text in texts if "×" in text] == [
        "0.80 × (1 ms)",
        "1.00 × (1.25 ms)",
        "2.00 × (2.5 ms)",
        "80.00 × (100 ms)",
    ]


def test_the_last_line_says_where_the_figures_come_from() -> None:
    assert drawn({"Hummock": 1.0})[1][-1] == "a machine"
