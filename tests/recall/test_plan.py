from __future__ import annotations

import pytest
from msgspec.structs import replace

from hummock.core.errors import InvalidRequest
from hummock.core.memory import Filter, MemoryKind, Origin
from hummock.core.recall import Decay, DecayMode, Intent, Plan, Preset, RecallPath, RecallQuery
from hummock.recall.plan import make_plan
from hummock.text.question import question_of

NOW = 1_000.0


def planned(query: RecallQuery) -> Plan:
    return make_plan(query, question_of(query.text), Intent(), near_twin_bar=0.9, now=NOW)


def test_chat_has_the_chat_documents_numbers() -> None:
    """S4-19, S4-20, S4-21, S4-22, S4-23, S4-51, 1.1-10."""
    literal = RecallQuery(project="p", text="x", preset=Preset.CHAT, paths=frozenset({RecallPath.VECTOR}))
    plan = planned(literal)
    (main,) = plan.groups
    assert (main.pool, main.top_k) == (20, 5)
    assert (plan.min_similarity, plan.min_of_best) == (0.30, 0.30)
    assert plan.decay == Decay(mode=DecayMode.EXPONENTIAL, half_life_days=14.0)
    assert plan.filter.origins == {Origin.MANUAL, Origin.SUMMARY, Origin.USER_INPUT}


def test_chat_that_joins_paths_looks_further_and_forgets_less() -> None:
    """S4-20, S4-21, S4-22, S4-23, S4-46, S4-51, 1.1-10."""
    asked = RecallQuery(project="p", text="x", preset=Preset.CHAT)
    plan = planned(asked)
    (main,) = plan.groups
    assert (main.pool, main.top_k) == (50, 5)
    assert (plan.min_similarity, plan.min_of_best) == (0.15, 0.08)
    assert plan.decay == Decay(mode=DecayMode.EXPONENTIAL, half_life_days=14.0, floor=0.9)
    assert planned(replace(asked, decay_floor=0.0)).decay.floor == 0
    assert plan.filter.origins == {Origin.MANUAL, Origin.SUMMARY, Origin.USER_INPUT}


@pytest.mark.parametrize("preset", [Preset.AGENT, Preset.CHAT])
def test_small_talk_never_brings_what_a_model_said(preset: Preset) -> None:
    """S4-51, S4-53."""
    for text in ("ok", "继续", "and then?", "good morning", "谢谢"):
        asked = RecallQuery(project="p", text=text, preset=preset)
        assert Origin.AI_OUTPUT not in (planned(asked).filter.origins or frozenset(Origin))
        for named in (frozenset(Origin), frozenset({Origin.AI_OUTPUT}), frozenset({Origin.AI_OUTPUT, Origin.MANUAL})):
            assert planned(replace(asked, filter=Filter(origins=named))).filter.origins == named
    assert planned(RecallQuery(project="p", text="ok", preset=Preset.CODE)).filter == Filter()


@pytest.mark.parametrize("text", ["你上次推荐的那家店叫什么", "What did you suggest for the roof?"])
def test_what_a_model_said_answers_where_it_is_asked_for(text: str) -> None:
    """S4-51, S4-53."""
    asked = RecallQuery(project="p", text=text, preset=Preset.CHAT)
    assert Origin.AI_OUTPUT in planned(asked).filter.origins
    assert Origin.AI_OUTPUT not in planned(replace(asked, paths=frozenset({RecallPath.VECTOR}))).filter.origins
    chosen = Filter(origins=frozenset({Origin.MANUAL}))
    assert planned(replace(asked, filter=chosen)).filter.origins == {Origin.MANUAL}


def test_a_minimum_that_is_asked_for_holds_for_the_best_as_well() -> None:
    """S4-21, S4-26."""
    plan = planned(RecallQuery(project="p", text="x", preset=Preset.CHAT, min_similarity=0.5))
    assert (plan.min_similarity, plan.code_bar, plan.min_of_best) == (0.5, None, 0.5)


