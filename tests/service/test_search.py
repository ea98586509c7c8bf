"""The agent's search tool, from outside."""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest

from hummock_client.v1 import context_service_pb2 as context
from tests.service.calls import failure, learn, render
from tests.service.inputs import domain, fragment, note, record
from tests.service.running import Stubs

pytestmark = pytest.mark.storeless

TOPIC = "How are failed payments retried?"


def search(service: Stubs, project: str, text: str, **fields: Any) -> context.SearchResponse:
    return service.context.Search(project=project, query_text=text, **fields)


def ids(found: context.SearchResponse) -> list[str]:
    return [result.memory_id for result in found.results]


@pytest.fixture
def payments(service: Stubs, project: str) -> str:
    learn(
        service,
        project,
        record(TOPIC, "PaymentRetryJob tries again after 1, 5 and 30 minutes.", id="retries"),
        record("Who calls PaymentRetryJob?", "The scheduler of the billing service, every minute.", id="caller"),
        fragment(
            "src/PaymentService.java", "PaymentService", "class PaymentService { void pay() {} }", language="java"
        ),
        domain("还款", "还款方式在 RepaymentType 中添加，流程见设计文档。"),
        note("The cafeteria closes at three on Fridays.", id="cafeteria"),
        note("Harbour pilots board ships outside the breakwater.", id="pilots"),
    )
    return project


def test_the_tool_is_defined_as_the_document_says_in_every_shape(service: Stubs, payments: str) -> None:
    """S1-02, S1-03, S1-04, S1-12."""
    rendered = render(service, payments, "还款方式 添加 流程", template=context.PROMPT_TEMPLATE_CODE_ANALYST)
    tool = rendered.tools[0]
    schema = json.loads(tool.input_schema_json)
    assert (tool.name, tool.description) == ("search", "统一搜索工具，同时搜索代码和领域知识")
    assert schema["required"] == ["query"]
    assert {name: field["description"] for name, field in schema["properties"].items()} == {
        "query": "搜索查询",
        "topK": "返回结果数量（默认 10）",
        "type": "搜索类型：code/knowledge/both（默认 both）",
    }
    assert schema["properties"]["type"]["enum"] == ["code", "knowledge", "both"]
    assert json.loads(tool.openai_json)["function"]["parameters"] == schema
    assert json.loads(tool.anthropic_json)["input_schema"] == schema
    assert json.loads(tool.mcp_json)["inputSchema"] == schema
    (system,) = rendered.messages
    assert system.content.startswith("你是一个专业的代码分析助手。\n")
    assert "4. 如果问题复杂，可以拆解为多个 SubTask" in system.content


def test_a_search_is_repeatable_and_depends_on_none_before_it(service: Stubs, payments: str) -> None:
    """S1-01: the model drives; it may search again, in any order."""
    queries = (TOPIC, "还款方式 添加 流程", "and who calls it?")

    def answers(order: tuple[str, ...]) -> dict[str, tuple[list[str], str]]:
        found = {query: search(service, payments, query) for query in order}
        return {query: (ids(one), one.text) for query, one in found.items()}

    before = service.project.GetProject(project=payments).project
    first = answers(queries)
    assert answers(queries[::-1]) == first
    assert answers(queries + queries) == first
    assert service.project.GetProject(project=payments).project == before


def test_the_documents_example_calls_are_answered(service: Stubs, payments: str) -> None:
    """S1-08, S1-13, S1-14."""
    code = search(service, payments, "PaymentService 类作用", top_k=5, scope=context.SEARCH_SCOPE_CODE)
    assert [result.scope for result in code.results] == [context.SEARCH_SCOPE_CODE]
    assert code.results[0].title == "src/PaymentService.java · PaymentService"
    assert code.results[0].path == "src/PaymentService.java"
    both = search(service, payments, "还款方式 添加 流程", top_k=10, scope=context.SEARCH_SCOPE_BOTH)
    assert {result.scope for result in both.results} == {context.SEARCH_SCOPE_CODE, context.SEARCH_SCOPE_KNOWLEDGE}
    assert both.results[0].title == "还款"


def test_text_and_time_stand_beside_the_results(service: Stubs, payments: str) -> None:
    """S1-05, S1-11, S1-22."""
    found = search(service, payments, TOPIC, top_k=3)
    scores = [result.score for result in found.results]
    assert scores == sorted(scores, reverse=True)
    assert found.text.startswith(f"1. [knowledge] {TOPIC} (score={scores[0]:.2f})\n")
    assert found.receipt.elapsed.ToMilliseconds() >= 0
    assert found.receipt.elapsed.ToNanoseconds() > 0


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_search_without_a_query_is_a_failure_that_names_it(service: Stubs, payments: str, text: str) -> None:
    """S1-22."""
    refusal = failure(search, service, payments, text)
    assert (refusal.code, set(refusal.violations)) == (grpc.StatusCode.INVALID_ARGUMENT, {"query_text"})


@pytest.mark.usefixtures("real_models")
def test_a_follow_up_finds_what_the_conversation_is_about(service: Stubs, payments: str) -> None:
    """S1-21."""
    assert ids(search(service, payments, TOPIC, session_id="s"))[0] == "retries"
    followed = search(service, payments, "and who calls it?", session_id="s", top_k=2)
    assert set(ids(followed)) == {"retries", "caller"}
    assert list(followed.together_with) == [TOPIC]
    assert [result.seen_before for result in followed.results] == [True, True]


def test_an_unrelated_question_is_not_hurt_by_its_session(service: Stubs, payments: str) -> None:
    """S1-21."""
    search(service, payments, TOPIC, session_id="s")
    inside = search(service, payments, "When does the cafeteria close on Fridays?", session_id="s")
    outside = search(service, payments, "When does the cafeteria close on Fridays?")
    assert ids(inside) == ids(outside)
    assert inside.text == outside.text
    assert list(inside.together_with) == []


def test_what_a_session_has_seen_stands_behind_where_that_is_wanted(service: Stubs, payments: str) -> None:
    """S1-20."""
    search(service, payments, TOPIC, session_id="s", top_k=1)
    found = search(service, payments, "payments retried minutes", session_id="s", unseen_first=True)
    assert ids(found)[-1] == "retries"
    assert [result.seen_before for result in found.results].index(True) == len(found.results) - 1
