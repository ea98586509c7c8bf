"""The words of a memory that are embedded."""

from __future__ import annotations

import pytest

from hummock.core.memory import CodeFragment, MemoryIndex, Payload
from hummock.text.template import embedded


@pytest.mark.parametrize(
    ("title", "header"),
    [
        ("", "Plan.parse"),
        ("Plan.parse(text: str)", "Plan.parse"),
        ("Plan.parse", "Plan.parse"),
        ("def parse(self, text: str)", "Plan.parse"),
        ("Plan.parser(text)", "Plan.parse\nPlan.parser(text)"),
        ("how plans are read", "Plan.parse\nhow plans are read"),
    ],
)
def test_a_title_that_is_a_fragment_s_name_is_not_embedded_beside_it(title: str, header: str) -> None:
    code = CodeFragment(path="plan.py", symbol="Plan.parse", language="python", start_line=1, end_line=2)
    content = "def parse(self,\n          text: str):\n    return text"
    assert embedded(MemoryIndex(title=title), Payload(content=content, detail=code)) == (header, content)
