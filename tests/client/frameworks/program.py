"""One adapter in its framework, against a service; run by test_adapters.py in an environment that has the frameworks.

program.py langchain|llama_index|openai_agents TARGET; the project "port" holds a note and a code fragment.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

from hummock_client import AsyncClient, Client
from hummock_client.requests import RecallOptions
from hummock_client.v1 import recall_pb2

WORDS: RecallOptions = {"paths": [recall_pb2.RECALL_PATH_KEYWORD]}
"""Options for a recall by words, which does not depend on the model."""


def langchain(target: str) -> None:
    """Uses the retriever as a Runnable and in a chain, blocking and asynchronous."""
    from langchain_core.runnables import RunnableLambda

    from hummock_client.adapters.langchain import HummockRetriever

    async def later() -> None:
        async with AsyncClient(target) as client:
            retriever = HummockRetriever(client=blocking, project="port", options=WORDS, async_client=client)
            assert [one.id for one in await retriever.ainvoke("lamp")] == ["note"]

    with Client(target) as blocking:
        retriever = HummockRetriever(client=blocking, project="port", options=WORDS)
        (document,) = retriever.invoke("lamp")
        assert (document.page_content, document.metadata["tags"]) == ("The lamp on the quay burns from six.", ["port"])
        assert 0 < document.metadata["score"] <= 1
        chain = retriever | RunnableLambda(lambda found: [one.id for one in found])
        assert chain.invoke("lamp") == ["note"]
        assert [one.id for one in asyncio.run(retriever.ainvoke("lamp"))] == ["note"]
        asyncio.run(later())
        code = retriever.invoke("parse_date")
        assert {"path": "src/dates.py", "start_line": 3, "symbol": "parse_date"}.items() <= code[-1].metadata.items()


def llama_index(target: str) -> None:
    """Uses the retriever, blocking and asynchronous."""
    from hummock_client.adapters.llama_index import HummockRetriever

    async def later() -> None:
        async with AsyncClient(target) as client:
            found = await HummockRetriever(blocking, "port", options=WORDS, async_client=client).aretrieve("lamp")
            assert [one.node_id for one in found] == ["note"]

    with Client(target) as blocking:
        retriever = HummockRetriever(blocking, "port", options=WORDS)
        (node,) = retriever.retrieve("lamp")
        assert (node.node_id, node.text) == ("note", "The lamp on the quay burns from six.")
        assert node.score is not None
        assert node.score > 0
        assert node.metadata["tags"] == ["port"]
        assert [one.node_id for one in asyncio.run(retriever.aretrieve("lamp"))] == ["note"]
        asyncio.run(later())


def openai_agents(target: str) -> None:
    """Gives the tools to an agent; its model searches, reads, and answers with what the tools returned."""
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from hummock_client.adapters.openai_agents import function_tools

    calls = [("search", '{"query": "lamp"}'), ("read_memory", '{"id": "note"}'), ("forget", "{}")]

    class Scripted(Model):
        """Calls the tools in turn, then says what it has heard."""

        heard: list[str]

        async def get_response(self, *, input: Any, **more: Any) -> ModelResponse:
            self.heard = [one["output"] for one in input if one.get("type") == "function_call_output"]
            place = len(self.heard)
            if place < 2:
                name, arguments = calls[place]
                call = ResponseFunctionToolCall(
                    call_id=f"c{place}", name=name, arguments=arguments, type="function_call"
                )
                return ModelResponse(output=[call], usage=Usage(), response_id=None)
            text = ResponseOutputText(text=self.heard[-1], type="output_text", annotations=[])
            message = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *others: Any, **more: Any) -> AsyncIterator[Any]:
            raise NotImplementedError

    async def run() -> None:
        async with AsyncClient(target) as client:
            model = Scripted()
            agent = Agent(name="keeper", model=model, tools=list(function_tools(client, "port")))
            result = await Runner.run(agent, "When is it lit?", run_config=RunConfig(tracing_disabled=True))
            assert "note" in model.heard[0]
            assert "burns from six" in result.final_output

    asyncio.run(run())


if __name__ == "__main__":
    {"langchain": langchain, "llama_index": llama_index, "openai_agents": openai_agents}[sys.argv[1]](sys.argv[2])
    print("ok")
