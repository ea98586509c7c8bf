"""The worked example of the first document, with the bilingual sample, a real repository and a real model."""

from __future__ import annotations

import pytest

from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from hummock_tools.demo import load_sample, sample_input, sample_repository
from hummock_tools.indexing.sync import SyncReport, sync
from tests.service.calls import ask, await_vectors, learn, stages
from tests.service.running import Stubs

PROJECT = "repayment"
SENTENCE = "增加先本后息的还款方式"


@pytest.fixture(scope="module")
def repayment(service: Stubs) -> Stubs:
    sample = load_sample()
    learn(service, PROJECT, *(sample_input(memory) for memory in sample.memories))
    report = index(service)
    assert not report.failures
    return service


def index(service: Stubs) -> SyncReport:
    with sample_repository() as root:
        return sync(
            root,
            project=PROJECT,
            channel=service.channel,
            on_progress=lambda progress: None,
            on_skip=lambda path, reason: None,
        )


@pytest.fixture(scope="module")
def recalled(repayment: Stubs) -> recall.RecallResponse:
    await_vectors(repayment, PROJECT)
    return ask(repayment, PROJECT, SENTENCE, preset=recall.PRESET_CODE)


def test_the_repayment_records_come_first(recalled: recall.RecallResponse) -> None:
    """S0-01, S0-02, S0-05, S0-15, S0-29."""
    first_four = [hit.memory.learning_record.question for hit in recalled.hits[:4]]
    assert "还款方式有哪些类型？" in first_four
    assert sum("还" in question or "息" in question for question in first_four) >= 3


def test_a_hit_is_the_whole_record_and_its_score(recalled: recall.RecallResponse) -> None:
    """S0-07, S0-16, S0-17, S0-18."""
    records = [hit for hit in recalled.hits if hit.memory.kind == pb.MEMORY_KIND_LEARNING_RECORD]
    assert 0 < records[0].score <= 1
    for hit in records:
        assert hit.memory.learning_record.question
        assert hit.memory.learning_record.answer
        assert hit.memory.create_time.seconds > 0
    assert any(hit.memory.learning_record.source_files for hit in records)
    domain, code = recalled.domains[0].memory.domain_knowledge, recalled.code_fragments[0].memory
    assert domain.summary
    assert domain.key_files
    assert code.code_fragment.path
    assert code.content


def test_the_domain_is_found_by_its_name(recalled: recall.RecallResponse) -> None:
    """S0-10, S0-04."""
    assert recalled.domains[0].memory.domain_knowledge.domain == "还款"
    assert recall.RECALL_PATH_DOMAIN in recalled.domains[0].paths
    assert "还款" in recalled.intent.domains


def test_the_java_files_of_the_domain_are_recalled(recalled: recall.RecallResponse) -> None:
    """S0-08, S0-29."""
    files = {hit.memory.code_fragment.path.rsplit("/", 1)[-1] for hit in recalled.code_fragments}
    assert {"RepaymentService.java", "RepaymentType.java", "RepaymentCalculator.java"} <= files


def test_the_receipt_says_what_ran(recalled: recall.RecallResponse) -> None:
    """S0-12."""
    assert stages(recalled.receipt) == [
        "intent",
        "embed",
        "gather",
        "late_interaction",
        "fuse",
        "diversify",
        "load",
    ]
    assert {group.group for group in recalled.receipt.groups} == {
        recall.HIT_GROUP_DOMAINS,
        recall.HIT_GROUP_CODE,
        recall.HIT_GROUP_MAIN,
    }
    assert not recalled.degraded


def test_the_section_has_the_documents_shape(repayment: Stubs) -> None:
    """S0-20, S0-21, S0-22, S0-23, S0-24, S0-26, S0-30."""
    request = context.RenderRequest(
        project=PROJECT, recall=recall.RecallRequest(query_text=SENTENCE, preset=recall.PRESET_CODE)
    )
    rendered = repayment.context.Render(request)
    lines = rendered.text.splitlines()
    headings = [line for line in lines if line.startswith("## ")]
    assert headings[:3] == ["## 项目背景", "## 相关领域知识", "## 相关学习记录 (后台已学到的知识)"]
    assert "## 相关代码片段" in headings
    assert "- 技术栈: Spring Boot, MyBatis, MySQL" in lines
    assert "### 还款" in lines
    assert any(line.startswith("### 知识 1 (相关度: ") for line in lines)
    assert any(line.startswith("涉及文件: ") and "RepaymentType.java" in line for line in lines)
    assert rendered.token_count <= rendered.budget_tokens == 4000
    assert rendered.intent.domains


def test_indexing_again_sends_nothing(repayment: Stubs) -> None:
    report = index(repayment)
    assert (report.sent, report.deleted) == (0, 0)
    assert report.unchanged > 0


def test_an_english_question_finds_english_among_chinese(repayment: Stubs) -> None:
    hits = ask(repayment, PROJECT, "How does the list API paginate?", preset=recall.PRESET_CODE).hits
    assert hits[0].memory.id == "learned/pagination"


def test_search_lists_code_and_knowledge_together(repayment: Stubs) -> None:
    """S1-02, S1-08, S1-11, S1-14, S1-22."""
    found = repayment.context.Search(context.SearchRequest(project=PROJECT, query_text="还款方式 添加 流程", top_k=10))
    assert {context.SearchScope.Name(result.scope) for result in found.results} == {
        "SEARCH_SCOPE_CODE",
        "SEARCH_SCOPE_KNOWLEDGE",
    }
    scores = [result.score for result in found.results]
    assert scores == sorted(scores, reverse=True)
    assert found.text.startswith("1. [")
