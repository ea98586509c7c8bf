"""What a query names of code: places of a stack trace, and the class that it asks about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummock.recall.named_code import MOST_FRAMES, class_in, frames_in


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ('  File "app/pay/loan.py", line 12, in repay', ["app/pay/loan.py:12"]),
        ("\tat shop.Cart.add(Cart.java:123)\n\tat shop.Main.main(Main.java:4)", ["Cart.java:123", "Main.java:4"]),
        ("    at total (/srv/src/cart.ts:10:5)", ["srv/src/cart.ts:10"]),
        ("main.go:88 +0x1d", ["main.go:88"]),
        ("thread 'main' panicked at src/main.rs:4:5:", ["src/main.rs:4"]),
        (r"   at Shop.Cart.Add() in C:\shop\Cart.cs:line 42", ["shop/Cart.cs:42"]),
        ("报错在 loan_service.py:7 这一行", ["loan_service.py:7"]),
        ("cart.go:3 then cart.go:3 again", ["cart.go:3"]),
        ("at noon 12:30, version 1.2(3), ratio 3.5:20", []),
        ("cart.go:0", []),
        ("", []),
    ],
)
def test_the_places_of_a_trace_are_read_as_each_language_writes_them(text: str, places: list[str]) -> None:
    assert [f"{frame.path}:{frame.line}" for frame in frames_in(text)] == places


def test_a_method_tells_the_folders_of_its_file() -> None:
    (frame,) = frames_in("\tat org.shop.Cart.<init>(Cart.java:7)")
    assert frame.package == ("org", "shop")


def test_of_a_deep_trace_the_first_places_are_read() -> None:
    deep = frames_in("\n".join(f"at f (a.js:{line})" for line in range(1, 100)))
    assert [frame.line for frame in deep] == list(range(1, MOST_FRAMES + 1))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("What does the class Ledger do?", "Ledger"),
        ("what does `shop.Ledger` do", "shop.Ledger"),
        ("What's the purpose of the Ledger interface?", "Ledger"),
        ("what is the Ledger class used for?", "Ledger"),
        ("Ledger 这个类是做什么的", "Ledger"),
        ("Ledger这个接口是干嘛用的？", "Ledger"),
        ("请问「Ledger」的作用是什么", "Ledger"),
        ("LoanLedger 类有什么用", "LoanLedger"),
        ("What does the ledger do?", ""),
        ("What does Ledger do with a date?", ""),
        ("Where is Ledger made?", ""),
        ("Ledger 在哪里创建", ""),
        ("账本这个类是做什么的", ""),
    ],
)
def test_a_question_what_a_class_does_names_the_class(text: str, name: str) -> None:
    assert class_in(text) == name
    assert class_in(f"{'a' * 8000} {text}") == name


@given(st.text(max_size=300))
def test_no_text_is_an_error(text: str) -> None:
    assert all(frame.line > 0 for frame in frames_in(text))
    assert class_in(text) in text
