"""The Render use case."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar, cast

import pytest
from msgspec import structs

from hummock.core.candidates import FoundBy
from hummock.core.errors import EmbSpaceMismatch, SeqNotReached
from hummock.core.memory import Filter, Memory, MemoryKind, Origin
from hummock.core.project import Project, ProjectInfo
from hummock.core.recall import Degradation, Hit, Intent, Preset, Recalled, RecallQuery, Receipt
from hummock.core.render import Locale, PartialQuotas, Rendered, RenderForm, RenderQuery, Tier
from hummock.core.session import PromptMessage, PromptRole
from hummock.core.settings import NO_SETTINGS, FormBudgets, ProjectSettings
from hummock.learning.references import Entries, ProjectReferences
from hummock.ports.store import Snapshot, Store
from hummock.render.compose import FORMS, FormOfText
from hummock.render.pipeline import Render
from hummock.render.section import Frame, Section, Selected, wording_of
from hummock.render.turn import RenderTurn
from hummock.text.tokens import EstimatedTokens
from tests.fakes import FakeClock
from tests.render.golden import assert_golden
from tests.render.samples import PROJECT, domain, fragment, memory, note, record

RECEIPT = Receipt(
    preset=Preset.CODE, stages=(), groups=(), emb_space="s", as_of=0.0, vector_weight=0.5, late_interaction_weight=0.0,
    elapsed_s=0.003,
)  # fmt: skip
INTENT = Intent(domains=("还款",), action="ADD_FEATURE", keywords=("先本后息",))


def hit(one: Memory, score: float) -> Hit:
    return Hit(
        memory=one, score=score, similarity=score, cosine=score, keyword_score=0.0, found_by=FoundBy.VECTOR,
        matched_terms=(), age_days=0.0, decay=1.0, near_twin=False, late_interaction_score=0.0,
    )  # fmt: skip


Answered = TypeVar("Answered")


class Shelf:
    """A store with one project of some memories, and its snapshot."""

    sessions = None
    seq = 7
    has_turns = False

    def __init__(self, info: ProjectInfo | None, *memories: Memory, settings: ProjectSettings = NO_SETTINGS) -> None:
        self._info = info
        self.settings = settings
        self._memories = {one.id: one for one in memories}

    def read(self, project: str, work: Callable[[Snapshot], Answered], *, allow_stale: bool = False) -> Answered:
        self._name = project
        return work(cast(Snapshot, self))

    def project(self) -> Project | None:
        if self._info is None:
            return None
        return Project(name=self._name, info=self._info, create_time=0.0, seq=7, content_seq=7, emb_space="s", kinds={})

    def get(self, memory_ids: Sequence[str]) -> list[Memory | None]:
        return [self._memories.get(memory_id) for memory_id in memory_ids]

    def pinned(self, where: Filter, most: int) -> list[Memory]:
        return []


def rendering(recall: Callable[[RecallQuery], Recalled], shelf: Shelf, clock: FakeClock) -> Render:
    store = cast(Store, shelf)
    turn = RenderTurn(store, Entries(), ProjectReferences())
    return Render(lambda query, project: recall(query), store, EstimatedTokens(), clock, turn)


class Answer:
    """A recall with an answer that is known beforehand; it keeps the query."""

    def __init__(self, *hits: Hit, code: Sequence[Hit] = (), domains: Sequence[Hit] = ()) -> None:
        self.queries: list[RecallQuery] = []
        self._recalled = Recalled(
            hits=hits, code_fragments=tuple(code), domains=tuple(domains), intent=INTENT, receipt=RECEIPT,
            degraded=(Degradation(path="vector", reason="EMBEDDER_FAILED", message="the model is away"),), seq=9,
            content_seq=9,
        )  # fmt: skip

    def __call__(self, query: RecallQuery) -> Recalled:
        self.queries.append(query)
        return self._recalled


def render(answer: Answer, shelf: Shelf, query: RenderQuery) -> Rendered:
    return rendering(answer, shelf, FakeClock())(query)


def asked(
    text: str = "增加先本后息的还款方式", form: RenderForm = RenderForm.CONTEXT, preset: Preset = Preset.CODE
) -> RenderQuery:
    return RenderQuery(project="p", recall=RecallQuery(project="p", text=text, preset=preset), form=form)


def ids(rendered: Rendered) -> list[str]:
    return [one.memory_id for one in rendered.memories]


R1, R2 = record("r1", "还款方式有哪些类型？", "三种。"), record("r2", "先息后本？", "先付息。")
C1, C2 = fragment("c1", "RepaymentType.java", "enum A {}"), fragment("c2", "Calculator.java", "class B {}")
D1, D2 = domain("d1", "还款", "概述"), domain("d2", "计息", "概述")


def test_a_recall_becomes_the_sections_of_its_groups() -> None:
    """S0-20, S0-26, S0-30: one call gives the finished section."""
    answer = Answer(hit(R1, 0.95), hit(R2, 0.9), code=[hit(C1, 0.8)], domains=[hit(D1, 0.7)])
    rendered = render(answer, Shelf(PROJECT), asked())
    assert ids(rendered) == ["d1", "r1", "r2", "c1"]
    headings = [line for line in rendered.text.split("\n") if line.startswith("## ")]
    assert headings == ["## 项目背景", "## 相关领域知识", "## 相关学习记录 (后台已学到的知识)", "## 相关代码片段"]


def test_the_recalls_report_is_passed_on() -> None:
    """S0-30."""
    rendered = render(Answer(hit(R1, 0.95)), Shelf(PROJECT), asked())
    assert (rendered.intent, rendered.receipt, rendered.seq) == (INTENT, RECEIPT, 9)
    assert [one.reason for one in rendered.degraded] == ["EMBEDDER_FAILED"]
    assert rendered.memories[0].score == 0.95
    assert rendered.missing_ids == ()


def test_the_recall_is_asked_with_payloads_and_otherwise_as_it_came() -> None:
    answer = Answer()
    query = asked(preset=Preset.AGENT)
    assert query.recall
    lean = replace(query, recall=structs.replace(query.recall, full=False, top_k=3))
    render(answer, Shelf(PROJECT), lean)
    assert answer.queries == [structs.replace(query.recall, full=True, top_k=3)]


A_GROUP = Answer(hit(C1, 0.9), hit(R1, 0.8), hit(D2, 0.7), hit(D1, 0.6), code=[hit(C1, 0.9)], domains=[hit(D1, 0.6)])
THREE_GROUPS = Answer(hit(R1, 0.9), hit(R2, 0.5), code=[hit(C1, 0.95), hit(C2, 0.4)], domains=[hit(D1, 0.5)])


@pytest.mark.parametrize(
    ("answer", "form", "preset", "expected"),
    [
        (A_GROUP, RenderForm.CONTEXT, Preset.AGENT, ["d1", "d2", "r1", "c1"]),
        (THREE_GROUPS, RenderForm.WATERFALL, Preset.CODE, ["c1", "r1", "d1", "r2", "c2"]),
        # A near-twin that was put last stays last.
        (Answer(hit(R1, 0.9), hit(C2, 0.3), hit(R2, 0.89)), RenderForm.WATERFALL, Preset.AGENT, ["r1", "c2", "r2"]),
        # Equal scores of two groups go by memory id.
        (Answer(hit(R1, 0.5), code=[hit(C1, 0.5)], domains=[hit(D1, 0.5)]), RenderForm.WATERFALL, Preset.CODE,
         ["c1", "d1", "r1"]),
    ],
    ids=["one group by kinds", "groups by score", "a diversified order", "equal scores"],
)  # fmt: skip
def test_groups_become_one_order(answer: Answer, form: RenderForm, preset: Preset, expected: list[str]) -> None:
    """S1-02, S2-05, S2-07, S2-09, S2-19: the agent's preset has all kinds in one group."""
    assert ids(render(answer, Shelf(PROJECT), asked(form=form, preset=preset))) == expected


