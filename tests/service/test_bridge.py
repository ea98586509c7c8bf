"""Chinese questions for English code, through the socket."""

from __future__ import annotations

from hummock_client.v1 import learning_service_pb2 as learning
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import memory_service_pb2 as memory
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, learn
from tests.service.inputs import domain, fragment
from tests.service.running import Stubs

CODE = {
    "cache.py": ("invalidate_cache", "def invalidate_cache(key):\n    entries.pop(key)\n"),
    "retry.py": ("retry_with_backoff", "def retry_with_backoff(call):\n    return call()\n"),
    "button.py": ("render_button", "def render_button(label):\n    return label\n"),
    "date.py": ("parse_date", "def parse_date(text):\n    return text\n"),
}


def teach(service: Stubs, project: str) -> None:
    learn(
        service,
        project,
        *(fragment(path, symbol, text, language="python") for path, (symbol, text) in CODE.items()),
    )


def symbol_of(hit: recall.Hit) -> str:
    return hit.memory.code_fragment.symbol


def test_a_chinese_question_finds_the_english_function(service: Stubs, project: str) -> None:
    teach(service, project)
    for question, symbol in (("缓存失效", "invalidate_cache"), ("失败以后怎么退避重试？", "retry_with_backoff")):
        answer = ask(service, project, question, preset=recall.PRESET_AGENT)
        assert symbol_of(answer.hits[0]) == symbol


def test_the_receipt_says_what_was_looked_for_and_by_which_glossary(service: Stubs, project: str) -> None:
    teach(service, project)
    receipt = ask(service, project, "缓存失效", preset=recall.PRESET_AGENT).receipt
    assert [(each.term, list(each.words)) for each in receipt.gloss] == [
        ("缓存", ["cache"]),
        ("失效", ["expire", "invalidate"]),
    ]
    assert receipt.gloss_version.startswith("zh-en.v1:")
    english = ask(service, project, "invalidate the cache", preset=recall.PRESET_AGENT).receipt
    assert (list(english.gloss), english.gloss_version) == ([], "")


def terms(service: Stubs, project: str, question: str) -> dict[str, list[str]]:
    receipt = ask(service, project, question, preset=recall.PRESET_AGENT).receipt
    return {each.term: list(each.words) for each in receipt.gloss}


def test_an_alias_joins_the_glossary_of_its_project_and_leaves_it_with_its_domain(service: Stubs, project: str) -> None:
    """S0-10, S0-06."""
    teach(service, project)
    teach(service, f"{project}-other")
    question = "账脉的失效"
    assert terms(service, project, question) == {"失效": ["expire", "invalidate"]}
    learnt = learn(service, project, domain("Ledgerline", "books", aliases=("账脉", "cache book")))
    assert terms(service, project, question)["账脉"] == ["Ledgerline", "cache book"]
    assert "账脉" not in terms(service, f"{project}-other", question)
    service.memory.DeleteMemories(memory.DeleteMemoriesRequest(project=project, ids=[learnt.results[0].id]))
    assert terms(service, project, question) == {"失效": ["expire", "invalidate"]}


def test_keywords_of_an_entry_join_it_too(service: Stubs, project: str) -> None:
    """S3-34."""
    teach(service, project)
    entry = pb.Memory(id="core", kind=pb.MEMORY_KIND_ENTRY, content="grows by the sea")
    entry.title = "Tidewood core"
    learn(service, project, entry)
    assert "硬木头" not in terms(service, project, "硬木头怎么失效")
    keywords = learning.EntryKeywords(memory_id="core", keywords=["硬木头"])
    service.learning.UpdateLearningSettings(
        learning.UpdateLearningSettingsRequest(project=project, keywords=[keywords])
    )
    assert terms(service, project, "硬木头怎么失效")["硬木头"] == ["Tidewood core"]
