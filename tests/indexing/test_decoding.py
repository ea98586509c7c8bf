"""Sources in other encodings than UTF-8 are read as they were written; what is no text is left out."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import zlib
from pathlib import Path
from random import Random

import pytest

from hummock_tools.indexing import SkipReason
from hummock_tools.indexing.decoding import Decoded, decoded, guess
from tests.indexing.encoded import encoded
from tests.indexing.test_walk import collect, write

CODE = "# {}\n# 还款服务\nx = 1\n"


def text_of(data: bytes) -> str:
    found = decoded(data)
    assert isinstance(found, Decoded), found
    return found.data.decode("utf-8-sig")


@pytest.mark.long
def test_short_comments_are_read_in_every_encoding_of_their_language() -> None:
    """Comments that are ASCII or UTF-8 in an encoding need no guess; all others are guessed."""
    wrong = {(each.encoding, each.text) for each in encoded() if text_of(each.data).replace("\r\n", "\n") != each.text}
    assert not wrong


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_byte_order_mark_is_believed(encoding: str, end: str) -> None:
    text = CODE.format("x").replace("\n", end)
    marks = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
    marks |= {"utf-32-le": codecs.BOM_UTF32_LE, "utf-32-be": codecs.BOM_UTF32_BE}
    data = marks.get(encoding, b"") + text.encode(encoding)
    assert (text_of(data), decoded(data)) == (text, Decoded(data=data if encoding == "utf-8-sig" else text.encode()))


@pytest.mark.parametrize(
    ("head", "word", "encoding"),
    [
        ("# -*- coding: euc-kr -*-", "상환", "euc_kr"),
        ("#!/usr/bin/python\n# -*- coding: gbk -*-", "组", "gbk"),
        ("# coding=cp1251", "с", "cp1251"),
        ("# coding: latin-1", "ß", "latin_1"),
        ("// -*- mode: c; coding: shift_jis-unix -*-", "組", "shift_jis"),
        ("; -*- coding: gb2312-dos -*-", "镕", "gbk"),
        ("/* vim: set fileencoding=koi8-r : */", "с", "koi8_r"),
        ("\n\n\n// vim: ts=4 fenc=big5", "組", "big5"),
        ("# encoding: iso-2022-jp", "返済", "iso2022_jp"),
        ('<?xml version="1.0" encoding="windows-1251"?>', "с", "cp1251"),
        ('<!doctype html>\n<html><head>\n\n<meta charset="x-sjis">', "組", "shift_jis"),
        ('<p>\n\n<meta http-equiv="Content-Type" content="text/html; charset=euc-jp">', "組", "euc_jp"),
        ('@charset "gb2312";', "组", "gb2312"),
    ],
)
def test_a_declared_encoding_is_believed(head: str, word: str, encoding: str) -> None:
    text = f"{head}\n{word}\n"
    data = text.encode(encoding)
    assert decoded(data) == Decoded(data=text.encode())


def test_a_line_at_the_end_may_declare_it() -> None:
    text = "int x;\n" * 50 + "// 組\n// vim: set fenc=big5:\n"
    assert text_of(text.encode("big5")) == text


@pytest.mark.parametrize("name", ["no-such", "utf-7", "unicode_escape", "rot13", "hex", "idna", "cp037", "utf-16"])
def test_a_declaration_that_cannot_be_is_not_believed(name: str) -> None:
    text = f"# coding: {name}\n# 查询用户的订单列表\n"
    assert decoded(text.encode("gbk")) == Decoded(data=text.encode(), guessed="gb18030")


@pytest.mark.parametrize(
    "data",
    [
        "如果余额不足则返回错误".encode()[:-1],
        "# coding: utf-8\n# größer als früher\n".encode() + b"\xff",
        "如果余额不足则返回错误".encode("gbk")[:-1],
        b"x = '\xa0'\n\x81\xfe\xa0\xff",
        "\ufeff还款".encode("utf-16-le")[:-1],
    ],
)
def test_damaged_text_is_not_guessed(data: bytes) -> None:
    assert not isinstance(decoded(data), Decoded)


def test_nothing_binary_is_taken_for_text() -> None:
    random = Random(5)  # noqa: S311 # data, no secret
    source = Path(__file__).read_bytes()
    cases = [random.randbytes(size) for size in (24, 40, 64, 100, 500, 5_000) for _ in range(40)]
    for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
        cases += [mark + random.randbytes(size) for size in (8, 32, 400) for _ in range(20)]
    for at in range(0, len(source) - 400, 200):
        part = source[at : at + 400]
        cases += [pack(part) for pack in (gzip.compress, zlib.compress, bz2.compress, lzma.compress)]
    cases += [
        b"\x89PNG\r\n\x1a\n" + zlib.compress(source),
        b"\x7fELF\x02\x01\x01" + bytes(9),
        b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n\x01",
    ]
    assert [case for case in cases if isinstance(decoded(case), Decoded)] == []


def test_two_likely_readings_are_no_guess() -> None:
    assert guess("// 组\nint main() { return 0; }\n".encode("gbk")) is None
    assert guess(b"\xa0") is None


def test_what_is_indexed_is_the_text_with_its_lines(tmp_path: Path) -> None:
    lines = "public class A {\r\n    // 查询用户的订单列表\r\n    int x;\r\n}\r\n"
    write(
        tmp_path,
        {
            "a.java": lines.encode("gbk"),
            "b.java": b"int main() { return 0; } // \xd7\xe9\n",
            "c.py": "\ufeffx = '组'\n".encode("utf-16"),
        },
    )
    found, skipped = collect(tmp_path)
    assert [(file.path, file.guessed) for file in found] == [("a.java", "gb18030"), ("c.py", "")]
    assert found[0].lines()[1] == "    // 查询用户的订单列表"
    assert found[1].text() == "x = '组'\n"
    assert skipped == {"b.java": SkipReason.UNDECIDED}