@pytest.mark.parametrize(("form", "budget_tokens"), [(RenderForm.CONTEXT, 4000), (RenderForm.WATERFALL, 2000)])
def test_each_form_has_its_own_budget(form: RenderForm, budget_tokens: int) -> None:
    """S0-33, S2-08, 1.1-5."""
    shelf = Shelf(PROJECT)
    assert render(Answer(), shelf, asked(form=form)).budget_tokens == budget_tokens
    assert render(Answer(), shelf, replace(asked(form=form), budget_tokens=99)).budget_tokens == 99


def test_the_headings_follow_the_query_unless_a_language_is_asked_for() -> None:
    """S0-21."""
    shelf = Shelf(PROJECT)
    assert "## 项目背景" in render(Answer(), shelf, asked("add 还款 type")).text
    assert "## Project" in render(Answer(), shelf, asked("add a repayment type")).text
    assert "## Project" in render(Answer(), shelf, replace(asked(), locale=Locale.EN)).text


def test_without_a_query_the_headings_follow_the_memories() -> None:
    """S0-21."""
    shelf = Shelf(PROJECT, R1, R2, note("e1", "Keys rotate monthly.", title="Keys"), note("e2", "x", title="Ports"))

    def heading(*ids: str) -> str:
        return render(Answer(), shelf, RenderQuery(project="p", memory_ids=ids)).text.split("\n")[2]

    assert heading("r1") == heading("r1", "r2", "e1") == "## 项目背景"
    assert heading("e1") == heading("r1", "e1", "e2") == heading("r1", "e1") == "## Project"
    assert heading("gone") == "## Project"


