"""Values that the use cases of these tests answer with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from hummock.core import memory as core
from hummock.core import recall, render
from hummock.core.candidates import FoundBy
from hummock.core.deadline import Deadline
from hummock.core.embedding import Calibration, Embedding, EmbeddingSpace
from hummock.core.explain import Change, Explained, ExplainQuery, LossStage, Numbers, Remedy, Verdict
from hummock.core.learning import LoggedEvent, Switched
from hummock.core.learning_requests import FeedbackCommand, FeedbackNoted
from hummock.core.project import EmbeddingStatus, LearnerStatus, Project, ProjectInfo, ServiceStatus, StoreStatus
from hummock.core.review import Quarantined, QuarantinedPage
from hummock.core.session import LearnedSide, LearnedTurn, LearnTurnCommand, PromptRole, Session, SessionMessage
from hummock.core.settings import PresetSettings, ProjectSettings, Setting, SettingOrigin, SettingsShown
from hummock.core.tools import ToolDefinition
from hummock.core.transfer import ExportedMemory, ExportPage, Given, GivenEvent, GivenMemory, GivenMessage, Imported
from hummock.memories import forget, garden
from hummock.ports.writes import Written
from hummock.recall.cache import Answer, Cached

SPACE = EmbeddingSpace(
    id="0123456789abcdef0123456789abcdef",
    model="bge-small-zh-v1.5",
    dim=4,
    token_dim=2,
    max_tokens=512,
    scripts=frozenset({"latin", "han"}),
    calibration=Calibration(unrelated_latin=0.1, unrelated_han=0.2, near_twin_bar=0.95),
)

MEMORY = core.Memory(
    id="世界.图鉴.物品.潮汐木芯",
    kind=core.MemoryKind.CODE_FRAGMENT,
    origin=core.Origin.INDEXER,
    index=core.MemoryIndex(title="还款 repay()", summary="先本后息", tags=("code", "还款")),
    payload=core.Payload(
        content="fun repay() = 1",
        raw="fun repay() = 1 // 计算",
        detail=core.CodeFragment(
            path="src/Repay.kt", start_line=3, end_line=9, language="kotlin", symbol="Repay.repay"
        ),
    ),
    session_id="s-1",
    speaker="林",
    event_time=1_700_000_000.25,
    emotion_label="joy",
    trust=0.5,
    supersedes=("old",),
    source_hash="abc",
    create_time=1_700_000_001.5,
    update_time=1_700_000_002.0,
    content_hash=bytes(range(16)),
    fingerprint=bytes(16),
    token_count=12,
    chunk_count=1,
)

HIT = recall.Hit(
    memory=MEMORY,
    score=0.75,
    similarity=0.5,
    cosine=0.625,
    keyword_score=2.5,
    found_by=FoundBy.VECTOR | FoundBy.KEY_FILE,
    matched_terms=("还款", "repay"),
    age_days=1.5,
    decay=1.0,
    near_twin=True,
    late_interaction_score=0.375,
    cross_encoder_score=0.875,
)

RECEIPT = recall.Receipt(
    preset=recall.Preset.CODE,
    stages=(recall.StageTime(stage="embed", elapsed_s=0.0025),),
    groups=(recall.GroupCount(name="main", searched=9, vector=5, returned=1),),
    emb_space=SPACE.id,
    as_of=1_700_000_003.0,
    vector_weight=0.5,
    late_interaction_weight=0.25,
    cross_encoded=4,
    elapsed_s=0.004,
)

DEGRADED = (recall.Degradation(path="vector", reason="EMBEDDER_FAILED", message="no vectors"),)

SETTINGS = SettingsShown(
    own=ProjectSettings(chat=PresetSettings(top_k=8, origins=frozenset({core.Origin.AI_OUTPUT, core.Origin.MANUAL}))),
    settings=(
        Setting(path="chat.top_k", value=8, origin=SettingOrigin.PROJECT, default=5),
        Setting(
            path="chat.origins",
            value=frozenset({core.Origin.AI_OUTPUT, core.Origin.MANUAL}),
            origin=SettingOrigin.PROJECT,
            default=frozenset({core.Origin.MANUAL}),
        ),
        Setting(
            path="chat.decay_mode",
            value=recall.DecayMode.EXPONENTIAL,
            origin=SettingOrigin.DEFAULT,
            default=recall.DecayMode.EXPONENTIAL,
        ),
    ),
    seq=9,
    content_seq=4,
)

PROJECT = Project(
    name="loan",
    info=ProjectInfo(tech_stack=("Spring Boot", "MySQL"), path="/srv/loan"),
    create_time=1_700_000_000.0,
    seq=7,
    content_seq=5,
    emb_space=SPACE.id,
    kinds={core.MemoryKind.NOTE: 2, core.MemoryKind.LEARNING_RECORD: 1},
)


def fresh(recalled: recall.Recalled) -> Answer:
    """The answer of a recall of one's own."""
    return Answer(of=Cached(recalled), is_cached=False, project_settings=(), seq=recalled.seq)


