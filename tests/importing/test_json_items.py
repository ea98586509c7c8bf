"""JSON objects of files, and the lines on which they stand."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock_tools.importing.json_items import BadLine, Item, NotWhole, Place, Value, items


def read(data: bytes) -> list[tuple[int, Value] | BadLine | NotWhole]:
    found = items(data.splitlines(keepends=True))
    return [(one.place.line, one.value) if isinstance(one, Item) else one for one in found]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # An empty list holds nothing, and an empty file is not whole.
        *((data, []) for data in (b"[]", b'{"results": []}', b'{"count": 0, "results": []}')),
        *((data, [NotWhole(place=Place(line=1), reason="is empty")]) for data in (b"", b"\n \n")),
        # Objects stand one a line; a byte order mark is passed over.
        ('{"a": 1}\n\n{"a": "还款"}\r\n'.encode(), [(1, {"a": 1}), (3, {"a": "还款"})]),
        *((data, [(1, {"a": 1})]) for data in (b'\xef\xbb\xbf{"a": 1}\n', b'\xef\xbb\xbf[{"a": 1}]')),
        # Elements of a list stand on the lines where they begin.
        (
            json.dumps([{"a": 1}, {"b": ["x", "y"]}, "z"], indent=2).encode(),
            [(2, {"a": 1}), (5, {"b": ["x", "y"]}), (11, "z")],
        ),
        (
            b'{\n "note": "a \\"results\\": [1]",\n "relations": [{}],\n "results":\n [\n  {"a": 1},\n  {"a": 2}\n ]}',
            [(6, {"a": 1}), (7, {"a": 2})],
        ),
        # A list on one line is a list.
        (b'[{"a": 1}, {"a": 2}]\n', [(1, {"a": 1}), (1, {"a": 2})]),
        (b'{"results": [{"a": 1}]}\n', [(1, {"a": 1})]),
        # Pages one after the other are all read, and so is every list of an object.
        (
            b'{"results": [{"a": 1}], "next": "x"}\n{"next": null, "results": [{"a": 2}]}\n\n[{"a": 3}]',
            [(1, {"a": 1}), (2, {"a": 2}), (4, {"a": 3})],
        ),
        (b'{"memories": [{"a": 1}],\n"items": [{"a": 2}]}', [(1, {"a": 1}), (2, {"a": 2})]),
    ],
)
def test_objects_are_read_with_the_lines_on_which_they_stand(data: bytes, expected: list[object]) -> None:
    assert read(data) == expected


def test_elements_of_lists_are_counted_over_all_lists_of_the_file() -> None:
    found = items([b'{"results": [{}, {}]}\n', b"[{}]\n"])
    assert [str(one.place) for one in found] == ["line 1, record 1", "line 1, record 2", "line 2, record 3"]


def test_a_wrong_line_is_named_and_the_others_are_read() -> None:
    first, bad, garbled, last = read(b'{"a": 1}\n{"a": \n\xff\xfe\n{"a": 2}')
    assert (first, last) == ((1, {"a": 1}), (4, {"a": 2}))
    assert isinstance(bad, BadLine)
    assert (bad.place.line, bad.reason.partition(":")[0]) == (2, "is no JSON")
    assert garbled == BadLine(place=Place(line=3), reason="is not UTF-8 (byte 0)")


@pytest.mark.parametrize("rest", [b"garbage", b"]", b', "next": 1}', b'"a"'])
def test_what_stands_behind_a_list_is_named(rest: bytes) -> None:
    first, bad = read(b'[{"a": 1}]\n' + rest)
    assert first == (1, {"a": 1})
    assert isinstance(bad, NotWhole)
    assert bad.place.line == 2


def test_an_object_behind_a_page_is_named() -> None:
    *found, bad = read(b'{"results": [{"a": 1}]}\n{"a": 2}\n{"results": [{"a": 3}]}')
    assert isinstance(bad, tuple)
    assert found == [
        (1, {"a": 1}),
        BadLine(place=Place(line=2), reason="holds no list named results, memories, items, data"),
    ]


@pytest.mark.parametrize("data", [b'{"results": [{"a": 1}]', b'[{"a": 1}'])
def test_a_list_that_is_cut_off_is_named(data: bytes) -> None:
    first, bad = read(data)
    assert first == (1, {"a": 1})
    assert isinstance(bad, NotWhole)


def test_what_is_wrong_in_a_list_is_named_behind_what_was_read() -> None:
    first, bad = read(b'[\n{"a": 1},\n{"a" 2}]')
    assert first == (2, {"a": 1})
    assert isinstance(bad, NotWhole)
    assert bad.place.line == 3
    assert "what follows was not read" in bad.reason


def test_a_document_without_a_list_is_named() -> None:
    (bad,) = read(b'{\n"a": 1\n}')
    assert isinstance(bad, BadLine)
    assert "holds no list" in bad.reason


def test_a_document_that_nests_too_deeply_is_named() -> None:
    for data in (b"[" * 200_000, b'{"a": 1}\n' + b"[" * 200_000):
        assert isinstance(read(data)[-1], BadLine | NotWhole)


@given(
    st.lists(st.dictionaries(st.text(), st.none() | st.integers() | st.text() | st.lists(st.booleans()))), st.booleans()
)
def test_a_file_holds_what_was_written(values: list[dict[str, Value]], indented: bool) -> None:
    document = json.dumps(values, indent=1 if indented else None, ensure_ascii=False).encode("utf-8", "surrogatepass")
    lines = b"".join(json.dumps({"k": value}).encode() + b"\n" for value in values)
    if b"\xed" not in document:
        assert [item[1] for item in read(document) if isinstance(item, tuple)] == values
    assert [item[1] for item in read(lines) if isinstance(item, tuple)] == [{"k": value} for value in values]


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_named(data: bytes) -> None:
    for item in read(data):
        assert item[0] if isinstance(item, tuple) else item.place.line