def test_an_unknown_project_gives_the_empty_text() -> None:
    for query in (asked(), asked(form=RenderForm.WATERFALL), RenderQuery(project="p", memory_ids=("r1",))):
        rendered = render(Answer(), Shelf(None), query)
        assert (rendered.text, rendered.token_count, rendered.memories) == ("", 0, ())


def test_memories_by_id_keep_the_order_asked_for_and_report_what_is_missing() -> None:
    """S2-16, S2-17: the next turn carries the memory in full."""
    shelf = Shelf(PROJECT, R1, R2, note("n1", "x"))
    query = RenderQuery(project="p", memory_ids=("r2", "gone", "n1", "r1", "r2"), form=RenderForm.WATERFALL)
    rendered = render(Answer(), shelf, query)
    assert ids(rendered) == ["r2", "n1", "r1"]
    assert rendered.missing_ids == ("gone",)
    assert (rendered.intent, rendered.receipt, rendered.degraded, rendered.seq) == (None, None, (), 7)
    assert {one.score for one in rendered.memories} == {0.0}


def test_every_kind_can_be_rendered_by_id() -> None:
    wood = memory("e1", MemoryKind.ENTRY, "潮汐木芯是木材。", title="潮汐木芯")
    memories = (R1, C1, D1, note("n1", "记下的话"), wood)
    for form in RenderForm:
        current = PromptMessage(role=PromptRole.USER, content="还款日？") if form is RenderForm.MESSAGES else None
        query = RenderQuery(project="p", memory_ids=tuple(one.id for one in memories), form=form, current=current)
        rendered = render(Answer(), Shelf(PROJECT, *memories), query)
        assert {one.tier for one in rendered.memories} == {Tier.INDEX if form is RenderForm.INDEX else Tier.FULL}
        assert {one.kind for one in rendered.memories} == set(MemoryKind)


def refusing(error: Exception) -> Callable[[RecallQuery], Recalled]:
    def refuse(query: RecallQuery) -> Recalled:
        raise error

    return refuse


@pytest.mark.parametrize(
    ("error", "form"),
    [
        (SeqNotReached(0, 0), RenderForm.CONTEXT),
        # Where nothing can be said without the recall.
        (RuntimeError("the disk is on fire"), RenderForm.INDEX),
    ],
)
def test_what_the_recall_raises_comes_through(error: Exception, form: RenderForm) -> None:
    with pytest.raises(type(error)):
        rendering(refusing(error), Shelf(PROJECT), FakeClock())(asked(form=form))


