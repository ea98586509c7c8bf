"""The demo's sample: it holds what the demo promises, and the indexer makes of its project what a reader would."""

from collections import Counter

from hummock_client.v1 import memory_pb2 as pb
from hummock_tools.demo import load_sample, sample_repository
from hummock_tools.indexing.chunker import fragments
from hummock_tools.indexing.markdown import domain_entries
from hummock_tools.indexing.walk import walk

QUESTIONS = [
    "还款方式有哪些类型？", "还款计算的核心逻辑是什么？", "还款模块与其他模块的交互关系？", "先息后本的实现方式？",
]  # fmt: skip


def test_the_worked_example_is_part_of_the_sample() -> None:
    """S0-29."""
    sample = load_sample()
    assert [memory.learning_record.question for memory in sample.memories[:4]] == QUESTIONS
    domains = [memory.domain_knowledge for memory in sample.memories]
    domain = next(each for each in domains if each.domain == "还款")
    assert domain.aliases == ["还款方式", "repayment"]
    assert [path.rpartition("/")[2] for path in domain.key_files] == [
        "RepaymentService.java",
        "RepaymentCalculator.java",
        "RepaymentType.java",
    ]
    assert sample.questions["zh"] == "增加先本后息的还款方式"


def test_every_memory_has_what_its_kind_needs_and_an_id_of_its_own() -> None:
    memories = load_sample().memories
    assert len({memory.id for memory in memories}) == len(memories) >= 30
    kinds = Counter(memory.kind for memory in memories)
    assert set(kinds) == {
        pb.MEMORY_KIND_LEARNING_RECORD, pb.MEMORY_KIND_DOMAIN_KNOWLEDGE, pb.MEMORY_KIND_NOTE, pb.MEMORY_KIND_ENTRY
    }  # fmt: skip
    assert "世界.图鉴.物品.潮汐木芯" in {memory.id for memory in memories if memory.kind == pb.MEMORY_KIND_ENTRY}
    for memory in memories:
        record, domain = memory.learning_record, memory.domain_knowledge
        needed = {
            pb.MEMORY_KIND_LEARNING_RECORD: (record.question, record.answer),
            pb.MEMORY_KIND_DOMAIN_KNOWLEDGE: (domain.domain, domain.summary),
        }.get(memory.kind, (memory.content,))
        assert memory.origin, memory.id
        assert all(needed), memory.id


def test_the_project_becomes_java_fragments_and_domain_knowledge() -> None:
    """S0-29."""
    with sample_repository() as root:
        files = list(walk(root, lambda path, reason: None))
    known = frozenset(file.path for file in files)
    java = [fragment for file in files if file.suffix == ".java" for fragment in fragments(file)]
    symbols = {fragment.symbol for fragment in java}
    assert {"RepaymentType", "RepaymentService.createPlan", "RepaymentCalculator.interestFirst"} <= symbols
    entries = {entry.domain: entry for file in files if file.suffix == ".md" for entry in domain_entries(file, known)}
    assert {"还款", "还款计算"} <= entries.keys()
    assert [path.rpartition("/")[2] for path in entries["还款"].key_files] == [
        "RepaymentService.java",
        "RepaymentCalculator.java",
        "RepaymentType.java",
    ]


def test_the_sources_that_records_name_exist_in_the_project() -> None:
    with sample_repository() as root:
        known = {file.path for file in walk(root, lambda path, reason: None)}
    for memory in load_sample().memories:
        for path in (*memory.learning_record.source_files, *memory.domain_knowledge.key_files):
            assert path in known or "/repayment/" not in path
