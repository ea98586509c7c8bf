"""Chinese questions for English code, through the socket."""

from __future__ import annotations

from hummock.v1 import recall_pb2 as recall
from tests.service.calls import ask, learn
from tests.service.inputs import fragment
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