def test_a_field_that_the_recall_finds_wrong_is_named_where_it_stands() -> None:
    wrong = EmbSpaceMismatch("query_vector.emb_space", "a", "b")
    with pytest.raises(EmbSpaceMismatch, match=r"^recall\.query_vector\.emb_space: ") as refused:
        rendering(refusing(wrong), Shelf(PROJECT), FakeClock())(asked())
    assert refused.value.field == "recall.query_vector.emb_space"


def test_the_time_that_rendering_took_does_not_include_the_recall() -> None:
    clock = FakeClock()

    def slow(query: RecallQuery) -> Recalled:
        clock.move(5.0)
        return Answer()(query)

    assert rendering(slow, Shelf(PROJECT), clock)(asked()).render_elapsed_s == 0.0


def test_a_recall_that_breaks_leaves_the_project() -> None:
    """S0-36: fail open."""
    rendered = rendering(refusing(RuntimeError("the disk is on fire")), Shelf(PROJECT), FakeClock())(asked())
    notice, _, project = rendered.text.partition("\n\n")
    assert notice == wording_of(Locale.ZH).data_notice
    assert project == "## 项目背景\n- 技术栈: Spring Boot, MyBatis, MySQL\n- 项目路径: /srv/loan-service\n\n"
    (why,) = rendered.degraded
    assert (why.path, why.reason, why.message) == ("recall", "RECALL_FAILED", "RuntimeError")


def test_a_whole_chat_turn() -> None:
    """S4-31, S4-35, S2-26."""

    def said(role: PromptRole, content: str, id: str, at: float) -> PromptMessage:
        return PromptMessage(role=role, content=content, id=id, send_time=at)

    answer = Answer(
        hit(note("n1", "小林不吃辣。", create_time=1_759_000_000.0), 0.9),
        hit(note("n2", "他周五去北京，\n下周一回来。", create_time=1_759_100_000.0, origin=Origin.USER_INPUT), 0.8),
    )
    query = RenderQuery(
        project="p",
        recall=RecallQuery(project="p", text="小林能吃什么？", preset=Preset.CHAT),
        form=RenderForm.MESSAGES,
        prompt="你是小满。",
        history=(
            said(PromptRole.ASSISTANT, "你好！", "2", 20.0),
            said(PromptRole.USER, "在吗？", "1", 10.0),
            said(PromptRole.USER, "小林能吃什么？", "3", 30.0),
        ),
        current=said(PromptRole.USER, "小林能吃什么？", "3", 30.0),
        utc_offset_minutes=480,
        as_of=1_760_000_000.0,
    )
    messages = render(answer, Shelf(PROJECT), query).messages
    written = json.dumps(
        [{"role": one.role.name.lower(), "content": one.content} for one in messages], ensure_ascii=False, indent=2
    )
    assert_golden("messages.zh.json", written + "\n")


def test_what_was_read_is_not_said_twice() -> None:
    """S2-17."""
    answer = Answer(hit(R1, 0.9), hit(R2, 0.8))
    query = replace(asked(form=RenderForm.WATERFALL), read_ids=("r2", "gone"))
    rendered = render(answer, Shelf(PROJECT, R1, R2), query)
    assert ids(rendered) == ["r2", "r1"]
    assert rendered.text.count('id="r2"') == 1
    assert rendered.memories[0].reason == "read: always in full"
    assert rendered.missing_ids == ("gone",)


def test_a_form_is_a_function_and_a_line_in_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """S2-20: pluggable alongside the others, no other module touched."""

    def shout(selected: tuple[Selected, ...], frame: Frame) -> Section:
        return Section(text=f"{len(selected)} memories!", token_count=3)

    monkeypatch.setitem(FORMS, RenderForm.INDEX, FormOfText(write=shout, budget_tokens=7))
    rendered = render(Answer(hit(R1, 0.9)), Shelf(PROJECT), asked(form=RenderForm.INDEX))
    assert (rendered.text, rendered.budget_tokens) == ("1 memories!", 7)


