"""A folder of small sets in the form of the shared ones, with texts of our own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

QUESTIONS = 12

_PARAGRAPHS = ("河边的磨坊磨面粉，老板叫“阿桂”。", "山上的灯塔每晚亮灯。", "村里的集市卖鱼、酱油、木桶。")
_PARALLEL = ("The mill by the river grinds flour.", "The lighthouse is lit each night.", "The market sells fish.")
_CODES = (
    "def mill_flour(grain):\n    return grind(grain)",
    "def light_up(lamp):\n    lamp.on = True",
    "def sell(fish):\n    return mill_flour(fish)",
)


def write(folder: Path) -> Path:
    """Writes all sets below the folder and returns it."""
    paragraphs = [{"_id": f"p{i}", "title": "t", "text": text} for i, text in enumerate(_PARAGRAPHS)]
    parallel = [{"_id": f"p{i}", "title": "t", "text": text} for i, text in enumerate(_PARALLEL)]
    codes = [{"_id": f"c{i}", "title": "", "text": text} for i, text in enumerate(_CODES)]
    chinese = [{"_id": f"q{i}", "text": f"第{i}个问题问的是哪里？", "answer": "灯塔"} for i in range(QUESTIONS)]
    english = [{"_id": f"q{i}", "text": f"which place is question {i} about", "answer": "x"} for i in range(QUESTIONS)]
    asked = [{"_id": f"q{i}", "text": f"python question {i}", "split": "dev"} for i in range(QUESTIONS)]
    right = {f"q{i}": [f"p{i % 3}"] for i in range(QUESTIONS)}

    _lines(folder / "xquad-en-zh/corpus.zh.jsonl", paragraphs)
    _lines(folder / "xquad-en-zh/corpus.en.jsonl", parallel)
    _lines(folder / "xquad-en-zh/queries.zh.jsonl", chinese)
    _lines(folder / "xquad-en-zh/queries.en.jsonl", english)
    _right(folder / "xquad-en-zh/qrels.tsv", right)
    _lines(folder / "cmrc2018-dev-zh/corpus.jsonl", paragraphs)
    _lines(folder / "cmrc2018-dev-zh/queries.jsonl", chinese)
    _right(folder / "cmrc2018-dev-zh/qrels.tsv", right)
    _lines(folder / "cosqa-code/corpus.jsonl", codes)
    _lines(folder / "cosqa-code/queries.jsonl", asked)
    _right(folder / "cosqa-code/qrels.tsv", {f"q{i}": [f"c{i % 3}"] for i in range(QUESTIONS)})
    for language in ("zh", "en"):
        _conversation(folder / "memorybank-zh-en", language)
    return folder


def _conversation(folder: Path, language: str) -> None:
    turns = [
        {
            "_id": f"{user}.{place}", "user": user, "day": "2023-05-02", "position": place, "query": said,
            "response": "Oh.",
        }
        for user in ("u00", "u01")
        for place, said in enumerate(("I baked bread.", "I sailed to the lighthouse."))
    ]  # fmt: skip
    asked = [{"_id": f"{user}-q", "user": user, "text": "What did I bake?"} for user in ("u00", "u01")]
    _lines(folder / f"corpus.{language}.jsonl", turns)
    _lines(folder / f"queries.{language}.jsonl", asked)
    _right(folder / f"qrels.{language}.tsv", {"u00-q": ["u00.0", "u00.1"], "u01-q": ["u01.0"]})


def _lines(path: Path, records: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records), encoding="utf-8")


def _right(path: Path, right: Mapping[str, Sequence[str]]) -> None:
    lines = [f"{question}\t{memory}\t1" for question, memories in right.items() for memory in memories]
    path.write_text("\n".join(["query_id\tcorpus_id\tscore", *lines]) + "\n", encoding="utf-8")
