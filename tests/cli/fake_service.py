"""A service with canned answers on a real socket; it keeps what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from hummock.core.errors import InvalidRequest
from hummock.rpc.policy import SERVICES
from hummock.rpc.status import to_proto
from hummock_client.v1 import context_service_pb2 as context_pb
from hummock_client.v1 import memory_service_pb2 as memory_service_pb
from hummock_client.v1 import session_service_pb2 as session_pb

Request = TypeVar("Request", bound=Message)

NOTE = {
    "id": "世界.图鉴.物品.潮汐木芯",
    "kind": "MEMORY_KIND_NOTE",
    "origin": "ORIGIN_MANUAL",
    "title": "还款方式 repayment \u001b[31mtypes",
    "summary": "三种",
    "tags": ["还款", "code"],
    "content": "等额本息、等额本金、先息后本\u001b[2J",
    "createTime": "2026-01-02T03:04:05Z",
    "tokenCount": 12,
}
CODE = {
    "id": "src/RepaymentService.java#create",
    "kind": "MEMORY_KIND_CODE_FRAGMENT",
    "origin": "ORIGIN_INDEXER",
    "title": "create",
    "content": "void create() {}",
    "codeFragment": {"path": "src/RepaymentService.java", "startLine": 7, "endLine": 9, "symbol": "create"},
}
RECEIPT = {
    "preset": "PRESET_CODE",
    "stages": [
        {"stage": "RECALL_STAGE_EMBED", "elapsed": "0.0021s"},
        {"stage": "RECALL_STAGE_GATHER", "elapsed": "0.0005s"},
    ],
    "groups": [{"group": "HIT_GROUP_MAIN", "searched": 300, "returned": 1}],
    "elapsed": "0.0031s",
}
RECALLED = {
    "hits": [
        {
            "memory": NOTE,
            "score": 0.83,
            "similarity": 0.61,
            "keywordScore": 4.2,
            "paths": ["RECALL_PATH_VECTOR", "RECALL_PATH_KEYWORD"],
            "matchedTerms": ["还款", "方式"],
            "ageDays": 12.4,
            "nearTwin": True,
        }
    ],
    "codeFragments": [{"memory": CODE, "score": 0.5, "paths": ["RECALL_PATH_DOMAIN"], "ageDays": 0.1}],
    "receipt": RECEIPT,
    "degraded": [
        {
            "part": "DEGRADED_PART_VECTOR",
            "reason": "DEGRADATION_REASON_EMBEDDER_FAILED",
            "message": "the embedder failed",
        }
    ],
    "seq": "7",
}
RENDERED = {
    "text": "## 项目上下文\n- 等额本息\n",
    "tokenCount": 9,
    "budgetTokens": 100,
    "memories": [
        {
            "memoryId": "m1",
            "kind": "MEMORY_KIND_NOTE",
            "tier": "TIER_FULL",
            "tokenCount": 9,
            "reason": "best match",
            "marks": ["MEMORY_MARK_UNVERIFIED", "MEMORY_MARK_INSTRUCTION_LIKE"],
        }
    ],
    "missingIds": ["gone"],
    "receipt": RECEIPT,
    "renderElapsed": "0.0004s",
}
SEARCHED = {
    "results": [
        {
            "scope": "SEARCH_SCOPE_CODE",
            "memoryId": "m1",
            "title": "create 创建",
            "content": "void create() {}",
            "score": 0.7,
        }
    ],
    "receipt": RECEIPT,
}
EXPLAINED = {
    "outcome": "EXPLAIN_OUTCOME_LOST",
    "group": "HIT_GROUP_MAIN",
    "stage": "LOSS_STAGE_RANK",
    "value": 17,
    "threshold": 10,
    "numbers": {"cosine": 0.5, "vectorRank": 3, "searched": 300, "relevance": 0.25},
    "sentence": "它排第 17，而 main 组只取 10 条。",
    "changes": [{"field": "tuning.top_k", "value": "17"}, {"field": "filter.tags"}],
    "changedRecall": {"project": "还款", "queryText": "x", "tuning": {"topK": 17}},
    "changedRank": 17,
}
PROJECT = {
    "name": "还款",
    "info": {"techStack": ["Spring Boot", "MyBatis"], "path": "/srv/loan"},
    "memoryCount": "3",
    "kinds": [{"kind": "MEMORY_KIND_NOTE", "count": 3}],
    "seq": "5",
    "contentSeq": "4",
    "embSpace": "abc",
    "createTime": "2026-01-02T03:04:05Z",
    "feedback": {"helpful": "4", "wrong": "1"},
}
SESSION = {
    "id": "会话-1",
    "title": "还款 \u001b[31mday",
    "createTime": "2026-01-02T03:04:05Z",
    "updateTime": "2026-01-02T03:05:06Z",
    "messageCount": "2",
}
MESSAGES = [
    {
        "id": "m-1",
        "position": "1",
        "role": "PROMPT_ROLE_USER",
        "content": "还款日是哪天?\u001b[2J\nand why",
        "sendTime": "2026-01-02T03:05:05Z",
    },
    {
        "id": "m-2",
        "position": "2",
        "role": "PROMPT_ROLE_ASSISTANT",
        "content": "The tenth.",
        "raw": "[calm]The tenth.",
        "sendTime": "2026-01-02T03:05:06Z",
    },
]
SETTINGS = {
    "settings": {"chat": {"topK": 8, "origins": ["ORIGIN_MANUAL", "ORIGIN_AI_OUTPUT"]}},
    "effective": {
        "chat": {"topK": 8, "origins": ["ORIGIN_MANUAL", "ORIGIN_AI_OUTPUT"]},
        "code": {"topK": 10, "minSimilarity": 0.3},
    },
    "defaults": {"chat": {"topK": 5, "origins": ["ORIGIN_MANUAL"]}, "code": {"topK": 10, "minSimilarity": 0.3}},
}
STATUS = {
    "version": "0.1.0",
    "uptime": "7200s",
    "model": {
        "name": "bge-small-zh-v1.5",
        "embSpace": "abc",
        "dim": 512,
        "maxTokens": 512,
        "scripts": ["SCRIPT_HAN", "SCRIPT_LATIN"],
    },
    "storage": {"directory": "/数据", "usedBytes": "1048576", "quotaBytes": "2097152", "projectCount": "2"},
    "runningCalls": 1,
}


@dataclass(slots=True)
class FakeService:
    """A fake service: its address, the requests in order, and replies that replace the canned ones."""

    target: str = ""
    asked: list[Message] = field(default_factory=list)
    tokens: list[str | bytes | None] = field(default_factory=list)
    refusal: tuple[grpc.StatusCode, str] | None = None
    watch_ends_with: tuple[grpc.StatusCode, str] | None = None

    def request(self, kind: type[Request], number: int = 0) -> Request:
        """The request of this number, which must be of this kind."""
        asked = self.asked[number]
        assert isinstance(asked, kind)
        return asked

    def requests(self, kind: type[Request]) -> list[Request]:
        """All requests of a kind, in order."""
        return [asked for asked in self.asked if isinstance(asked, kind)]

    def answer(self, canned: dict[str, Any]) -> Callable[[Message, grpc.ServicerContext], dict[str, Any]]:
        """Keeps the request and gives the canned reply."""

        def method(request: Message, context: grpc.ServicerContext) -> dict[str, Any]:
            self.asked.append(request)
            if self.refusal is not None:
                context.abort(*self.refusal)
            return canned

        return method

    def stream(self, canned: dict[str, Any]) -> Callable[[Message, grpc.ServicerContext], Iterator[dict[str, Any]]]:
        """Keeps the request and gives the canned reply, then the stream's end."""

        def method(request: Message, context: grpc.ServicerContext) -> Iterator[dict[str, Any]]:
            del context
            self.asked.append(request)
            yield canned

        return method

    def list_memories(
        self, request: memory_service_pb.ListMemoriesRequest, context: grpc.ServicerContext
    ) -> dict[str, Any]:
        """A first page with two memories, and an empty last one."""
        del context
        self.asked.append(memory_service_pb.ListMemoriesRequest.FromString(request.SerializeToString()))
        return {} if request.page_token == "t1" else {"memories": [NOTE, CODE], "nextPageToken": "t1"}

    def watch_memories(self, request: Message, context: grpc.ServicerContext) -> Iterator[dict[str, Any]]:
        """A start, a memory that comes and one that goes, and a gap."""
        self.asked.append(request)
        events = [
            {"change": "MEMORY_EVENT_TYPE_CREATED", "id": NOTE["id"], "memory": NOTE, "seq": "8"},
            {"change": "MEMORY_EVENT_TYPE_DELETED", "id": "gone\u001b[2J", "seq": "9"},
        ]
        yield from ({"seq": "7", "start": {}}, {"seq": "9", "events": {"events": events}}, {"seq": "99", "reset": {}})
        if self.watch_ends_with is not None:
            context.abort(*self.watch_ends_with)

    def list_sessions(self, request: session_pb.ListSessionsRequest, context: grpc.ServicerContext) -> dict[str, Any]:
        """A page of one session, and no archived ones."""
        del context
        self.asked.append(request)
        return {} if request.archived else {"sessions": [SESSION], "nextPageToken": "t1"}

    def watch_session(self, request: Message, context: grpc.ServicerContext) -> Iterator[dict[str, Any]]:
        """Yields nothing at first, then two messages."""
        del context
        self.asked.append(request)
        yield from ({"messages": []}, {"messages": MESSAGES})

    def learn_stream(
        self, requests: Iterator[context_pb.LearnStreamRequest], context: grpc.ServicerContext
    ) -> Iterator[context_pb.LearnStreamResponse]:
        """Stores every batch but those that hold a memory of the id "bad"."""
        del context
        for number, request in enumerate(requests):
            self.asked.append(request)
            answer = context_pb.LearnStreamResponse(batch_index=number)
            if any(memory.id == "bad" for memory in request.learn.memories):
                answer.failed.CopyFrom(to_proto(InvalidRequest("memories[0].content", "too large")))
            else:
                for memory in request.learn.memories:
                    answer.learnt.results.add(id=memory.id, status=context_pb.LEARN_STATUS_CREATED)
            yield answer


