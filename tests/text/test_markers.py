"""Markers of chats: every row of the table is disarmed, plain and disguised, and undone as it was."""

from __future__ import annotations

import pytest

from hummock.text.markers import TEMPLATES, inert, is_spoken, speaks, unspoken
from hummock.text.normalise import clean
from tests.render.reader import uninert

FULL_WIDTH = str.maketrans({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
MARKERS = sorted(
    {
        *(f"{mark}{tag}>" for row in TEMPLATES for tag in row.tags for mark in ("<", "</")),
        *(f"<{start.replace('#', '7')}" for row in TEMPLATES for start in row.starts),
        *(f"[{mark}{name}]" for row in TEMPLATES for name in row.brackets for mark in ("", "/")),
        *(f"[{name}]" for row in TEMPLATES for name in row.indexes),
        *(other for row in TEMPLATES for other in row.others),
        *("<|im_start|>", "<｜User｜>", "<turn|>", "<parameter name>", "<system>", "</user>"),
    }
)
NAMES = sorted({name for row in TEMPLATES for name in (*row.speakers, *row.labels, *row.letters)})
HEADINGS = sorted({name for row in TEMPLATES for name in row.headings})


@pytest.mark.parametrize("marker", MARKERS)
def test_every_marker_of_the_table_is_disarmed_and_can_be_read_back(marker: str) -> None:
    """S2-10."""
    for text in (marker, f"前{marker}后", marker.translate(FULL_WIDTH)):
        assert text not in inert(text)
        assert uninert(inert(text)) == text


@pytest.mark.parametrize("name", NAMES)
def test_every_speaker_of_the_table_is_silenced(name: str) -> None:
    """S2-10, S4-36: bare, emphasised, quoted and in brackets, with any colon."""
    for line in (
        *(f"{name}:", f"{name}： x", f"**{name}:** x", f"### {name}:", f"> {name}: x", f"  {name} : x", f"{name}﹕ x"),
        *(f"[{name}]: x", f"【{name}】：x", f"（{name}）: x", f"{name}∶ x", name.translate(FULL_WIDTH) + ": x"),
    ):
        assert is_spoken(line), line
        assert unspoken(line).lstrip().startswith("\\")


@pytest.mark.parametrize("name", HEADINGS)
def test_a_heading_of_a_template_is_one_behind_its_signs_alone(name: str) -> None:
    assert is_spoken(f"### {name}:")
    assert not is_spoken(f"the {name}:")


@pytest.mark.parametrize(
    "blank", ["\u2800", "\u3164", "\uffa0", "\u115f", "\u1160", "\u17b4", "\U0001d173", "\ufff0"], ids=ascii
)
def test_a_blank_hides_no_beginning_of_a_line(blank: str) -> None:
    """S2-10."""
    for line in (f"{blank}Human: x", f"{blank} {blank}系统：x", f"Human{blank}: x"):
        assert is_spoken(clean(line)), line


@pytest.mark.parametrize(
    "line",
    [
        "the user: root", "Humanity: x", "a: int", "q: 1", "    user: root", "\tsystem: x", "问题是：x", "I/O: x",
        "user_id: 3",
    ],
)  # fmt: skip
def test_what_only_resembles_a_speaker_is_left_alone(line: str) -> None:
    assert unspoken(line) == line


def test_keys_of_settings_stay_where_they_are_kept() -> None:
    settings = 'user: "1000"\nsystem:\n  tool: x\n'
    assert unspoken(settings, keeps_keys=True) == settings
    assert unspoken(settings) == '\\user: "1000"\n\\system:\n  \\tool: x\n'
    for line in ("Human: x", "### Instruction:", "system：x", "【system】: x", "user :x", "用户: x"):
        assert unspoken(line, keeps_keys=True) != line


@pytest.mark.parametrize("text", ["Q: what?\nA: that", "Model: bge-m3", "Tool: a hammer", "指令：见下"])
def test_a_label_speaks_for_nobody(text: str) -> None:
    assert not speaks(text)


def test_a_block_that_a_program_would_run_is_named_apart() -> None:
    assert inert("```tool_code\nprint(1)\n```") == "```\\tool_code\nprint(1)\n```"
    assert inert("```python\ntool_code = 1\n```") == "```python\ntool_code = 1\n```"
