"""A LlamaIndex retriever: `pip install 'hummock[llama-index]'`."""

from __future__ import annotations

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from hummock_client import AsyncClient, Client
from hummock_client.adapters.found import all_hits, metadata_of
from hummock_client.requests import RecallOptions
from hummock_client.v1 import memory_pb2, recall_pb2


class HummockRetriever(BaseRetriever):
    """Recalls memories of one project as nodes, best first. Raises HummockCallError when a recall fails."""

    def __init__(
        self,
        client: Client,
        project: str,
        *,
        options: RecallOptions | None = None,
        async_client: AsyncClient | None = None,
    ) -> None:
        """Asks nothing yet.

        Args:
            client: Who asks.
            project: The project to search.
            options: Options of every recall, for example {"top_k": 5, "preset": PRESET_CODE}.
            async_client: Asks in its own event loop; without it `aretrieve` waits for the other one.
        """
        super().__init__()
        self._client = client
        self._project = project
        self._options: RecallOptions = {**(options or {}), "view": memory_pb2.MEMORY_VIEW_FULL}
        self._async_client = async_client

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self._client.recall(self._project, query_bundle.query_str, **self._options))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._async_client is None:
            return await super()._aretrieve(query_bundle)
        return _nodes(await self._async_client.recall(self._project, query_bundle.query_str, **self._options))


def _nodes(reply: recall_pb2.RecallResponse) -> list[NodeWithScore]:
    return [
        NodeWithScore(
            node=TextNode(id_=hit.memory.id, text=hit.memory.text, metadata=metadata_of(hit)), score=hit.score
        )
        for hit in all_hits(reply)
    ]
