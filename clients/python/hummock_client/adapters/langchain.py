"""A LangChain retriever: `pip install 'hummock[langchain]'`."""

from __future__ import annotations

from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from hummock_client import AsyncClient, Client
from hummock_client.adapters.found import all_hits, metadata_of
from hummock_client.requests import RecallOptions
from hummock_client.v1 import memory_pb2, recall_pb2


class HummockRetriever(BaseRetriever):
    """Recalls memories of one project as documents, best first. Raises HummockCallError when a recall fails.

    Attributes:
        client: Who asks.
        project: The project to search.
        options: Options of every recall, named as in RecallOptions, for example {"top_k": 5, "preset": PRESET_CODE}.
        async_client: Asks in its own event loop; without it `ainvoke` runs the other one in a thread.
    """

    client: Client
    project: str
    # pydantic cannot read RecallOptions under Python 3.11.
    options: dict[str, Any] = Field(default_factory=dict)
    async_client: AsyncClient | None = None

    model_config = ConfigDict(arbitrary_types_allowed=True)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return _documents(self.client.recall(self.project, query, **self._options()))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        if self.async_client is None:
            return await super()._aget_relevant_documents(query, run_manager=run_manager)
        return _documents(await self.async_client.recall(self.project, query, **self._options()))

    def _options(self) -> RecallOptions:
        return cast(RecallOptions, {**self.options, "view": memory_pb2.MEMORY_VIEW_FULL})


def _documents(reply: recall_pb2.RecallResponse) -> list[Document]:
    return [
        Document(id=hit.memory.id, page_content=hit.memory.text, metadata=metadata_of(hit)) for hit in all_hits(reply)
    ]
