"""A synthetic corpus: Chinese, English and code, whose words, topics and vectors hang together.

It stands in for real memories where only their size, shape and skew matter. It says nothing about ranking quality.
Everything is a function of the seed and a memory's place, so that a corpus of 1,000 is the beginning of one of 10,000.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from google.protobuf.timestamp_pb2 import Timestamp
from numpy.typing import NDArray

from hummock_client import vector
from hummock_client.v1 import memory_pb2 as pb

_ZH_FIRST = (
    "还款", "账单", "订单", "库存", "用户", "支付", "退款", "优惠券", "缓存", "日志", "索引", "会话", "权限", "消息",
    "任务", "合同", "利率", "额度", "物流", "发票", "地图", "角色", "道具", "剧情", "向量", "模型", "接口", "数据库",
    "配置", "报表",
)  # fmt: skip
_ZH_SECOND = (
    "计划", "流程", "服务", "策略", "队列", "状态", "规则", "模板", "中心", "网关", "明细", "校验", "快照", "分区",
    "窗口", "通知", "历史", "上限", "主键", "备份", "入口", "版本", "字段", "批次", "映射", "回调", "阈值", "标签",
    "记录", "清单",
)  # fmt: skip
_ZH_VERBS = (
    "加锁", "重试", "合并", "归档", "校准", "回滚", "拆分", "同步", "更新", "撤销", "冻结", "预热", "推送", "清理",
    "补录", "排序",
)  # fmt: skip
_EN_FIRST = (
    "repayment", "invoice", "order", "stock", "account", "payment", "refund", "coupon", "cache", "log", "index",
    "session", "permission", "message", "task", "contract", "interest", "credit", "shipping", "ledger", "map",
    "character", "item", "quest", "vector", "model", "endpoint", "database", "settings", "report",
)  # fmt: skip
_EN_SECOND = (
    "plan", "flow", "service", "policy", "queue", "state", "rule", "template", "centre", "gateway", "detail", "check",
    "snapshot", "partition", "window", "notice", "history", "limit", "key", "backup", "entry", "version", "field",
    "batch", "mapping", "callback", "threshold", "label", "record", "list",
)  # fmt: skip
_EN_VERBS = (
    "lock", "retry", "merge", "archive", "adjust", "revert", "split", "sync", "update", "cancel", "freeze", "warm",
    "push", "clean", "backfill", "sort",
)  # fmt: skip
TAGS = (
    "code", "decision", "还款", "bug", "api", "设计", "performance", "测试", "release", "数据", "security", "约定",
    "frontend", "运维", "glossary", "世界观",
)  # fmt: skip
_SPEAKERS = ("林岚", "Ada", "周舟", "Noor", "assistant")

# A field in braces is drawn anew each time, by `_Words`.
_ZH_SENTENCES = (
    "{zn}变更之后必须先{zv}，再处理{zn}。",
    "我们决定用{zn}代替{zn}，因为高峰期每秒有{nu}次请求。",
    "{zn}出错时不要{zv}，等 {nu} 秒后由{zn}接手。",
    "上线前检查{zn}和{zn}是否一致，入口在 {sy}。",
    "{zn}的默认值是 {nu}，由 {fn} 读取。",
    "客户反馈{zn}偶尔丢失，原因是{zn}没有{zv}。",
)
_EN_SENTENCES = (
    "The {en} has to {ev} before the {en} is touched.",
    "We chose the {en} over the {en} because it survives {nu} requests a second.",
    "When the {en} fails, {ev} it and wait {nu} seconds for the {en}.",
    "Check {sy} first: it decides whether the {en} may {ev}.",
    "The {en} defaults to {nu} and is read by {fn}.",
    "A user lost the {en} since nobody would {ev} the {en}.",
)
_ZH_QUESTIONS = ("{zn}应该怎么{zv}？", "为什么{zn}会影响{zn}？", "{sy} 里的{zn}在哪里配置？", "增加{zn}的{zn}")
_EN_QUESTIONS = (
    "how do we {ev} the {en}",
    "why does the {en} depend on the {en}?",
    "where is the {en} set in {sy}",
    "{fn} fails for the {en}",
)

_PYTHON_LINES = (
    "    {id} = {fn}({id}, limit={nu})",
    "    if {id} is None:  # {zn}",
    '        raise {sy}Error("the {en} cannot {ev}")',
    "    for {id} in {id}.{fn}():",
    "        {id}.{fn}({nu})",
    "    # The {en} may {ev} twice.",
    "    return {fn}({id}, {id})",
)
_KOTLIN_LINES = (
    "    val {id} = {fn}({id}, limit = {nu})",
    "    // {zn}要先{zv}",
    '    require({id} > {nu}) {{ "the {en} cannot {ev}" }}',
    "    {id}.forEach {{ {fn}(it) }}",
    "    {id}?.let {{ {sy}.{fn}(it) }}",
    "    return {sy}({id})",
)

TOPICS = 200
"""A topic has its own frequent words and its own cluster of vectors."""
NOW_S = 1_750_000_000
"""The "now" of the corpus in Unix seconds: memories are older, and recalls give it as as_of."""
_AGE_DAYS = 365
_NOISE = 1.0
"""Length of what is added to a topic's unit vector: two texts of one topic have a cosine of about 0.5."""
_MEMORIES, _QUERIES, _CENTRES = range(3)
_SENTENCES = 8
_LINES = 24
_NUMBERS = 5000

