"""One member of a JSON text with comments goes in and out, whatever stands around it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock_tools.mcp.jsonc import NotReadable, read, with_entry, without_entry

ENTRY = {"command": "x", "args": ["a, b", "}"]}
TEXTS = [
    "", "{}", "{ }\n", '{"a": 1}', '{\n  "a": 1\n}\n', '{\n\t"a": 1, // note\n}\n', "{\n  // only\n}",
    '{\n  "a": 1 // note, with comma\n}\n',
    '{\n  "mcpServers": {\n    "other": {} // mine\n  },\n  "z": "// no comment"\n}\n', '{"mcpServers":{}}',
    '{\n  "mcpServers": {\n    "b": {},\n  },\n}\n', '{\n  "a": 1, /* x */ "b": 2\n}', '{"a": "\\"// , }"}',
    '// top\n{\n  "mcpServers": {\n    // none\n  }\n}\n// end\n', '\ufeff{\r\n  "a": 1\r\n}\r\n',
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_an_entry_goes_in_once_and_out_again(text: str) -> None:
    after = with_entry(text, "mcpServers", "hummock", ENTRY)
    known = read(text)
    assert read(after) == {**known, "mcpServers": {**known.get("mcpServers", {}), "hummock": ENTRY}}
    assert with_entry(after, "mcpServers", "hummock", ENTRY) == after
    assert after.count("//") == text.count("//")
    removed = read(without_entry(after, "mcpServers", "hummock"))
    assert removed == {**known, "mcpServers": known.get("mcpServers", {})}


def test_an_entry_of_before_is_replaced_where_it_stands() -> None:
    text = '{\n  "mcpServers": {\n    "hummock": {"command": "old"}, // ours\n    "b": {},\n  },\n}\n'
    after = with_entry(text, "mcpServers", "hummock", ENTRY)
    assert list(read(after)["mcpServers"]) == ["hummock", "b"]
    assert "}, // ours\n" in after


@pytest.mark.parametrize("text", ["{", "[]", "1", '{"a" 1}', '{"mcpServers": {"a": 1, "hummock": 1, "hummock": 2}}'])
def test_what_is_no_object_or_says_a_thing_twice_is_refused(text: str) -> None:
    with pytest.raises(NotReadable):
        with_entry(text, "mcpServers", "hummock", ENTRY)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.text(), JSON_VALUES, max_size=4),
    st.dictionaries(st.text(min_size=1), st.dictionaries(st.text(), JSON_VALUES, max_size=2), max_size=3),
    st.sampled_from([None, 0, 2, "\t"]),
    st.booleans(),
)
def test_any_document_keeps_all_that_is_not_ours(
    others: dict[str, object], servers: dict[str, object], indent: int | str | None, is_ascii: bool
) -> None:
    document = {**others, "mcpServers": servers}
    text = json.dumps(document, indent=indent, ensure_ascii=is_ascii)
    after = json.loads(with_entry(text, "mcpServers", "hummock", ENTRY))
    assert after == {**document, "mcpServers": {**servers, "hummock": ENTRY}}
