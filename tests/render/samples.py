"""Memories to render. Scores, paths and texts are made up."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from hummock.core.memory import (
    CodeFragment,
    Detail,
    DomainKnowledge,
    LearningRecord,
    Memory,
    MemoryIndex,
    MemoryKind,
    Origin,
    Payload,
)
from hummock.core.project import ProjectInfo
from hummock.render.section import Selected

PROJECT = ProjectInfo(tech_stack=("Spring Boot", "MyBatis", "MySQL"), path="/srv/loan-service")


def memory(
    memory_id: str,
    kind: MemoryKind,
    content: str = "",
    detail: Detail = None,
    title: str = "",
    summary: str = "",
    tags: tuple[str, ...] = (),
    **more: Any,
) -> Memory:
    known = Memory(
        id=memory_id, kind=kind, origin=Origin.MANUAL, index=MemoryIndex(title=title, summary=summary, tags=tags),
        payload=Payload(content=content, detail=detail), session_id="", speaker="", event_time=None, emotion_label="",
        trust=1.0, supersedes=(), source_hash="", create_time=0.0, update_time=0.0, content_hash=bytes(16),
        fingerprint=bytes(16), token_count=1, chunk_count=1,
    )  # fmt: skip
    return replace(known, **more)


def record(memory_id: str, question: str, answer: str, *source_files: str) -> Memory:
    detail = LearningRecord(question=question, answer=answer, source_files=source_files)
    return memory(memory_id, MemoryKind.LEARNING_RECORD, "", detail, title=question, summary=answer)


def domain(memory_id: str, name: str, summary: str, *key_files: str) -> Memory:
    detail = DomainKnowledge(domain=name, summary=summary, key_files=key_files)
    return memory(memory_id, MemoryKind.DOMAIN_KNOWLEDGE, "", detail, title=name, summary=summary)


def fragment(memory_id: str, path: str, content: str, start_line: int = 0, end_line: int = 0) -> Memory:
    detail = CodeFragment(path=path, start_line=start_line, end_line=end_line, language="java", symbol="")
    return memory(memory_id, MemoryKind.CODE_FRAGMENT, content, detail, title=path, summary=content)


def note(
    memory_id: str, content: str, title: str = "", summary: str = "", tags: tuple[str, ...] = (), **more: Any
) -> Memory:
    return memory(memory_id, MemoryKind.NOTE, content, title=title, summary=summary, tags=tags, **more)


def selected(*memories: Memory, score: float | None = 0.5) -> list[Selected]:
    return [Selected(memory=one, score=score) for one in memories]


def repayment() -> list[Selected]:
    """The worked example of an IDE plugin that is asked for a new way of repayment."""
    ranked = [
        (0.95, record("r1", "还款方式有哪些类型？",
                      "包括等额本息、等额本金、先息后本三种。\n定义在 RepaymentType 枚举中。", "RepaymentType.java",
                      "RepaymentCalculator.java")),
        (0.93, record("r2", "还款计算的核心逻辑是什么？", "在 RepaymentCalculator 中按还款方式选择计算策略。",
                      "RepaymentCalculator.java")),
        (0.9, record("r3", "先息后本的实现方式？", "先按期还息，到期一次还本。")),
        (0.88, domain("d1", "还款", "还款模块处理还款计划的生成、执行与状态跟踪。", "RepaymentService.java",
                      "RepaymentCalculator.java")),
        (0.7, note("n1", "演示环境的还款日固定为每月 8 日。", title="演示环境")),
        (0.6, fragment("c1", "src/main/java/RepaymentType.java",
                       "/** 还款方式 */\npublic enum RepaymentType { EQUAL_INSTALLMENT, EQUAL_PRINCIPAL }\n", 3, 4)),
    ]  # fmt: skip
    return [Selected(memory=one, score=score) for score, one in ranked]


def dates() -> list[Selected]:
    """English notes and code; the second is too long for a small budget."""
    body = "def parse_date(text: str) -> date:\n    return date.fromisoformat(text)\n"
    ranked = [
        (0.9, fragment("mem_00", "utils/dates.py", body, 10, 11)),
        (0.8, note("mem_01", "ISO8601 needs a time zone here. " * 40, title="Python Date Utils",
                   summary="Standard implementation of ISO8601 parsing.", tags=("code", "datetime"))),
        (0.7, note("mem_05", "Tokens live for an hour. " * 40, title="System Auth Protocols",
                   summary="Updated OAuth2 flows for 2025.", tags=("security",))),
    ]  # fmt: skip
    return [Selected(memory=one, score=score) for score, one in ranked]
