"""Hummock as a retriever and as tools; the frameworks have an environment of their own (`make frameworks`)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import toy_models
from hummock.core.tools import read_tool, search_tool
from hummock_client import AsyncClient, Client
from hummock_client.adapters.found import KINDS
from hummock_client.adapters.tools import READ_MEMORY, REMEMBER, SEARCH, MemoryTools
from hummock_client.v1 import memory_pb2
from tests.client.frameworks.installed import require_frameworks
from tests.service.running import in_process

_ROOT = Path(__file__).parents[2]
_PROGRAM = Path(__file__).parent / "frameworks" / "program.py"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service whose project "port" holds a note and a code fragment."""
    directory = tmp_path_factory.mktemp("adapters")
    model = toy_models.build_tiny(directory / "models").name
    with in_process(directory / "data", directory / "models", model) as service, Client(service.target) as client:
        code = memory_pb2.CodeFragment(path="src/dates.py", start_line=3, end_line=4, symbol="parse_date")
        memories = [
            memory_pb2.Memory(id="note", content="The lamp on the quay burns from six.", tags=["port"]),
            memory_pb2.Memory(id="code", content="def parse_date():\n    return True", code_fragment=code),
        ]
        client.learn("port", memories)
        yield service.target


@pytest.mark.long
@pytest.mark.parametrize("framework", ["langchain", "llama_index", "openai_agents"])
def test_an_adapter_works_in_its_framework(framework: str, target: str) -> None:
    python = require_frameworks()
    paths = f"{_ROOT / 'clients' / 'python'}{os.pathsep}{_ROOT / 'service'}"
    env = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run([python, _PROGRAM, framework, target], env=env, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "ok\n"), run.stderr


def test_the_tools_are_defined_as_a_rendering_and_mcp_define_them() -> None:
    for ours, theirs in ((SEARCH, search_tool("zh", "en")), (READ_MEMORY, read_tool("read_memory", "zh", "en"))):
        assert (ours.openai(), ours.anthropic()) == (theirs.openai(), theirs.anthropic())


def test_tools_are_written_as_the_apis_take_them() -> None:
    tools = MemoryTools("port")
    assert [one["function"]["name"] for one in tools.openai()] == ["search", "read_memory", "remember"]
    assert [one["name"] for one in tools.anthropic()] == ["search", "read_memory", "remember"]
    assert tools.anthropic()[2]["input_schema"] == REMEMBER.input_schema
    assert json.loads(json.dumps(tools.openai())) == tools.openai()


@pytest.mark.long
def test_a_model_searches_reads_and_remembers(target: str) -> None:
    tools = MemoryTools("port")
    with Client(target) as client:
        assert "note" in tools.call(client, "search", {"query": "lamp", "topK": 1, "type": "knowledge"})
        assert "burns from six" in tools.call(client, "read_memory", '{"id": "note"}')
        stored = tools.call(client, "remember", {"text": "二号灯坏了"}).removeprefix("stored as ")
        memory = client.get("port", stored)
    assert (memory.content, memory.origin) == ("二号灯坏了", memory_pb2.ORIGIN_SUMMARY)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("forget", {}, "there is no tool forget"),
        ("search", {}, "wrong or missing: ['query']"),
        ("search", {"query": "x", "limit": 3}, "wrong or missing: ['limit']"),
        ("search", {"query": "x", "type": "files"}, "it is one of code, knowledge, both"),
        ("search", {"query": "x", "topK": 900}, "top_k"),
        ("search", {"query": 3}, "error: "),
        ("search", "no JSON", "error: "),
        ("search", "[1]", "error: "),
        ("read_memory", {"id": "never"}, "never does not exist"),
    ],
)
async def test_what_goes_wrong_is_told_the_model(name: str, arguments: Any, said: str, target: str) -> None:
    with Client(target) as client:
        told = MemoryTools("port").call(client, name, arguments)
    assert told.startswith("error: ")
    assert said in told
    async with AsyncClient(target) as client:
        assert (await MemoryTools("port").call_async(client, name, arguments)) == told


@pytest.mark.long
def test_a_service_that_is_away_is_told_the_model() -> None:
    with Client("127.0.0.1:1") as client:
        assert "hummock serve" in MemoryTools("port").call(client, "search", {"query": "x"})


def test_every_kind_has_a_name() -> None:
    assert KINDS[memory_pb2.MEMORY_KIND_CODE_FRAGMENT] == "code_fragment"
    assert set(KINDS) == set(memory_pb2.MemoryKind.values())