def test_fragments_of_code_have_a_bar_of_their_own() -> None:
    """1.1-10: of thousands, some are a little like anything."""
    plan = planned(RecallQuery(project="p", text="loan", preset=Preset.CODE))
    assert (plan.min_similarity, plan.code_bar) == (0.15, 0.96)
    agent = planned(RecallQuery(project="p", text="loan"))
    assert (agent.min_similarity, agent.code_bar) == (-1.0, None)


def test_code_has_groups_of_its_own_for_domains_and_fragments() -> None:
    """S0-02, S0-05, S0-08, S0-10, S0-20, 1.1-4, 1.1-5."""
    plan = planned(RecallQuery(project="p", text="loan", preset=Preset.CODE))
    assert [(group.name, group.pool, group.top_k) for group in plan.groups] == [
        ("domains", 50, 3),
        ("main", 50, 10),
        ("code", 50, 10),
    ]
    assert plan.groups[2].with_key_files
    assert plan.groups[1].kinds == {MemoryKind.LEARNING_RECORD, MemoryKind.NOTE, MemoryKind.ENTRY}


def test_agent_has_one_group_of_all_kinds_made_different() -> None:
    """S2-06, S2-19."""
    plan = planned(RecallQuery(project="p", text="x"))
    (main,) = plan.groups
    assert (main.pool, main.top_k, plan.relevance_weight) == (50, 10, 0.7)
    assert main.kinds == frozenset(MemoryKind)
    assert plan.decay.mode is DecayMode.OFF


@pytest.mark.parametrize(("top_k", "candidates", "pool"), [(10, 30, 30), (80, None, 80)])
def test_the_pool_is_explicit_never_doubled_and_never_below_top_k(
    top_k: int, candidates: int | None, pool: int
) -> None:
    """1.1-4."""
    (main,) = planned(RecallQuery(project="p", text="x", top_k=top_k, candidates=candidates)).groups
    assert main.pool == pool


def test_what_the_query_says_wins_over_the_preset() -> None:
    """S4-46."""
    plan = planned(
        RecallQuery(
            project="p",
            text="x",
            preset=Preset.CHAT,
            min_similarity=0.0,
            decay_mode=DecayMode.OFF,
            relevance_weight=0.0,
            near_twin_bar=2.0,
            as_of=5.0,
            filter=Filter(origins=frozenset({Origin.AI_OUTPUT})),
        )
    )
    assert plan.min_similarity == 0.0
    assert plan.decay.mode is DecayMode.OFF
    assert plan.relevance_weight == 0.0
    assert plan.near_twin_bar == 2.0
    assert plan.as_of == 5.0
    assert plan.filter.origins == {Origin.AI_OUTPUT}


@pytest.mark.parametrize(
    ("text", "group_count"), [("a", 0), (" is\n", 0), ("I", 0), ("id", 3), ("int", 3), ("还", 3), ("还款", 3), ("é", 3)]
)
def test_under_code_a_letter_or_two_recall_nothing(text: str, group_count: int) -> None:
    """S0-36, 1.1-2: only ASCII is too short, and only where the caller says no more.

    A name that short is looked for by words alone: C#, Go.
    """
    query = RecallQuery(project="p", text=text, preset=Preset.CODE)
    assert len(planned(query).groups) == group_count
    assert len(planned(replace(query, intent=Intent(domains=("还款",)))).groups) == 3
    assert len(planned(replace(query, preset=Preset.AGENT)).groups) == 1