TAG_SHARES = {"quarter": 1 / 4, "most": 3 / 4, "narrow": 1 / 64}
"""Tags for filters, each with the share of memories that have it, whatever else they are about."""

_KINDS = (
    (0.40, pb.MEMORY_KIND_CODE_FRAGMENT),
    (0.72, pb.MEMORY_KIND_NOTE),
    (0.92, pb.MEMORY_KIND_LEARNING_RECORD),
    (0.94, pb.MEMORY_KIND_DOMAIN_KNOWLEDGE),
    (1.00, pb.MEMORY_KIND_ENTRY),
)
"""Each kind with the upper end of its share of the unit interval."""
_NOTE_ORIGINS = (pb.ORIGIN_USER_INPUT, pb.ORIGIN_MANUAL, pb.ORIGIN_AI_OUTPUT, pb.ORIGIN_SUMMARY)

Batch = tuple[str, list[pb.Memory]]
"""A project and some of its memories."""
_ID_PREFIX = "bench/"


def place_of(memory_id: str) -> int:
    """The place in the corpus of the memory that has this id."""
    return int(memory_id.removeprefix(_ID_PREFIX))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query that fits one topic: its text, and a vector of length 1 when the corpus has vectors."""

    project: str
    text: str
    vector: pb.Embedding | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Space:
    """A vector space: its id, as AdminService.Status names it, and the centre of each topic (TOPICS, dim)."""

    id: str
    centres: NDArray[np.float64]

    @classmethod
    def seeded(cls, space_id: str, dim: int, seed: int) -> Space:
        """Centres drawn evenly from all directions."""
        drawn = np.random.default_rng((seed, _CENTRES)).standard_normal((TOPICS, dim))
        return cls(id=space_id, centres=drawn / np.linalg.norm(drawn, axis=1, keepdims=True))

    def near(self, topic: int, random: np.random.Generator) -> pb.Embedding:
        """A vector of length 1 that belongs to the topic."""
        noise = random.standard_normal(self.centres.shape[1])
        drawn = self.centres[topic] + noise * (_NOISE / np.linalg.norm(noise))
        return vector((drawn / np.linalg.norm(drawn)).tolist(), self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Memories by place.

    Attributes:
        size: How many, at least 1; each has a text of its own, so that none is a duplicate.
        seed: Decides everything.
        projects: They are dealt to this many projects in turn.
        space: None leaves the embedding to the server.
    """

    size: int
    seed: int
    projects: int = 1
    space: Space | None = field(default=None)

    def project_name(self, place: int) -> str:
        """The project of the memory (or question) at that place."""
        return f"bench-{place % self.projects}"

    def batches(self, batch_memories: int) -> Iterator[Batch]:
        """All memories, project by project, in batches of at most that many."""
        for first in range(min(self.projects, self.size)):
            places = range(first, self.size, self.projects)
            for start in range(0, len(places), batch_memories):
                batch = places[start : start + batch_memories]
                yield self.project_name(first), [self.memory(place) for place in batch]

    def memory(self, place: int) -> pb.Memory:
        """The memory at a place in [0, size)."""
        random = np.random.default_rng((self.seed, _MEMORIES, place))
        topic = _zipf(random, TOPICS)
        share = random.random()
        kind = next(kind for upper, kind in _KINDS if share < upper)
        memory = _MAKERS[kind](_Words(random, topic), place)
        memory.id = f"{_ID_PREFIX}{place}"
        memory.kind = kind
        memory.tags.extend(sorted({TAGS[_zipf(random, len(TAGS))] for _ in range(2)}))
        memory.tags.extend(tag for tag, share in TAG_SHARES.items() if random.random() < share)
        age_s = random.integers(_AGE_DAYS * 86_400)
        memory.create_time.CopyFrom(Timestamp(seconds=NOW_S - int(age_s)))
        if self.space is not None:
            memory.vector.CopyFrom(self.space.near(topic, random))
        return memory

    def question(self, number: int) -> Question:
        """One of any number of questions, no two alike."""
        random = np.random.default_rng((self.seed, _QUERIES, number))
        topic = _zipf(random, TOPICS)
        drawn = _Words(random, topic)
        text = drawn.filled(_ZH_QUESTIONS if drawn.is_chinese else _EN_QUESTIONS)
        return Question(
            project=self.project_name(number),
            text=f"{text} ({number})",
            vector=None if self.space is None else self.space.near(topic, random),
        )