def test_a_budget_is_the_requests_else_the_projects_else_the_forms() -> None:
    """S4-46, S0-33."""
    set_budget = ProjectSettings(budget_tokens=FormBudgets(context=300))
    assert rendered(settings=set_budget).budget_tokens == 300
    assert rendered(settings=set_budget, budget_tokens=200).budget_tokens == 200
    assert rendered(settings=set_budget, form=RenderForm.WATERFALL).budget_tokens == 2000
    assert rendered(settings=NO_SETTINGS).budget_tokens == 4000


def test_each_quota_is_the_requests_else_the_projects_else_the_usual_one() -> None:
    """S4-46, S0-20."""
    settings = ProjectSettings(quotas=PartialQuotas(learning_records=1, code_fragments=0))
    assert shown_kinds(settings, PartialQuotas()) == {"LEARNING_RECORD": 1, "CODE_FRAGMENT": 0}
    assert shown_kinds(settings, PartialQuotas(learning_records=2)) == {"LEARNING_RECORD": 2, "CODE_FRAGMENT": 0}
    assert shown_kinds(NO_SETTINGS, PartialQuotas()) == {"LEARNING_RECORD": 2, "CODE_FRAGMENT": 1}


def rendered(*, settings: ProjectSettings, **fields: object) -> Rendered:
    query = RenderQuery(project="p", recall=RecallQuery(project="p", text="还款"), **fields)  # type: ignore[arg-type] # fields of RenderQuery
    answer = Answer(hit(R1, 0.9), hit(R2, 0.8), code=[hit(C1, 0.7)])
    return render(answer, Shelf(PROJECT, settings=settings), query)


def shown_kinds(settings: ProjectSettings, quotas: PartialQuotas) -> dict[str, int]:
    memories = rendered(settings=settings, quotas=quotas).memories
    kinds = [one.kind.name for one in memories if one.tier is not Tier.DROPPED]
    return {name: kinds.count(name) for name in ("LEARNING_RECORD", "CODE_FRAGMENT")}


def test_what_hardly_bears_on_the_query_is_left_out_of_the_context_and_said() -> None:
    """S0-23: unless the document's letter is asked for; other forms show what was recalled."""
    answer = Answer(hit(R1, 0.9), hit(R2, 0.12), domains=[hit(D1, 0.0)])
    memories = render(answer, Shelf(PROJECT), asked()).memories
    assert [one.memory_id for one in memories if one.tier is Tier.FULL] == ["d1", "r1"]
    assert memories[-1].reason == "left out: its relevance 0.12 is far below the best, 0.90"
    literal = replace(asked(), quotas=PartialQuotas(text_characters=500))
    for query in (literal, asked(form=RenderForm.WATERFALL)):
        assert Tier.DROPPED not in {one.tier for one in render(answer, Shelf(PROJECT), query).memories}


def test_excerpts_follow_the_words_of_the_query_and_of_its_intent() -> None:
    """S0-04: a language model's keywords are looked for as well."""
    lines = [f"line {n} of something else" for n in range(100)]
    lines[90] = "先本后息 comes first"
    answer = Answer(hit(note("n", "\n".join(lines)), 0.9))
    assert lines[90] in render(answer, Shelf(PROJECT), asked("what is its name?")).text


def test_excerpts_grow_and_shrink_with_the_budget() -> None:
    """S0-33."""
    one = note("n", "\n".join(f"line {n} of something" for n in range(400)))

    def tokens(budget_tokens: int) -> int:
        query = replace(asked("something", RenderForm.CONTEXT), budget_tokens=budget_tokens)
        return render(Answer(hit(one, 0.9)), Shelf(None), query).token_count

    assert 0 < tokens(400) < tokens(4000) < tokens(8000) <= 1000