@pytest.mark.parametrize(
    ("text", "preset", "has_vector"),
    [
        *(
            ("C#", Preset.CODE, False),
            ("Go", Preset.CODE, False),
            ("id", Preset.CODE, False),
            ("C++", Preset.CODE, True),
        ),
        *(("C#", Preset.AGENT, True), ("Go", Preset.CHAT, True)),
        *(("🦄", Preset.CODE, False), ("❤️ ± 🇩🇪", Preset.AGENT, False), ("1️⃣", Preset.CHAT, False)),
        *(("🦄 launch", Preset.AGENT, True), ("???", Preset.AGENT, True), ("🦄3", Preset.CHAT, True)),
    ],
)
def test_signs_and_names_of_a_letter_or_two_are_looked_for_by_words_alone(
    text: str, preset: Preset, has_vector: bool
) -> None:
    plan = planned(RecallQuery(project="p", text=text, preset=preset))
    assert {RecallPath.VECTOR in group.paths for group in plan.groups} == {has_vector}
    by_vector = RecallQuery(project="p", text=text, preset=preset, paths=frozenset({RecallPath.VECTOR}))
    assert all(group.paths == {RecallPath.VECTOR} for group in planned(by_vector).groups)


def test_a_filter_of_kinds_drops_the_groups_that_it_empties() -> None:
    wanted = Filter(kinds=frozenset({MemoryKind.CODE_FRAGMENT}))
    plan = planned(RecallQuery(project="p", text="loan", preset=Preset.CODE, filter=wanted))
    assert [group.name for group in plan.groups] == ["code"]


def test_without_the_domain_path_no_key_files_are_pulled() -> None:
    paths = frozenset({RecallPath.VECTOR})
    plan = planned(RecallQuery(project="p", text="loan", preset=Preset.CODE, paths=paths))
    assert not any(group.with_key_files for group in plan.groups)
    assert all(group.paths == paths for group in plan.groups)


@pytest.mark.parametrize("top_k", [0, -1, 201, 5000])
def test_top_k_out_of_range_names_the_field(top_k: int) -> None:
    with pytest.raises(InvalidRequest, match=f"top_k: is {top_k}"):
        RecallQuery(project="p", text="x", top_k=top_k)


def test_chat_by_the_vector_path_alone_moves_no_twins() -> None:
    """1.1-10: the chat document's algorithm knows similarity and age."""
    chat = RecallQuery(project="p", text="x", preset=Preset.CHAT)
    literal = replace(chat, paths=frozenset({RecallPath.VECTOR}))
    assert planned(chat).near_twin_bar == 0.9
    assert planned(literal).near_twin_bar > 1
    assert planned(replace(literal, near_twin_bar=0.5)).near_twin_bar == 0.5
    assert planned(replace(literal, preset=Preset.AGENT)).near_twin_bar == 0.9


@pytest.mark.parametrize("preset", list(Preset))
def test_late_interaction_belongs_to_joined_paths(preset: Preset) -> None:
    """1.1-10: who asks for the vector path alone gets its order, and under chat the chat document's to the letter."""
    query = RecallQuery(project="p", text="loan", preset=preset)
    assert planned(query).late_interaction
    for path in RecallPath:
        assert not planned(replace(query, paths=frozenset({path}))).late_interaction


@pytest.mark.parametrize("wanted", [True, False])
def test_a_request_can_switch_late_interaction(wanted: bool) -> None:
    for paths in (frozenset(RecallPath), frozenset({RecallPath.VECTOR})):
        query = RecallQuery(project="p", text="x", paths=paths, late_interaction=wanted)
        assert planned(query).late_interaction is wanted


def test_an_intent_that_names_domains_gets_those_alone() -> None:
    """S0-10: an exact lookup of each; a missing one is skipped."""
    query = RecallQuery(project="p", text="还款方式", preset=Preset.CODE)
    by_name, by_all = (
        {group.name: group.paths for group in make_plan(query, question_of(query.text), intent, 0.9, 0.0).groups}
        for intent in (Intent(domains=("还款",)), Intent(keywords=("还款",)))
    )
    assert by_name["domains"] == {RecallPath.DOMAIN}
    assert by_all["domains"] == frozenset(RecallPath)
    assert by_name["main"] == by_all["main"]
    assert by_name["code"] == by_all["code"]