class _Words:
    """Draws what the fields of a sentence stand for: a word of low rank in the topic is drawn most often."""

    def __init__(self, random: np.random.Generator, topic: int) -> None:
        self.random = random
        self.topic = topic
        self.is_chinese = bool(random.random() < 0.5)

    def __getitem__(self, name: str) -> str:
        """The field of that name, anew: Chinese or English noun or verb, symbol, function, variable, number."""
        match name:
            case "zn":
                return "".join(self._pair(_ZH_FIRST, _ZH_SECOND))
            case "zv":
                return self._one(_ZH_VERBS)
            case "en":
                return " ".join(self._pair(_EN_FIRST, _EN_SECOND))
            case "ev":
                return self._one(_EN_VERBS)
            case "sy":
                return "".join(part.capitalize() for part in self._pair(_EN_FIRST, _EN_SECOND))
            case "fn":
                return self._one(_EN_VERBS) + self["sy"]
            case "id":
                return "_".join(self._pair(_EN_FIRST, _EN_SECOND))
            case "nu":
                return str(1 + _zipf(self.random, _NUMBERS))
        raise KeyError(name)

    def filled(self, sentences: Sequence[str]) -> str:
        """One of the sentences with its fields drawn."""
        return sentences[int(self.random.integers(len(sentences)))].format_map(self)

    def text(self) -> str:
        """A few sentences in one language; few are much more frequent than many."""
        sentences = _ZH_SENTENCES if self.is_chinese else _EN_SENTENCES
        between = "" if self.is_chinese else " "
        return between.join(self.filled(sentences) for _ in range(1 + _zipf(self.random, _SENTENCES)))

    def _one(self, of: Sequence[str]) -> str:
        return of[(_zipf(self.random, len(of)) + self.topic) % len(of)]

    def _pair(self, first: Sequence[str], second: Sequence[str]) -> tuple[str, str]:
        # Topics begin at different pairs, and 37 shares no factor with the number of pairs.
        chosen = (_zipf(self.random, len(first) * len(second)) + 37 * self.topic) % (len(first) * len(second))
        return first[chosen // len(second)], second[chosen % len(second)]


def _zipf(random: np.random.Generator, count: int) -> int:
    """A rank in [0, count), rank r about as often as 1 / (r + 1)."""
    return min(int(math.exp(random.random() * math.log(count + 1))), count) - 1


def _note(drawn: _Words, place: int) -> pb.Memory:
    origin = _NOTE_ORIGINS[_zipf(drawn.random, len(_NOTE_ORIGINS))]
    said = origin in (pb.ORIGIN_USER_INPUT, pb.ORIGIN_AI_OUTPUT)
    return pb.Memory(
        origin=origin,
        content=f"{drawn.text()} #{place}",
        session_id=f"session-{drawn.topic}" if said else "",
        speaker=_SPEAKERS[int(drawn.random.integers(len(_SPEAKERS)))] if said else "",
    )


def _entry(drawn: _Words, place: int) -> pb.Memory:
    title = f"{drawn['zn' if drawn.is_chinese else 'en']} {place}"
    return pb.Memory(title=title, content=f"{title}\n{drawn.text()}")


def _learning_record(drawn: _Words, place: int) -> pb.Memory:
    question = drawn.filled(_ZH_QUESTIONS if drawn.is_chinese else _EN_QUESTIONS)
    record = pb.LearningRecord(question=f"{question} #{place}", answer=drawn.text(), source_files=[_path(drawn)])
    return pb.Memory(origin=pb.ORIGIN_SUMMARY, learning_record=record)


def _domain_knowledge(drawn: _Words, place: int) -> pb.Memory:
    knowledge = pb.DomainKnowledge(
        domain=f"{drawn['zn']} {place}",
        aliases=[f"{drawn['en']} {place}"],
        summary=drawn.text(),
        key_files=[_path(drawn) for _ in range(2)],
    )
    return pb.Memory(domain_knowledge=knowledge)


def _code_fragment(drawn: _Words, place: int) -> pb.Memory:
    is_python = drawn.random.random() < 0.5
    symbol = drawn["fn"]
    head = f"def {symbol}(batch_{place}):" if is_python else f"fun {symbol}(batch{place}: Batch): Result {{"
    lines = _PYTHON_LINES if is_python else _KOTLIN_LINES
    body = [drawn.filled(lines) for _ in range(3 + _zipf(drawn.random, _LINES))]
    code = [head, *body] if is_python else [head, *body, "}"]
    first = int(1 + drawn.random.integers(400))
    fragment = pb.CodeFragment(
        path=_path(drawn, "py" if is_python else "kt"),
        start_line=first,
        end_line=first + len(code) - 1,
        language="python" if is_python else "kotlin",
        symbol=symbol,
    )
    return pb.Memory(origin=pb.ORIGIN_INDEXER, content="\n".join(code), code_fragment=fragment)


def _path(drawn: _Words, suffix: str = "kt") -> str:
    return f"src/{drawn['id'].replace('_', '/')}/{drawn['sy']}.{suffix}"


_MAKERS = {
    pb.MEMORY_KIND_CODE_FRAGMENT: _code_fragment,
    pb.MEMORY_KIND_NOTE: _note,
    pb.MEMORY_KIND_LEARNING_RECORD: _learning_record,
    pb.MEMORY_KIND_DOMAIN_KNOWLEDGE: _domain_knowledge,
    pb.MEMORY_KIND_ENTRY: _entry,
}
