"""The context form, to the letter of its document and as it is by default."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from hummock.core.memory import CodeFragment, DomainKnowledge, Memory, MemoryKind, Origin
from hummock.core.project import ProjectInfo
from hummock.core.render import LITERAL_QUOTAS, Locale, PartialQuotas, Quotas, Tier
from hummock.render.context import CONTEXT_BUDGET_TOKENS, render_context
from hummock.render.section import Frame, Section, Selected, wording_of
from hummock.text.tokens import EstimatedTokens
from tests.render.golden import assert_golden
from tests.render.samples import PROJECT, dates, domain, fragment, memory, note, record, repayment, selected

ZH = wording_of(Locale.ZH)
COUNTER = EstimatedTokens()


def render(
    items: list[Selected],
    info: ProjectInfo | None = PROJECT,
    budget_tokens: int = CONTEXT_BUDGET_TOKENS,
    quotas: Quotas = LITERAL_QUOTAS,
) -> Section:
    """Renders to the letter of the document, unless other quotas are given."""
    frame = Frame(wording=ZH, budget_tokens=budget_tokens, counter=COUNTER, info=info, quotas=quotas)
    return render_context(items, frame)


def tiers(section: Section) -> dict[str, Tier]:
    return {one.memory_id: one.tier for one in section.memories}


def test_the_worked_example_has_the_documents_shape_in_either_language() -> None:
    """S0-21, S0-22, S0-23, S0-24, S0-25."""
    assert_golden("context.zh.md", render(repayment()).text)
    words = wording_of(Locale.EN)
    english = Frame(wording=words, budget_tokens=4000, counter=COUNTER, info=PROJECT, quotas=LITERAL_QUOTAS)
    assert_golden("context.en.md", render_context([*repayment(), *dates()], english).text)


def test_the_sections_are_those_of_the_document_line_by_line() -> None:
    """S0-21, S0-22, S0-23, S0-24, S0-25."""
    known = record("r", "问？", "答。", "A.java", "B.java"), domain("d", "还款", "概述", "A.java")
    items = selected(*known, fragment("c", "A.java", "class A {}"), score=0.95)
    assert render(items).text == (
        f"{ZH.data_notice}\n\n"
        "## 项目背景\n- 技术栈: Spring Boot, MyBatis, MySQL\n- 项目路径: /srv/loan-service\n\n"
        "## 相关领域知识\n### 还款\n概述\n关键文件: A.java\n\n"
        "## 相关学习记录 (后台已学到的知识)\n### 知识 1 (相关度: 95%)\n"
        "问题: 问？\n答案: 答。\n涉及文件: A.java, B.java\n\n"
        "## 相关代码片段\n文件: A.java\n```\nclass A {}\n```\n\n"
    )


def test_memories_named_by_id_have_no_relevance() -> None:
    text = render(selected(record("r", "q", "a"), score=None)).text
    assert "### 知识 1\n" in text
    assert "相关度" not in text


def test_empty_sections_and_empty_file_lists_are_left_out() -> None:
    """S0-25, S0-36."""
    text = render(selected(record("r", "q", "a"), domain("d", "还款", "概述"))).text
    assert "相关代码片段" not in text
    assert "文件:" not in text


def test_the_project_is_always_there_when_something_is_known_of_it() -> None:
    """S0-21: a heading has something below it."""
    before = f"{ZH.data_notice}\n\n## 项目背景\n"
    assert render([]).text == f"{before}- 技术栈: Spring Boot, MyBatis, MySQL\n- 项目路径: /srv/loan-service\n\n"
    assert "项目背景" not in render(selected(note("n", "x")), ProjectInfo()).text
    assert render([], ProjectInfo(path="/srv")).text == f"{before}- 项目路径: /srv\n\n"


def test_nothing_to_say_is_the_empty_text() -> None:
    """S0-36: an empty section leaves the prompt untouched."""
    for info in (None, ProjectInfo()):
        section = render([], info)
        assert (section.text, section.token_count, section.memories) == ("", 0, ())


def test_five_records_three_fragments_and_three_domains_are_shown() -> None:
    """S0-23, S0-24, S0-36, 1.1-5: ten fragments are loaded and three are shown."""
    items = selected(
        *(record(f"r{n}", "q", "a") for n in range(7)),
        *(fragment(f"c{n}", f"{n}.java", "x") for n in range(10)),
        *(domain(f"d{n}", "还款", "x") for n in range(4)),
    )
    shown = [memory_id for memory_id, tier in tiers(render(items)).items() if tier is Tier.FULL]
    assert shown == ["d0", "d1", "d2", "r0", "r1", "r2", "r3", "r4", "c0", "c1", "c2"]


def test_what_the_quota_leaves_out_is_reported_with_its_reason() -> None:
    """S0-23."""
    section = render(selected(*(record(f"r{n}", "q", "a") for n in range(6))))
    assert section.memories[5].tier is Tier.DROPPED
    assert section.memories[5].reason == "this form shows the first 5 of its kind"


def test_bodies_of_500_characters_are_whole_and_longer_ones_cut_with_a_marker() -> None:
    """S0-24, S0-36."""
    section = render(selected(record("r", "q", "答" * 501), fragment("c", "a.py", "x" * 501), note("n", "n" * 501)))
    assert f"答案: {'答' * 500}... (已截断)\n" in section.text
    assert f"```\n{'x' * 500}\n... (已截断)\n```\n" in section.text
    assert f"{'n' * 500}... (已截断)\n" in section.text
    assert {one.reason for one in section.memories} == {"cut at 500 characters"}
    assert "已截断" not in render(selected(record("r", "q", "答" * 500), fragment("c", "a.py", "x" * 500))).text


def test_at_most_five_files_are_named() -> None:
    """S0-36."""
    text = render(selected(record("r", "q", "a", *(f"{n}.java" for n in range(7))))).text
    assert "涉及文件: 0.java, 1.java, 2.java, 3.java, 4.java\n" in text


def test_notes_and_entries_stand_behind_the_records() -> None:
    text = render(selected(note("n", "每月 8 日还款。", title="还款日"), record("r", "q", "a"))).text
    assert text.index("## 相关学习记录") < text.index("## 相关记忆\n### 还款日\n每月 8 日还款。\n\n")


def test_a_note_that_is_its_own_title_is_said_once() -> None:
    text = render(selected(note("n", "每月 8 日还款。", title="每月 8 日还款。"))).text
    assert text.count("每月 8 日还款。") == 1


CODE_BEHIND = fragment("c", "A.java", "x")


@pytest.mark.parametrize(
    ("memories", "budget_tokens", "shown"),
    [
        # Break, not skip.
        ((record("r1", "q", "短"), record("r2", "q", "长" * 400), record("r3", "q", "短")), 150, {"r1"}),
        # No code stands where a record gave way.
        ((record("r1", "q", "长" * 450), record("r2", "q", "长" * 450), CODE_BEHIND), 500, {"r1"}),
        # A domain that does not fit leaves room for the records.
        ((domain("d", "还款", "概" * 500), record("r", "q", "短")), 150, {"r"}),
    ],
    ids=["records", "code", "domains"],
)
def test_a_chapter_ends_where_nothing_fits(memories: tuple[Memory, ...], budget_tokens: int, shown: set[str]) -> None:
    """S0-34, 1.1-6."""
    section = render(selected(*memories), budget_tokens=budget_tokens)
    assert tiers(section) == {one.id: Tier.FULL if one.id in shown else Tier.DROPPED for one in memories}


@pytest.mark.long
def test_code_gives_way_before_records_and_records_before_domains() -> None:
    """1.1-6, S0-36."""
    items = selected(domain("d", "还款", "概" * 60), record("r", "q", "答" * 60), fragment("c", "A.java", "类" * 60))
    kept: list[str] = []
    for budget_tokens in range(400, 0, -1):
        section = tiers(render(items, budget_tokens=budget_tokens))
        shown = "".join(sorted(memory_id for memory_id, tier in section.items() if tier is Tier.FULL))
        kept += [shown] if [shown] != kept[-1:] else []
    assert kept == ["cdr", "dr", "d", ""]


def test_the_project_is_charged_first() -> None:
    """S0-33."""
    items = selected(record("r", "q", "短"))
    with_project = render(items)
    budget_tokens = with_project.token_count - 1
    section = render(items, budget_tokens=budget_tokens)
    assert section.text.startswith(f"{ZH.data_notice}\n\n## 项目背景")
    assert tiers(section) == {"r": Tier.DROPPED}
    assert section.memories[0].reason == "the budget is used up"


def test_nothing_is_forced_into_a_budget_that_is_too_small() -> None:
    """1.1-6: the context form forces nothing."""
    section = render(selected(record("r", "q", "长" * 400)), budget_tokens=3)
    assert (section.text, section.token_count, section.over_budget) == ("", 0, False)


def test_the_same_selection_gives_the_same_bytes() -> None:
    """S0-25."""
    assert render(repayment()) == render(repayment())


TEXTS = st.text(st.sampled_from("还款 ab#\n`_0."), max_size=120)
ITEMS = st.lists(
    st.one_of(
        st.builds(record, st.uuids().map(str), TEXTS, TEXTS, TEXTS),
        st.builds(note, st.uuids().map(str), TEXTS, TEXTS),
        st.builds(domain, st.uuids().map(str), TEXTS, TEXTS, TEXTS),
        st.builds(fragment, st.uuids().map(str), TEXTS, TEXTS),
    ),
    max_size=12,
).map(lambda memories: selected(*memories))


@given(items=ITEMS, budget_tokens=st.integers(1, 700))
def test_every_memory_is_reported_once_with_a_reason(items: list[Selected], budget_tokens: int) -> None:
    """S2-12: also what was left out."""
    section = render(items, budget_tokens=budget_tokens)
    assert sorted(one.memory_id for one in section.memories) == sorted(item.memory.id for item in items)
    assert all(one.reason for one in section.memories)
    assert all((one.token_count == 0) == (one.tier is Tier.DROPPED) for one in section.memories)


def test_a_score_is_shown_in_whole_per_cent_never_rounded_up_whatever_float32_makes_of_it() -> None:
    """S0-23."""

    def shown(score: float) -> str:
        return render([Selected(memory=record("r", "问", "答"), score=score)], None).text

    scores = [(float(np.float32(per_cent / 100)), per_cent) for per_cent in range(101)]
    for score, per_cent in [*scores, (0.9499, 94), (0.999, 99)]:
        assert f"(相关度: {per_cent}%)" in shown(score)


FRAME = Frame(
    wording=wording_of(Locale.ZH), budget_tokens=CONTEXT_BUDGET_TOKENS, counter=EstimatedTokens(), info=PROJECT
)
METHOD = ["def settle(account):", *[f"    step_{n}(account)" for n in range(90)], "    return account"]
METHOD[60] = "    retry_failed_payment(account)"


def excerpt(items: list[Selected], query: str = "", **fields: object) -> Section:
    return render_context(items, replace(FRAME, query=query, **fields))  # type: ignore[arg-type] # fields of Frame


def code(content: str, first: int = 11, last: int = 102) -> Memory:
    detail = CodeFragment(
        path="src/settle.py", start_line=first, end_line=last, language="python", symbol="Ledger.settle"
    )
    return memory("src/settle.py#Ledger.settle", MemoryKind.CODE_FRAGMENT, content, detail, title="settle")


def test_the_worked_example_as_it_is_shown_by_default() -> None:
    """S0-21, S0-22, S0-23, S0-25, 1.1-5."""
    assert_golden("excerpts.zh.md", excerpt(repayment(), "增加先本后息的还款方式").text)
    items = [*repayment(), *dates(), *selected(code("\n".join(METHOD)))]
    english = replace(
        FRAME, wording=wording_of(Locale.EN), query="when are failed payments retried?", passage_scale=0.3
    )
    assert_golden("excerpts.en.md", render_context(items, english).text)


def test_code_says_its_path_lines_symbol_and_id() -> None:
    """S0-24, S2-16: what finds it again, and all of it."""
    text = excerpt(selected(code("class A:\n    pass\n", 3, 4))).text
    assert "文件: src/settle.py:3-4 · Ledger.settle [ID: src/settle.py#Ledger.settle]\n```\nclass A:\n" in text


def test_of_long_code_the_lines_that_answer_are_shown_below_its_first_line() -> None:
    """S0-24."""
    section = excerpt(selected(code("\n".join(METHOD))), "where is a failed payment retried?", passage_scale=0.4)
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
    text = excerpt(selected(code("class A:\n    def a(self): ...\n    def b(self): ...", 1, 300))).text
    assert "文件: src/settle.py:1-300 · " in text


def test_ten_fragments_are_shown_where_the_budget_has_room() -> None:
    """S0-20, 1.1-5."""
    items = selected(*(fragment(f"c{n}", f"{n}.java", "x") for n in range(12)))
    assert sum(one.tier is Tier.FULL for one in excerpt(items).memories) == 10
    assert sum(one.tier is Tier.FULL for one in excerpt(items, quotas=LITERAL_QUOTAS).memories) == 3


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
    section = excerpt(selected(note("规则.逾期", "\n".join(lines), title="规则")), "逾期几天收罚息？")
    body = section.text.partition("### 规则\n")[2].split("\n")
    assert body[0] == "..."
    assert lines[40] in body
    assert "... (已截断) [ID: 规则.逾期]" in body
    assert set(body[1:]) - set(lines) == {"... (已截断) [ID: 规则.逾期]", ""}


def test_a_passage_from_inside_a_block_of_code_stands_in_one() -> None:
    body = "\n".join(["Intro.", "```sh", *[f"echo {n}" for n in range(200)], "run the migration", "```", "After."])
    text = excerpt(selected(note("n", body, title="t")), "run the migration").text
    block = text.partition("### t\n...\n")[2]
    assert block.startswith("```\necho ")
    assert "run the migration\n```" in block


def test_a_domain_shows_what_is_known_where_its_summary_does_not_answer() -> None:
    """S0-22, S1-06: its name, then its summary, then the lines that do."""
    body = "\n".join(f"条款 {n}：没有特别的规定。" for n in range(60)) + "\n罚息：每天万分之五。"
    detail = DomainKnowledge(domain="还款", summary="还款的总览。")
    known = memory("d", MemoryKind.DOMAIN_KNOWLEDGE, body, detail)
    text = excerpt(selected(known), "罚息怎么算").text
    assert "### 还款\n还款的总览。\n...\n" in text
    assert "罚息：每天万分之五。" in text
    literal = excerpt(selected(known), "罚息怎么算", quotas=LITERAL_QUOTAS).text
    assert "### 还款\n还款的总览。\n\n" in literal


def test_a_section_of_a_document_is_called_by_all_its_headings_and_said_once() -> None:
    """1.1-17: documents are domain knowledge."""
    detail = DomainKnowledge(domain="Choice", summary="Rows are scanned.")
    content, title = "Rows are [scanned](x.md). No graph.", "007 Sign bits > Choice"
    section = memory("d", MemoryKind.DOMAIN_KNOWLEDGE, content, detail, title=title, origin=Origin.INDEXER)
    text = excerpt(selected(section)).text
    assert "### 007 Sign bits > Choice\nRows are [scanned](x.md). No graph.\n\n" in text
    assert "### Choice\nRows are scanned.\n\n" in excerpt(selected(section), quotas=LITERAL_QUOTAS).text


def test_what_has_a_drawback_is_left_out_with_its_reason_and_takes_no_place() -> None:
    """S0-23, 1.1-5."""
    low = selected(*(record(f"low{n}", "q", "a") for n in range(5)))
    low = [structs.replace(item, drawback="left out: too little") for item in low]
    section = excerpt([*low, *selected(record("good", "问", "答"))])
    assert [one.memory_id for one in section.memories if one.tier is Tier.FULL] == ["good"]
    assert {one.reason for one in section.memories if one.tier is Tier.DROPPED} == {"left out: too little"}
    assert "### 知识 1 " in section.text
