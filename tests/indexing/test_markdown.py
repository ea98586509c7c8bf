"""Markdown documents as domain knowledge."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hummock.core.memory import DomainKnowledge, MemoryIndex, Payload
from hummock.text.template import embedded
from hummock_tools.indexing.chunker import SourceFile
from hummock_tools.indexing.markdown import MAX_SUMMARY_CHARACTERS, DomainEntry, domain_entries, names_of
from hummock_tools.indexing.tree import content_hash

KNOWN = frozenset(
    {
        "README.md", "docs/design.md", "docs/plan.md", "Makefile", "src/main/java/RepaymentService.java",
        "src/main/java/RepaymentType.java", "a/util.py", "b/util.py",
    }
)  # fmt: skip


def entries(text: str, path: str = "docs/design.md") -> list[DomainEntry]:
    return domain_entries(SourceFile(path=path, data=text.encode()), KNOWN)


def domains(text: str) -> list[str]:
    return [entry.domain for entry in entries(text)]


def test_each_section_of_the_first_two_levels_is_an_entry() -> None:
    """S1-18."""
    found = entries("# 贷款\n\n概述。\n\n## 还款\n\n还款方式。\n\n### 细节\n\n更深。\n\n## 放款\n\n放款流程。\n")
    assert [(each.id, each.domain, each.summary) for each in found] == [
        ("docs/design.md#贷款", "贷款", "概述。"),
        ("docs/design.md#贷款/还款", "还款", "还款方式。 更深。".replace(" ", "\n")),
        ("docs/design.md#贷款/放款", "放款", "放款流程。"),
    ]
    assert found[1].content == "还款方式。\n\n### 细节\n\n更深。"


@pytest.mark.parametrize(
    "text",
    [
        "# A\n\n```sh\n# not a heading\n## nor this\n```\n", "# A\n\n~~~~\n# no\n~~~\n# still no\n~~~~\n",
        "# A\n\n- item\n\n      ```\n# no\n      ```\n", "# A\n\n<!-- \n# no\n-->\n", "# A\n\n    # indented code\n",
        "# A\n\n#no space\n", "# A\n\n```\n# never closed\n",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_heading_is_none(text: str) -> None:
    assert domains(text) == ["A"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Underlined headings count, and rules and tables do not.
        ("Title\n=====\n\ntext\n\nPart\n----\n\nmore\n\n---\n\n| a |\n---\n\n- item\n---\n", ["Title", "Part"]),
        # Closing marks, code and links leave the heading.
        ("## `index` [the guide](x.md) ##\n\ntext\n", ["index the guide"]),
        # A document without headings is named after its file.
        ("Only text.\n", ["design"]),
    ],
)
def test_domains_are_the_headings(text: str, expected: list[str]) -> None:
    assert domains(text) == expected


def test_front_matter_gives_the_title_and_sections_without_text_are_left_out() -> None:
    found = entries('---\ntitle: "设计"\ntags: [a]\n---\n\nText.\n')
    assert [(each.domain, each.content) for each in found] == [("设计", "Text.")]
    found = entries("# A\n\n## B\n\none\n\n## B\n\ntwo\n")
    assert [each.id for each in found] == ["docs/design.md#A/B", "docs/design.md#A/B~2"]
    assert [entries(text) for text in ("", "\n\n", "# A\n", "# A\n## B\n")] == [[]] * 4


NOTE = """---
title: 潮汐
tags: [ocean, "#wood/old", ocean]
aliases:
  - Tidewood
  - "心材, dark"
date: 2026-03-01
rating: 5
---

See [[plan]] and [[Sea floor|the floor]].

## More

