"""Stored text on a terminal: shown, and never obeyed."""

from __future__ import annotations

import json

import pytest

from hummock_client.v1 import memory_pb2
from hummock_tools.cli.output import one_line, print_json, printable


@pytest.mark.parametrize(
    "sign", ["\x1b", "\x07", "\x9b", "\x7f", "\r", "\u202e", "\u2066", "\u2069", "\u200f", "\u061c", "\ud800"],
    ids=ascii,
)  # fmt: skip
def test_what_a_terminal_obeys_is_written_out(sign: str) -> None:
    assert printable(f"a{sign}b") == f"a\\u{ord(sign):04x}b"


def test_text_is_printed_as_it_is() -> None:
    text = "还款 über 👩\u200d💻 می\u200cخواهم\n\tend"
    assert printable(text) == text


def test_a_line_holds_what_was_in_others_written_out() -> None:
    assert one_line("a\u2029b\nc") == "a\\u2029b c"


def test_json_says_the_same_and_turns_no_direction(capsys: pytest.CaptureFixture[str]) -> None:
    print_json(memory_pb2.Memory(title="a\u202eb\x9bc"))
    printed = capsys.readouterr().out
    assert "\u202e" not in printed
    assert "\x9b" not in printed
    assert json.loads(printed)["title"] == "a\u202eb\x9bc"
