"""The context form as it is where nobody asks for its document's letter."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from hummock.core.memory import CodeFragment, DomainKnowledge, Memory, MemoryKind, Origin
from hummock.core.render import LITERAL_QUOTAS, Locale, PartialQuotas, Quotas, Tier
from hummock.render.context import CONTEXT_BUDGET_TOKENS, render_context
from hummock.render.passage import words_of
from hummock.render.section import Frame, Section, Selected, wording_of
from hummock.text.tokens import EstimatedTokens
from tests.render.golden import assert_golden
from tests.render.samples import PROJECT, dates, fragment, memory, note, record, repayment, selected

FRAME = Frame(
    wording=wording_of(Locale.ZH), budget_tokens=CONTEXT_BUDGET_TOKENS, counter=EstimatedTokens(), info=PROJECT
)
METHOD = ["def settle(account):", *[f"    step_{n}(account)" for n in range(90)], "    return account"]
METHOD[60] = "    retry_failed_payment(account)"


def render(items: list[Selected], query: str = "", **fields: object) -> Section:
    return render_context(items, replace(FRAME, words=words_of(query), **fields))  # type: ignore[arg-type] # fields of Frame


def code(content: str, first: int = 11, last: int = 102) -> Memory:
    detail = CodeFragment(
        path="src/settle.py", start_line=first, end_line=last, language="python", symbol="Ledger.settle"
    )
    return memory("src/settle.py#Ledger.settle", MemoryKind.CODE_FRAGMENT, content, detail, title="settle")


def test_the_worked_example_as_it_is_shown_by_default() -> None:
    """S0-21, S0-22, S0-23, S0-25, 1.1-5."""
    assert_golden("excerpts.zh.md", render(repayment(), "增加先本后息的还款方式").text)
    items = [*repayment(), *dates(), *selected(code("\n".join(METHOD)))]
    words = words_of("when are failed payments retried?")
    english = replace(FRAME, wording=wording_of(Locale.EN), words=words, passage_scale=0.3)
    assert_golden("excerpts.en.md", render_context(items, english).text)


def test_code_says_its_path_lines_symbol_and_id() -> None:
    """S0-24, S2-16: what finds it again, and all of it."""
    text = render(selected(code("class A:\n    pass\n", 3, 4))).text
    assert "文件: src/settle.py:3-4 · Ledger.settle [ID: src/settle.py#Ledger.settle]\n```\nclass A:\n" in text


def test_of_long_code_the_lines_that_answer_are_shown_below_its_first_line() -> None:
    """S0-24."""
    section = render(selected(code("\n".join(METHOD))), "where is a failed payment retried?", passage_scale=0.4)
    lines = section.text.split("\n")
    at = lines.index("```")
    assert lines[at + 1 : at + 3] == ["def settle(account):", "..."]
    assert "    retry_failed_payment(account)" in lines
    shown = [line for line in lines[at + 3 :] if line.startswith("    ")]
    assert all(METHOD.index(one) + 1 == METHOD.index(two) for one, two in pairwise(shown))
    first = 11 + METHOD.index(shown[0])
    assert f"文件: src/settle.py:{first}-{first + len(shown) - 1} · " in section.text
    assert section.memories[0].reason == "cut to the lines that bear on the query"


def test_of_a_class_without_its_bodies_all_lines_are_named() -> None:
    text = render(selected(code("class A:\n    def a(self): ...\n    def b(self): ...", 1, 300))).text
    assert "文件: src/settle.py:1-300 · " in text


def test_ten_fragments_are_shown_where_the_budget_has_room() -> None:
    """S0-20, 1.1-5."""
    items = selected(*(fragment(f"c{n}", f"{n}.java", "x") for n in range(12)))
    assert sum(one.tier is Tier.FULL for one in render(items).memories) == 10
    assert sum(one.tier is Tier.FULL for one in render(items, quotas=LITERAL_QUOTAS).memories) == 3


@pytest.mark.parametrize("characters", [0, 500])
def test_to_the_letter_three_fragments_are_the_usual_number(characters: int) -> None:
    """1.1-5, 1.1-6."""
    asked = PartialQuotas(text_characters=characters)
    assert asked.filled(PartialQuotas()) == (LITERAL_QUOTAS if characters else Quotas())
    assert asked.filled(PartialQuotas(code_fragments=7)).code_fragments == 7


def test_prose_is_cut_between_lines_and_ends_with_the_id_to_read_on_by() -> None:
    """S2-16."""
    lines = [f"第 {n} 条说的是别的事情，与还款无关。" for n in range(80)]
    lines[40] = "逾期三天以内不收罚息。"
    section = render(selected(note("规则.逾期", "\n".join(lines), title="规则")), "逾期几天收罚息？")
    body = section.text.partition("### 规则\n")[2].split("\n")
    assert body[0] == "..."
    assert lines[40] in body
    assert "... (已截断) [ID: 规则.逾期]" in body
    assert set(body[1:]) - set(lines) == {"... (已截断) [ID: 规则.逾期]", ""}


def test_a_passage_from_inside_a_block_of_code_stands_in_one() -> None:
    body = "\n".join(["Intro.", "```sh", *[f"echo {n}" for n in range(200)], "run the migration", "```", "After."])
    text = render(selected(note("n", body, title="t")), "run the migration").text
    block = text.partition("### t\n...\n")[2]
    assert block.startswith("```\necho ")
    assert "run the migration\n```" in block


def test_a_domain_shows_what_is_known_where_its_summary_does_not_answer() -> None:
    """S0-22, S1-06: its name, then its summary, then the lines that do."""
    body = "\n".join(f"条款 {n}：没有特别的规定。" for n in range(60)) + "\n罚息：每天万分之五。"
    detail = DomainKnowledge(domain="还款", summary="还款的总览。")
    known = memory("d", MemoryKind.DOMAIN_KNOWLEDGE, body, detail)
    text = render(selected(known), "罚息怎么算").text
    assert "### 还款\n还款的总览。\n...\n" in text
    assert "罚息：每天万分之五。" in text
    literal = render(selected(known), "罚息怎么算", quotas=LITERAL_QUOTAS).text
    assert "### 还款\n还款的总览。\n\n" in literal


def test_a_section_of_a_document_is_called_by_all_its_headings_and_said_once() -> None:
    """1.1-17: documents are domain knowledge."""
    detail = DomainKnowledge(domain="Choice", summary="Rows are scanned.")
    content, title = "Rows are [scanned](x.md). No graph.", "007 Sign bits > Choice"
    section = memory("d", MemoryKind.DOMAIN_KNOWLEDGE, content, detail, title=title, origin=Origin.INDEXER)
    text = render(selected(section)).text
    assert "### 007 Sign bits > Choice\nRows are [scanned](x.md). No graph.\n\n" in text
    assert "### Choice\nRows are scanned.\n\n" in render(selected(section), quotas=LITERAL_QUOTAS).text


def test_what_has_a_drawback_is_left_out_with_its_reason_and_takes_no_place() -> None:
    """S0-23, 1.1-5."""
    low = selected(*(record(f"low{n}", "q", "a") for n in range(5)))
    low = [replace(item, drawback="left out: too little") for item in low]
    section = render([*low, *selected(record("good", "问", "答"))])
    assert [one.memory_id for one in section.memories if one.tier is Tier.FULL] == ["good"]
    assert {one.reason for one in section.memories if one.tier is Tier.DROPPED} == {"left out: too little"}
    assert "### 知识 1 " in section.text