Text.
"""
FRONT = {
    "a list in brackets": ("tags: [a, b]", ("a", "b")),
    "a list below": ("tags:\n- a\n  - '#b'", ("a", "b")),
    "one text": ("tags: a, b c", ("a", "b", "c")),
    "the singular": ("tag: a", ("a",)),
    "none": ("tags:", ()),
    "a list of something else": ("cssclasses:\n- x\ntags: a\nother:\n- y", ("a",)),
    "too long": (f"tags: {'x' * 129}", ()),
}
DATES = {
    "2026-03-01": "2026-03-01T00:00:00+00:00",
    "2026-03-01T09:30:00+08:00": "2026-03-01T09:30:00+08:00",
    '"2026-03-01 09:30"': "2026-03-01T09:30:00+00:00",
    "{{date}}": "",
    "soon": "",
    "0001-01-01": "",
    "9999-12-31T23:59-01:00": "",
}


def test_what_a_note_says_at_its_top_holds_for_all_of_it() -> None:
    first, second = entries(NOTE)
    assert (first.domain, first.aliases) == ("潮汐", ("Tidewood", "心材, dark"))
    assert second.aliases == ()
    assert {each.tags for each in (first, second)} == {("ocean", "wood/old")}
    assert {each.date for each in (first, second)} == {"2026-03-01T00:00:00+00:00"}
    assert first.summary == "See plan and the floor."


@pytest.mark.parametrize("case", FRONT)
def test_tags_are_a_list_however_it_is_written(case: str) -> None:
    given, expected = FRONT[case]
    (entry,) = entries(f"---\n{given}\n---\nText.\n")
    assert entry.tags == expected


@pytest.mark.parametrize("given", DATES)
def test_a_date_is_one_in_iso_8601(given: str) -> None:
    (entry,) = entries(f"---\ndate: {given}\n---\nText.\n")
    assert entry.date == DATES[given]


def test_tags_in_a_text_are_those_of_its_section() -> None:
    text = (
        "---\ntags: top\n---\n# A\n#one and (#two/deep), #三。#top #12 C# a#b `#code` &#amp; #fff #a0b1c2\n"
        "```\n#fenced\n```\n## B\n<!-- #hidden -->\ntext\n"
    )
    first, second = entries(text)
    assert first.tags == ("top", "one", "two/deep", "三")
    assert second.tags == ("top",)


def test_links_of_a_vault_are_key_files() -> None:
    known = frozenset({"a/Sea floor.md", "plan.md", "img/map.png", "a/two.md", "b/two.md", "a b.md", "x.md"})
    text = "# A\n[[Sea floor|x]] [[plan#Costs]] ![[map.png]] [[two]] [[b/two]] [[gone]] [y](a%20b.md#c) [[x]]\n"
    (entry,) = domain_entries(SourceFile(path="x.md", data=text.encode()), known)
    assert entry.key_files == ("img/map.png", "a/Sea floor.md", "plan.md", "b/two.md", "a b.md")


def test_a_document_without_tags_and_date_has_the_hash_that_it_had() -> None:
    (entry,) = entries("# A\n\ntext\n")
    assert content_hash(entry) == "c7647725bf0b62523e9ec36a268912fc"


def test_files_are_key_files_by_path_by_place_and_by_their_only_name() -> None:
    text = (
        "# A\n\n见 `RepaymentService.java`、src/main/java/RepaymentType.java, [plan](plan.md) and `Makefile`. "
        "Not util.py, which two have, nor missing.py, nor docs/design.md itself. Again RepaymentService.java.\n"
    )
    assert entries(text)[0].key_files == (
        "src/main/java/RepaymentService.java", "src/main/java/RepaymentType.java", "docs/plan.md", "Makefile",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("heading", "aliases"),
    [
        ("3. Storage", ("Storage",)), ("2.1 还款", ("还款",)), ("一、背景", ("背景",)),
        ("Install / Upgrade", ("Install", "Upgrade")), ("Contract: proto/hummock/v1", ()), ("2024 report", ()),
        ("还款 (Repayment)", ("还款", "Repayment")), ("还款", ()),
    ],
)  # fmt: skip
def test_parts_of_a_heading_without_its_number_are_aliases(heading: str, aliases: tuple[str, ...]) -> None:
    assert entries(f"## {heading}\n\ntext\n")[0].aliases == aliases


def test_a_section_is_titled_by_all_the_headings_above_it() -> None:
    """S1-18."""
    found = entries("# 007 Sign bits\n\ntext\n\n## Choice\n\ntext\n\n### More\n\ntext\n")
    assert [(each.domain, each.title) for each in found] == [
        ("007 Sign bits", "007 Sign bits"),
        ("Choice", "007 Sign bits > Choice"),
    ]


def test_a_large_section_is_parted_at_its_own_headings() -> None:
    """S1-18."""
    small, large = "词。" * 20, "a sentence. " * 400
    text = (
        f"# Guide\n\n## Setup\n\nFirst.\n\n### Linux\n\n{small}\n\n### Mac\n\n{small}\n\n"
        f"## Use\n\nIntro.\n\n### Keys\n\n{small}\n\n#### Rotation\n\n{small}\n\n"
        f"### Limits\n\n{large}\n\n#### Size\n\n{large}\n\n##### Deeper\n\nend\n"
    )
    found = {each.title: each.content for each in entries(text)}
    assert list(found) == [
        "Guide > Setup",
        "Guide > Use",
        "Guide > Use > Keys",
        "Guide > Use > Limits",
        "Guide > Use > Limits > Size",
    ]
    assert "### Mac" in found["Guide > Setup"]
    assert found["Guide > Use"] == "Intro."
    assert "#### Rotation" in found["Guide > Use > Keys"]
    assert found["Guide > Use > Limits > Size"].endswith("##### Deeper\n\nend")


def test_anchors_and_other_elements_leave_a_heading() -> None:
    text = '## <a id="keys"></a>Keys of `Map<K>` <sub>new</sub><br/>\n\nText.\n'
    assert domains(text) == ["Keys of Map<K> new"]


def test_a_heading_that_other_documents_have_names_its_section_only_with_those_above_it() -> None:
    """S0-10: a question that holds the word does not name all of them."""
    text = "# Guide\n\ntext\n\n## 2. Choice (Wahl)\n\ntext\n\n## 还款\n\ntext\n"
    other = SourceFile(path="docs/plan.md", data=b"# Guide\n\ntext\n\n## Choice (Wahl)\n\ntext\n")
    document = SourceFile(path="docs/design.md", data=text.encode())
    found = domain_entries(document, KNOWN, names_of(document) & names_of(other))
    assert [(each.domain, each.aliases) for each in found] == [
        ("docs/design.md > Guide", ()),
        ("Guide > 2. Choice (Wahl)", ()),
        ("还款", ()),
    ]


def test_wrapped_chinese_is_joined_without_a_space_and_english_with_one() -> None:
    text = "# A\n\n还款计划由服务生成，并把\n结果通知账务。Then\nthe ledger\n记账。\n"
    assert entries(text)[0].summary == "还款计划由服务生成，并把结果通知账务。Then the ledger 记账。"


def test_a_summary_is_prose_and_never_empty() -> None:
    picture = "# A\n\n[![badge](x.svg)](y)\n\n| a | b |\n\n```\ncode\n```\n\nSee [the plan](plan.md).\n"
    assert entries(picture)[0].summary == "See the plan."
    assert entries("# A\n\n```\ncode\n```\n")[0].summary == "```\ncode\n```"


def test_a_long_first_paragraph_is_cut_after_a_sentence() -> None:
    summary = entries("# A\n\n" + "这是一句话。" * 200)[0].summary
    assert summary.endswith("。")
    assert len(summary) <= MAX_SUMMARY_CHARACTERS
    assert len(entries("# A\n\n" + "x" * 2000)[0].summary) == MAX_SUMMARY_CHARACTERS


def test_a_section_longer_than_a_memory_may_be_is_parted() -> None:
    line = "还" * 1000 + "\n"
    found = entries("# A\n\n" + line * 100)
    assert [each.id for each in found] == ["docs/design.md#A", "docs/design.md#A@2"]
    assert sum(each.content.count("还") for each in found) == 100_000
    assert all(len(each.content.encode()) <= 200_000 for each in found)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(
    lines=st.lists(
        st.sampled_from(
            ["# A", "## B", "### C", "text 文本", "", "```", "~~~", "<!--", "-->", "| a |", "    # x", "- i", "#"]
        ),
        max_size=30,
    )
)
def test_entries_are_whole_and_distinct_whatever_the_document(lines: list[str]) -> None:
    found = entries("\n".join(lines))
    assert len({each.id for each in found}) == len(found)
    for each in found:
        assert each.domain.strip()
        assert each.content.strip()
        assert 1 <= len(each.summary) <= MAX_SUMMARY_CHARACTERS
    told = "\n".join(each.content for each in found)
    assert told.count("text 文本") == lines.count("text 文本")


@pytest.mark.parametrize(
    "hostile", ["[" * 50_000, "`" * 50_000, "# " * 50_000, "-" * 50_000, "[a](" * 20_000, "a/" * 50_000]
)
def test_hostile_lines_take_no_time(hostile: str) -> None:
    """X10: no expression looks back more than its line is long."""
    assert len(entries(f"text\n\n{hostile}\n")) <= 2


def test_a_document_that_is_moved_says_the_same_to_the_model() -> None:
    """This holds also for a document that begins like others, and is told apart by its title."""
    titles, texts = set(), set()
    for path in ("docs/README.md", "older docs/v1.5/README.md"):
        file = SourceFile(path=path, data="# 概览\n\nTides of the harbour.\n".encode())
        (entry,) = domain_entries(file, KNOWN, names_of(file))
        detail = DomainKnowledge(domain=entry.domain, aliases=entry.aliases, summary=entry.summary)
        titles.add(entry.title)
        texts.add(embedded(MemoryIndex(title=entry.title), Payload(content=entry.content, detail=detail)))
    assert titles == {"docs/README.md > 概览", "older docs/v1.5/README.md > 概览"}
    assert {header for header, _ in texts} == {"概览"}
    assert len(texts) == 1
