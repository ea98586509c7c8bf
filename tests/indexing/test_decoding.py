"""Sources in other encodings than UTF-8 are read as they were written; what is no text is left out."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from hummock_tools.indexing.decoding import Decoded, decoded, guess
from hummock_tools.indexing.skips import SkipReason
from tests.indexing.test_walk import collect, write

_ENCODINGS = {
    "zh": ("gbk", "gb18030"),
    "zh-Hant": ("big5", "cp950"),
    "ko": ("euc_kr", "cp949"),
    "ja": ("cp932", "euc_jp"),
    "ru": ("cp1251", "koi8_r"),
    "de": ("latin_1", "cp1252"),
    "fr": ("latin_1", "cp1252"),
    "es": ("latin_1", "cp1252"),
}

_COMMENTS = {
    "zh": (
        "还款服务", "计算利息", "查询用户的订单列表", "如果余额不足则返回错误，否则扣款并记录日志。",
        "该方法用于初始化数据库连接，请不要在循环中调用；超时时间默认为三十秒，可以通过配置文件修改。",
    ),
    "zh-Hant": (
        "還款服務", "計算利息", "查詢使用者的訂單列表", "如果餘額不足則回傳錯誤，否則扣款並記錄日誌。",
        "這個方法用於初始化資料庫連線，請不要在迴圈中呼叫；逾時時間預設為三十秒，可以透過設定檔修改。",
    ),
    "ko": (
        "상환 서비스", "이자 계산", "사용자의 주문 목록을 조회한다",
        "잔액이 부족하면 오류를 반환하고, 그렇지 않으면 출금한 뒤 기록을 남긴다.",
        "이 메서드는 데이터베이스 연결을 초기화합니다. 반복문 안에서 호출하지 마십시오. 제한 시간은 삼십 초입니다.",
    ),
    "ja": (
        "返済サービス", "利息を計算する", "ユーザーの注文一覧を取得する",
        "残高が足りない場合はエラーを返し、そうでなければ引き落として記録します。",
        "このメソッドはデータベース接続を初期化します。ループの中で呼び出さないでください。既定のタイムアウトは三十秒です。",
    ),
    "ru": (
        "Служба погашения", "расчёт процентов", "Возвращает список заказов пользователя",
        "Если средств недостаточно, вернуть ошибку, иначе списать сумму и записать в журнал.",
        "Этот метод открывает соединение с базой данных. Не вызывайте его в цикле: ожидание длится тридцать секунд.",
    ),
    "de": (
        "Rückzahlung für Kunden", "Größe prüfen", "Gibt die Aufträge eines Nutzers zurück",
        "Wenn das Guthaben nicht genügt, wird ein Fehler zurückgegeben, sonst abgebucht und für später vermerkt.",
        "Diese Methode öffnet die Verbindung zur Datenbank. Nicht in Schleifen aufrufen; endet nach dreißig Sekunden.",
    ),
    "fr": (
        "Service de remboursement à crédit", "Calcule les intérêts", "Renvoie la liste des commandes déjà payées",
        "Si le solde est insuffisant, une erreur est renvoyée ; sinon le débit est effectué et journalisé.",
        "Cette méthode ouvre la connexion à la base de données. Ne pas l'appeler en boucle : délai de trente secondes.",
    ),
    "es": (
        "Servicio de devolución", "Calcula el interés del año", "Devuelve la lista de pedidos según el usuario",
        "Si el saldo no es suficiente, se devolverá un error; si no, se cobrará y quedará anotado en el diario.",
        "Este método abre la conexión con la base de datos. No lo llame en un bucle: el límite es de treinta segundos.",
    ),
}  # fmt: skip

_SOURCES = {
    "Repay.java": "public class Repay {{\n    // {0}\n    int pay(int x) {{\n        return x + 1;\n    }}\n}}\n",
    "repay.c": '#include <stdio.h>\n\n/* {0} */\nint pay(int x) {{\n    printf("%d\\n", x);\n    return x;\n}}\n',
    "repay.py": 'def pay(x):\n    """{0}"""\n    return x\n',
    "repay.sql": "-- {0}\nCREATE TABLE pay (id INT PRIMARY KEY, amount INT);\n",
    "repay.md": "# Pay\n\nSee `pay(x)`.\n\n{0}\n",
    "repay.txt": "See pay(x), x > 0.\n{0}\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A file: its name, its text with `\n` between lines, its bytes and what they are written in."""

    name: str
    text: str
    data: bytes
    encoding: str
    language: str


def encoded() -> Iterator[Encoded]:
    """Each source with each comment of each language, in each encoding of it, with both line ends."""
    for language, encodings in _ENCODINGS.items():
        for comment in _COMMENTS[language]:
            for name, source in _SOURCES.items():
                text = source.format(comment)
                for encoding in encodings:
                    for end in ("\n", "\r\n"):
                        data = text.replace("\n", end).encode(encoding)
                        yield Encoded(name=name, text=text, data=data, encoding=encoding, language=language)


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