class _Hearing(grpc.ServerInterceptor):
    """Keeps which token came with each call."""

    def __init__(self, heard: list[str | bytes | None]) -> None:
        self._heard = heard

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        self._heard.append(dict(handler_call_details.invocation_metadata or ()).get("authorization"))
        return continuation(handler_call_details)


def _answers(fake: FakeService) -> dict[str, Any]:
    """What answers each method, by its name."""
    canned: dict[str, dict[str, Any]] = {
        "Recall": RECALLED,
        "Render": RENDERED,
        "Search": SEARCHED,
        "Explain": EXPLAINED,
        "Feedback": {"seq": "9", "recordedCount": 2, "unknownIds": ["gone"]},
        "Learn": {"seq": "8", "results": [{"id": "m9", "status": "LEARN_STATUS_CREATED"}]},
        "GetMemory": {"memory": NOTE},
        "BatchGetMemories": {"memories": [NOTE], "missingIds": ["gone"]},
        "UpdateMemory": {"memory": NOTE, "seq": "9"},
        "DeleteMemories": {"deletedCount": 1, "missingIds": ["gone"]},
        "Forget": {"memoryCount": 3, "eventCount": 2},
        "ListReview": {},
        "ApproveReview": {"approvedCount": 1},
        "RejectReview": {"rejectedCount": 1},
        "GetLearningState": {"state": {"enabled": True}},
        "ListLearningEvents": {},
        "ReplayLearning": {"matches": True},
        "ListMessages": {"messages": MESSAGES, "nextPageToken": "t2"},
        "UpdateMessage": {"id": "m1", "position": 1, "deletedCount": 2},
        "DeleteMessage": {"seq": "9", "deletedCount": 3},
        "GetProject": {"project": PROJECT},
        "ListProjects": {"projects": [PROJECT]},
        "UpdateProject": {"project": PROJECT},
        "GetProjectSettings": SETTINGS,
        "UpdateProjectSettings": SETTINGS,
        "DeleteProject": {"memoryCount": 3, "sessionCount": 1, "messageCount": 2},
        "GetStatus": STATUS,
    }
    return {name: fake.answer(said) for name, said in canned.items()} | {
        "LearnStream": fake.learn_stream,
        "ListMemories": fake.list_memories,
        "WatchMemories": fake.watch_memories,
        "ListSessions": fake.list_sessions,
        "WatchMessages": fake.watch_session,
        "LearnKeywords": fake.stream({"end": "SCAN_END_DONE"}),
        "WatchLearningState": fake.stream({"state": {"enabled": True}}),
    }


def _handler(method: MethodDescriptor, answer: Any) -> Any:
    reply = GetMessageClass(method.output_type)

    def written(said: Message | dict[str, Any]) -> bytes:
        return (ParseDict(said, reply()) if isinstance(said, dict) else said).SerializeToString()

    shapes: dict[tuple[bool, bool], Any] = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }
    shape = shapes[method.client_streaming, method.server_streaming]
    return shape(answer, GetMessageClass(method.input_type).FromString, written)


@contextmanager
def running_fake() -> Iterator[FakeService]:
    """The fake on a free port of loopback."""
    fake = FakeService()
    answers = _answers(fake)
    server = grpc.server(ThreadPoolExecutor(4), interceptors=[_Hearing(fake.tokens)])
    for service in SERVICES:
        handlers = {one.name: _handler(one, answers[one.name]) for one in service.methods if one.name in answers}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))
    fake.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield fake
    finally:
        server.stop(None).wait()
