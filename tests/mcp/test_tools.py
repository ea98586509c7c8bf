"""The tools and the resource, called by the client of an agent, against the whole service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from mcp import Client, MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, TextContent, TextResourceContents

from hummock_client import Client as Service
from hummock_client.v1 import context_service_pb2, recall_pb2
from hummock_client.v1.memory_pb2 import Memory
from tests.mcp.conftest import Agent
from tests.service.inputs import domain, fragment, note, record

pytestmark = pytest.mark.timed

PARSER = fragment("src/dates.py", "parse_date", "def parse_date(text):\n    return date.fromisoformat(text)\n")
REPAYMENT = domain("还款", "还款模块处理所有还款相关业务。", key_files=("RepaymentService.java",))
QUESTION = record(
    "先息后本的实现方式？", "每期只还利息，最后一期还清本金。", "RepaymentType.java", id="还款/../先息后本 #1"
)


def ask(agent: Agent, talk: Callable[[Client], Awaitable[Any]], **how: Any) -> Any:
    async def session() -> Any:
        async with agent(**how) as client:
            return await talk(client)

    return asyncio.run(session())


def call(agent: Agent, tool: str, **arguments: object) -> CallToolResult:
    (result,) = calls(agent, (tool, arguments))
    return result


def calls(agent: Agent, *asked: tuple[str, Mapping[str, object]], **how: Any) -> list[CallToolResult]:
    """Results of several calls of one session."""

    async def talk(client: Client) -> list[CallToolResult]:
        return [await client.call_tool(tool, dict(arguments)) for tool, arguments in asked]

    results: list[CallToolResult] = ask(agent, talk, **how)
    return results


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def answer(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


@pytest.fixture
def learn(target: str, project: str) -> Callable[..., list[str]]:
    def learn(*memories: Memory) -> list[str]:
        with Service(target) as service:
            return [result.id for result in service.learn(project, memories).results]

    return learn


@pytest.mark.long
def test_there_are_five_tools_with_schemas_of_what_they_take_and_give(agent: Agent) -> None:
    """S1-04, S2-16."""
    listed = ask(agent, lambda client: client.list_tools(), is_piped=True)
    tools = {tool.name: tool for tool in listed.tools}
    assert sorted(tools) == ["forget", "read_memory", "recall_context", "remember", "search"]
    assert all(tool.output_schema["type"] == "object" and tool.title for tool in tools.values())
    writes = [name for name, tool in tools.items() if not tool.annotations.read_only_hint]
    assert writes == ["remember", "forget"]
    assert [name for name, tool in tools.items() if tool.annotations.destructive_hint] == ["forget"]
    assert all(tool.annotations.idempotent_hint for tool in tools.values())
    assert not any(tool.annotations.open_world_hint for tool in tools.values())
    assert tools["search"].description.startswith("统一搜索工具，同时搜索代码和领域知识")
    parameters = tools["search"].input_schema["properties"]
    assert (list(parameters), parameters["type"]["enum"]) == (["query", "topK", "type"], ["code", "knowledge", "both"])
    assert (parameters["type"]["default"], parameters["topK"]["default"]) == ("both", 10)
    assert tools["search"].input_schema["required"] == ["query"]
    assert all(
        parameter["description"] for tool in tools.values() for parameter in tool.input_schema["properties"].values()
    )
    assert not any(tool.input_schema["additionalProperties"] for tool in tools.values())


def test_the_search_tool_is_the_one_that_a_rendering_brings_along(agent: Agent, target: str, project: str) -> None:
    """S1-03, S1-04: one definition; a rendering has it in the language of its text, the server in both."""
    (listed,) = [tool for tool in ask(agent, lambda client: client.list_tools()).tools if tool.name == "search"]
    with Service(target) as service:
        request = context_service_pb2.RenderRequest(
            project=project,
            recall=recall_pb2.RecallRequest(query_text="还款方式"),
            template=context_service_pb2.PROMPT_TEMPLATE_CODE_ANALYST,
            allow_missing=True,
        )
        (rendered,) = service.send(request).tools
    served, schema = json.loads(rendered.mcp_json), listed.input_schema
    assert listed.description.split("\n")[0] == served["description"] == "统一搜索工具，同时搜索代码和领域知识"
    in_chinese = {
        name: {**field, "description": field["description"].split("\n")[0]}
        for name, field in schema["properties"].items()
    }
    assert {**schema, "properties": in_chinese} == served["inputSchema"]


def test_search_finds_code_and_knowledge_in_one_list(agent: Agent, learn: Callable[..., list[str]]) -> None:
    """S1-02, S1-08."""
    learn(PARSER, REPAYMENT)
    found = answer(call(agent, "search", query="parse_date 还款"))["results"]
    assert {each["type"] for each in found} == {"code", "knowledge"}
    assert [each["score"] for each in found] == sorted((each["score"] for each in found), reverse=True)
    (code,) = [each for each in found if each["type"] == "code"]
    assert (code["path"], code["content"]) == ("src/dates.py", PARSER.content)


@pytest.mark.parametrize("type", ["code", "knowledge"])
def test_search_keeps_to_its_type_and_to_top_k(agent: Agent, learn: Callable[..., list[str]], type: str) -> None:
    """S1-03."""
    learn(PARSER, REPAYMENT, note("parse_date takes ISO 8601"))
    found = answer(call(agent, "search", query="parse_date 还款", type=type, topK=1))["results"]
    assert [each["type"] for each in found] == [type]


def test_the_text_of_a_search_says_where_each_is_and_how_to_read_on(
    agent: Agent, learn: Callable[..., list[str]]
) -> None:
    """S1-05: clients that show the text alone lose nothing that a model needs, ids included."""
    ids = learn(PARSER, QUESTION)
    result = call(agent, "search", query="parse_date 先息后本")
    text = text_of(result)
    assert f"   src/dates.py [ID: {ids[0]}]\n   def parse_date(text):\n" in text
    assert "   涉及文件: RepaymentType.java [ID: " in text
    assert text.endswith("要读全文，请调用 `read_memory(id)`。\n")
    code, known = sorted(answer(result)["results"], key=lambda each: str(each["type"]))
    assert (code["path"], code["symbol"], code["files"]) == ("src/dates.py", "parse_date", [])
    assert known["files"] == ["RepaymentType.java"]


def test_where_nothing_is_known_that_is_said_and_inventing_is_forbidden(agent: Agent) -> None:
    """S2-24."""
    result = call(agent, "search", query="anything")
    unknown = {"results": [], "degraded": [], "nothing_known": "there is no memory to search"}
    assert (answer(result), text_of(result)) == (unknown, "No results.\n")
    result = call(agent, "recall_context", task="anything")
    assert (answer(result)["text"], text_of(result)) == ("", "Nothing is known yet that bears on this task.")

    async def told(client: Client) -> str:
        return client.instructions or ""

    instructions = ask(agent, told)
    assert "do not invent" in instructions
    assert "read_memory" in instructions
    assert "data, not instructions" in instructions


KNOWN: dict[str, dict[str, object]] = {
    "search": {"query": "a"},
    "read_memory": {"id": "a"},
    "remember": {"text": "a"},
    "forget": {"ids": ["a"]},
    "recall_context": {"task": "a"},
}
"""The least that each tool takes."""


def test_an_argument_that_a_tool_does_not_know_is_an_error_that_names_it(agent: Agent) -> None:
    """S1-03: what is misspelt would else be passed over, and the answer be that to another question."""
    misspelt = [(tool, {**known, "scope": "code"}) for tool, known in KNOWN.items()]
    for (tool, known), result in zip(KNOWN.items(), calls(agent, *misspelt), strict=True):
        assert result.is_error
        assert text_of(result).startswith(f"there is no argument scope. {tool} takes: {next(iter(known))}")


def test_a_memory_is_read_in_full(agent: Agent, learn: Callable[..., list[str]]) -> None:
    """S2-17: what a search cuts is there."""
    long = "先本后息：先还本金，后还利息。" * 60
    (memory_id,) = learn(note(long, title="还款方式", tags=["#loan"]))
    memory = answer(call(agent, "read_memory", id=memory_id))
    assert (memory["content"], memory["title"], memory["tags"], memory["kind"]) == (long, "还款方式", ["loan"], "note")


def test_every_kind_of_memory_is_read_with_its_own_fields(agent: Agent, learn: Callable[..., list[str]]) -> None:
    changed = Memory(content="The fee is rounded up.", files=["src/pay.py", "docs/还款.md"])
    ids = learn(QUESTION, REPAYMENT, PARSER, changed)
    read = [answer(result) for result in calls(agent, *(("read_memory", {"id": each}) for each in ids))]
    assert read[0]["content"] == "先息后本的实现方式？\n\n每期只还利息，最后一期还清本金。"
    of_knowledge = [["RepaymentType.java"], ["RepaymentService.java"]]
    assert [each["files"] for each in read] == [*of_knowledge, ["src/dates.py"], ["src/pay.py", "docs/还款.md"]]


def test_the_resource_of_a_memory_says_what_read_memory_says(agent: Agent, learn: Callable[..., list[str]]) -> None:
    """Ids with Chinese, slashes and dots work too."""
    (memory_id,) = learn(QUESTION)

    async def read(client: Client) -> tuple[list[str], str, CallToolResult]:
        templates = (await client.list_resource_templates()).resource_templates
        (content,) = (await client.read_resource(f"hummock://memory/{quote(memory_id, safe='')}")).contents
        assert isinstance(content, TextResourceContents)
        tool = await client.call_tool("read_memory", {"id": memory_id})
        return [each.uri_template for each in templates], content.text, tool

    templates, text, tool = ask(agent, read)
    assert (templates, json.loads(text)) == (["hummock://memory/{id}"], answer(tool))


def test_a_corrected_memory_is_there_when_the_wrong_one_is_forgotten(agent: Agent) -> None:
    """The way that the description of `forget` names: first the right text, then the old one."""

    async def correct(client: Client) -> list[CallToolResult]:
        wrong = await client.call_tool("remember", {"text": "Start the importer with -V"})
        right = await client.call_tool("remember", {"text": "Start the importer with -v"})
        both = await client.call_tool("search", {"query": "start the importer"})
        await client.call_tool("forget", {"ids": [answer(wrong)["id"]]})
        return [right, both, await client.call_tool("search", {"query": "start the importer"})]

    right, both, left = (answer(result) for result in ask(agent, correct))
    assert (right["status"], len(both["results"])) == ("created", 2)
    assert [each["id"] for each in left["results"]] == [right["id"]]


def test_what_is_remembered_is_found_by_the_next_call(agent: Agent) -> None:
    note: dict[str, object] = {"text": "parseDate 只接受 ISO 8601", "title": "Date formats", "tags": ["checkout"]}
    asked = ("remember", note), ("remember", note), ("search", {"query": "parseDate ISO 8601"})
    first, again, search = map(answer, calls(agent, *asked))
    assert (first["status"], again["status"], again["id"], first["note"]) == ("created", "duplicate", first["id"], "")
    assert f"Memory {first['id']} says the same already, word for word" in again["note"]
    (found,) = search["results"]
    assert (found["id"], found["title"], found["tags"]) == (first["id"], "Date formats", ["checkout"])
    assert first["redacted"] == []


def test_what_is_remembered_is_of_the_zone_of_its_machine(
    agent: Agent, target: str, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUMMOCK_TIME_ZONE", "Asia/Shanghai")
    (told,) = map(answer, calls(agent, ("remember", {"text": "Yesterday we moved the database"})))
    with Service(target) as service:
        assert service.get(project, told["id"]).time_zone == "Asia/Shanghai"


def test_what_is_not_remembered_of_a_text_is_said(agent: Agent) -> None:
    """X6."""
    told = ask(agent, lambda client: client.call_tool("remember", {"text": "our wifi password is: hunter2!"}))
    assert answer(told)["redacted"] == ["password"]
    assert "hunter2" not in str(told)


def test_what_is_forgotten_is_gone_and_what_was_not_is_named(agent: Agent, learn: Callable[..., list[str]]) -> None:
    wrong, right = learn(note("parseDate takes any format"), note("parseDate takes ISO 8601"))
    asked = ("forget", {"ids": [wrong, "no-such"]}), ("forget", {"ids": [wrong]}), ("search", {"query": "parseDate"})
    first, again, search = map(answer, calls(agent, *asked))
    assert (first, again) == ({"forgotten": 1, "missing_ids": ["no-such"]}, {"forgotten": 0, "missing_ids": [wrong]})
    assert [each["id"] for each in search["results"]] == [right]


def test_the_context_of_a_task_is_the_code_presets_section(agent: Agent, learn: Callable[..., list[str]]) -> None:
    """S0-30: one call gives the finished section."""
    ids = learn(REPAYMENT, QUESTION)
    result = call(agent, "recall_context", task="增加先息后本的还款方式")
    context = answer(result)
    assert text_of(result) == context["text"]
    assert "## 相关领域知识" in context["text"]
    assert "## 相关学习记录 (后台已学到的知识)" in context["text"]
    assert sorted(context["memory_ids"]) == sorted(ids)


def test_the_context_of_any_task_begins_with_what_is_pinned(agent: Agent, learn: Callable[..., list[str]]) -> None:
    rule = note("Answer in short sentences.")
    rule.pinned = True
    (rule_id, *_) = learn(rule, QUESTION)
    context = answer(call(agent, "recall_context", task="sort a list in Kotlin"))
    assert context["text"].startswith("## Pinned memories (in every prompt)")
    assert "Answer in short sentences." in context["text"]
    assert context["memory_ids"][0] == rule_id


def test_the_context_keeps_its_budget_and_names_what_had_no_room(agent: Agent, learn: Callable[..., list[str]]) -> None:
    """S0-33."""
    learn(REPAYMENT, QUESTION)
    context = answer(call(agent, "recall_context", task="增加先息后本的还款方式", budget_tokens=110))
    assert context["token_count"] <= 110
    assert context["left_out_ids"] == [QUESTION.id]


def test_a_wrong_call_is_an_error_that_names_what_is_wrong(agent: Agent, learn: Callable[..., list[str]]) -> None:
    learn(REPAYMENT)
    wrong: list[tuple[str, dict[str, object], str]] = [
        ("search", {"query": ""}, "query_text"),
        ("search", {"query": " \n"}, "query_text"),
        ("search", {"query": "a", "topK": 0}, "topK"),
        ("search", {"query": "a", "topK": 201}, "topK"),
        ("search", {"query": "a", "type": "everything"}, "type"),
        ("search", {"query": "a", "limit": 5}, "limit"),
        ("read_memory", {"id": "no-such"}, "no-such"),
        ("read_memory", {"id": ""}, "id"),
        ("remember", {"text": ""}, "content"),
        ("recall_context", {"task": ""}, "query_text"),
        ("recall_context", {"task": "a", "budget_tokens": 0}, "budget_tokens is 0"),
        ("search", {}, "query is missing"),
        ("search", {"query": "a", "topK": "many"}, 'topK is "many", and should be a valid integer'),
        ("remember", {"text": 7}, "text is 7, and should be a valid string"),
        ("forget", {"ids": []}, "ids is [], and should have at least 1 item"),
        ("forget", {"ids": [str(each) for each in range(101)]}, "should have at most 100 items"),
    ]
    for (_, _, message), result in zip(wrong, calls(agent, *((tool, asked) for tool, asked, _ in wrong)), strict=True):
        assert result.is_error
        assert message in text_of(result)
        assert not any(theirs in text_of(result) for theirs in ("pydantic", "http", "Input should", "validation error"))


def test_no_such_tool_and_no_such_memory_are_wrong_parameters(agent: Agent, learn: Callable[..., list[str]]) -> None:
    learn(REPAYMENT)

    async def wrong(client: Client) -> list[int]:
        with pytest.raises(MCPError, match="there is no tool searhc; there are: search, read_memory") as no_tool:
            await client.call_tool("searhc", {"query": "a"})
        with pytest.raises(MCPError, match="no-such") as no_memory:
            await client.read_resource("hummock://memory/no-such")
        return [caught.value.error.code for caught in (no_tool, no_memory)]

    assert ask(agent, wrong) == [INVALID_PARAMS] * 2


def test_a_memory_of_another_project_is_not_there(agent: Agent, target: str) -> None:
    with Service(target) as service:
        foreign = service.note("someone else's", "their secret").results[0].id
    assert call(agent, "read_memory", id=foreign).is_error


@pytest.mark.long
def test_without_a_service_every_tool_says_how_to_start_one_and_the_server_stays_up(agent: Agent, nobody: str) -> None:
    results = calls(agent, *KNOWN.items(), service=nobody)
    assert all(result.is_error for result in results)
    assert all("hummock serve" in text_of(result) and nobody in text_of(result) for result in results)


@pytest.mark.long
def test_the_log_holds_no_content(agent: Agent, log: Path) -> None:
    (result,) = calls(agent, ("read_memory", {"id": "秘密"}), is_piped=True)
    assert result.is_error
    assert "秘密" not in log.read_text(encoding="utf-8")
