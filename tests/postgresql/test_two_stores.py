"""Both stores give the same answers: hits, their order, their scores, and every byte that is rendered of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from random import Random

import pytest

from hummock.core.memory import Draft, LearnCommand, Lesson, MemoryKind, Origin, Payload
from hummock.core.recall import Preset, RecallQuery
from hummock.core.render import Rendered, RenderForm, RenderQuery
from hummock.learning.references import Entries, ProjectReferences
from hummock.memories.learn import Learn
from hummock.memories.preparation import Preparation
from hummock.ports.models import Embedder
from hummock.recall.pipeline import Recall
from hummock.render.pipeline import Render
from hummock.render.turn import RenderTurn
from hummock.store import WritableStore
from hummock.text.tokens import EstimatedTokens
from tests.fakes import FakeClock
from tests.snapshots import over
from tests.store.opening import MIB, opened, opened_shared

pytestmark = pytest.mark.long

PROJECTS, QUERIES = 10, 20
_WORDS = [
    *("还款", "利息", "先本后息", "账单", "登录", "超时", "潮汐", "木芯", "配置", "错误", "部署", "回滚"),
    *("parseDate", "parse_date", "repay", "interest", "overdue", "session", "cache", "retry", "kernel", "deploy"),
]


class Side:
    """One of the two stores, with all that answers over it."""

    def __init__(self, store: WritableStore, embedder: Embedder) -> None:
        self.clock = FakeClock()
        self.store = store
        numbers = count(1)
        preparation = Preparation(embedder, EstimatedTokens(), make_id=lambda: f"m{next(numbers)}")
        self._learn = Learn(store, embedder, preparation, self.clock, lambda _: None)
        recall = Recall(embedder, self.clock)
        self._recall = over(store, recall)
        turn = RenderTurn(store, Entries(), ProjectReferences())
        self._render = Render(recall, store, EstimatedTokens(), self.clock, turn)

    def teach(self, project: str, drafts: list[Draft]) -> None:
        """Learns drafts in one request."""
        lessons = tuple(Lesson(draft=draft) for draft in drafts)
        self._learn(LearnCommand(project=project, request_id="", lessons=lessons, fingerprint=b"f")).result(30)

    def answer(self, query: RecallQuery, form: RenderForm) -> tuple[object, Rendered]:
        """The recalled memories and their rendering."""
        return self._recall(query).hits, self._render(RenderQuery(project=query.project, recall=query, form=form))


@pytest.fixture
def sides(tmp_path: Path, database: str, embedder: Embedder) -> Iterator[tuple[Side, Side]]:
    with ExitStack() as stack:
        lmdb = stack.enter_context(opened(tmp_path, clock=FakeClock(), space=embedder.space))
        shared = stack.enter_context(
            opened_shared(database, clock=FakeClock(), space=embedder.space, quota_bytes=1024 * MIB)
        )
        yield Side(lmdb, embedder), Side(shared, embedder)


def drafts_of(random: Random) -> list[Draft]:
    """Some memories of several kinds, some of them twice, over a year."""
    made = []
    for number in range(random.randint(8, 25)):
        text = " ".join(random.choices(_WORDS, k=random.randint(2, 12)))
        made.append(
            Draft(
                id=f"d{number % 20}",
                kind=MemoryKind.NOTE,
                origin=random.choice((Origin.MANUAL, Origin.USER_INPUT, Origin.AI_OUTPUT)),
                payload=Payload(content=text),
                session_id=random.choice(("", "s1", "会话")),
                create_time=FakeClock().now() - random.uniform(0, 365 * 86_400),
            )
        )
    return made


def test_two_hundred_questions_are_answered_alike(sides: tuple[Side, Side]) -> None:
    lmdb, shared = sides
    random = Random(7)  # noqa: S311 # reproducible, not secret
    answered = 0
    for number in range(PROJECTS):
        project = f"project-{number}"
        for _ in range(random.randint(1, 3)):
            drafts = drafts_of(random)
            for side in sides:
                side.teach(project, drafts)
        for _ in range(QUERIES):
            query = RecallQuery(
                project=project,
                text=" ".join(random.choices(_WORDS, k=random.randint(1, 6))),
                preset=random.choice(list(Preset)),
            )
            form = random.choice((RenderForm.CONTEXT, RenderForm.WATERFALL, RenderForm.INDEX, RenderForm.MEMORIES))
            expected = lmdb.answer(query, form)
            assert shared.answer(query, form) == expected
            answered += bool(expected[0])
    assert answered > PROJECTS * QUERIES / 2