def recalled(query: recall.RecallQuery) -> recall.Recalled:
    return recall.Recalled(
        hits=(HIT,),
        code_fragments=(),
        domains=(),
        intent=recall.Intent(domains=("还款",), action="ADD_FEATURE", keywords=("先本后息",)),
        receipt=RECEIPT,
        degraded=DEGRADED,
        seq=7,
        content_seq=5,
    )


def rendered(query: render.RenderQuery) -> render.Rendered:
    return render.Rendered(
        text="## 项目背景\n",
        token_count=6,
        budget_tokens=query.budget_tokens or 4000,
        over_budget=False,
        memories=(
            render.RenderedMemory(
                trust=0.5,
                origin=core.Origin.INDEXER,
                marks=(render.MemoryMark.STALE,),
                memory_id=MEMORY.id,
                kind=MEMORY.kind,
                tier=render.Tier.INDEX,
                token_count=6,
                reason="fits",
                score=0.75,
            ),
        ),
        tools=(
            ToolDefinition(
                name="read_memory",
                description="Reads a memory.",
                input_schema={"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
            ),
        ),
        messages=(),
        instructions="",
        prefix=None,
        counter="estimate",
        missing_ids=("gone",),
        intent=None,
        receipt=None,
        degraded=(),
        render_elapsed_s=0.001,
        seq=7,
    )


def learned(command: core.LearnCommand) -> core.Learned:
    return core.Learned(
        seq=8,
        results=tuple(
            core.LearnResult(id=lesson.draft.id or f"made-{index}", status=core.LearnStatus.CREATED)
            for index, lesson in enumerate(command.lessons)
        ),
    )


def learned_turn(command: LearnTurnCommand) -> LearnedTurn:
    user, assistant = (
        LearnedSide(
            message_id=side.message_id or f"made-{position}",
            position=position,
            memory_id=f"memory-{position}",
            status=core.LearnStatus.CREATED,
        )
        for position, side in enumerate((command.user, command.assistant), start=1)
    )
    return LearnedTurn(seq=9, user=user, assistant=assistant)


def searched(query: render.SearchQuery) -> render.Searched:
    return render.Searched(
        results=(
            render.SearchResult(
                type="code",
                memory_id=MEMORY.id,
                title="repay()",
                content="fun repay() = 1",
                score=0.5,
                metadata={
                    "kind": "CODE_FRAGMENT",
                    "origin": "INDEXER",
                    "path": "src/Repay.kt",
                    "start_line": 3,
                    "tags": ["code"],
                },
            ),
        ),
        text="1. [code] repay() (score=0.50)",
        receipt=RECEIPT,
        degraded=(),
    )


def explained(query: ExplainQuery) -> Explained:
    verdict = Verdict(
        stage=LossStage.RANK,
        group="main",
        value=17.0,
        threshold=10.0,
        numbers=Numbers(cosine=0.5, matched_terms=("还款",), vector_rank=3, place=17, searched=9, pool=50, top_k=10),
    )
    remedy = Remedy(
        changes=(Change(field="tuning.top_k", value="17"),), recall=replace(query.recall, top_k=17), rank=17
    )
    return Explained(verdict=verdict, sentence="它排第 17", remedy=remedy)


def status() -> ServiceStatus:
    return ServiceStatus(
        version="0.1.0",
        uptime_s=1.5,
        space=SPACE,
        advice="",
        store=StoreStatus(
            directory="/data", used_bytes=1, quota_bytes=2, project_count=3, loaded_project_count=1, loaded_bytes=4
        ),
        learner=LearnerStatus(
            model="small",
            requests=9,
            replies=8,
            prompt_tokens=900,
            completion_tokens=80,
            waiting_turns=1,
            dropped_turns=2,
        ),
        embedding=EmbeddingStatus(pending=6, rate=2.0, failed=1),
    )


class Exported:
    """A project of one memory and a conversation of one message."""

    def __call__(self, project: Project, *, with_vectors: bool) -> Iterator[ExportPage]:
        embedding = Embedding(vector=np.array([0.6, 0.8, 0, 0], np.float32), tokens=np.array([[1, -127]], np.int8))
        embeddings = (embedding,) if with_vectors else ()
        kept = ExportedMemory(memory=MEMORY, session_position=3, embeddings=embeddings)
        yield ExportPage(memories=(kept,), removed_ids=("gone",), next_after=None, seq=project.seq)

    def events(self, project: str) -> Iterator[GivenEvent]:
        yield GivenEvent(logged=LoggedEvent(number=1, time=1_700_000_000.0, event=Switched(enabled=True)))

    def held_count(self, project: str) -> int:
        return 2

    def conversations(self, project: str) -> Iterator[Session | GivenMessage]:
        yield Session(id="s-1", title="还款", create_time=1_700_000_000.0, update_time=1_700_000_000.0)
        message = SessionMessage(
            id="m-1", role=PromptRole.USER, content="怎么还款？", raw="", send_time=1_700_000_001.0
        )
        yield GivenMessage(session_id="s-1", message=message)


def imported(project: str, parts: Sequence[Given]) -> Imported:
    memories = sum(isinstance(part, GivenMemory) for part in parts)
    return Imported(
        seq=11,
        created=memories,
        updated=0,
        unchanged=0,
        removed=0,
        embedded=memories,
        sessions=0,
        messages=0,
        expired=0,
        events=0,
        left_events=0,
        failures=(),
    )


UPDATED = core.Updated(memory=MEMORY, seq=9)
DELETED = core.Deleted(seq=10, deleted_count=1, missing_ids=("gone",))


class Forgotten:
    """Forgets one memory, whatever it is asked."""

    def __call__(self, _: forget.ForgetCommand, deadline: Deadline) -> tuple[forget.Receipt, int]:
        del deadline
        return forget.Receipt(memory_count=1, event_count=2, ids_digest="0" * 64), 11

    def count(self, command: forget.ForgetCommand, deadline: Deadline) -> tuple[forget.Receipt, int]:
        return self(command, deadline)


class Reviewed:
    """Holds one memory, and decides as it is asked."""

    def page(self, project: str, after: str, limit: int) -> QuarantinedPage:
        del project, limit
        return QuarantinedPage(
            held=(Quarantined(memory=MEMORY, families=("override",), hold_time=7.0),) if not after else ()
        )

    def approve(self, command: garden.ReviewCommand) -> Written[garden.Decided]:
        return Written(seq=12, reply=garden.Decided(count=1, missing_ids=command.ids[1:]))

    def reject(self, command: garden.ReviewCommand) -> Written[garden.Decided]:
        return self.approve(command)


def feedback_noted(command: FeedbackCommand) -> FeedbackNoted:
    """Every verdict but the last is kept."""
    unknown = tuple(one.memory_id for one in command.verdicts[-1:])
    return FeedbackNoted(seq=8, recorded=len(command.verdicts) - len(unknown), unknown_ids=unknown)
