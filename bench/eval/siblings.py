"""Near-equal memories that are all wanted, and versions of which the newest is (sets `siblings` and `versions`).

A group is a few lines of ours (`data/siblings.json`): addresses of four environments, overloads, read and write, rows
of a table, sentences of API documentation. All groups lie in one project, so that they also stand in each other's way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from bench.eval.noise import DATA
from bench.eval.sets import Corpus, Question, Slice
from bench.eval.ways import AGENT, CHAT, CODE
from hummock_client.v1 import memory_pb2 as pb

_PROJECT = "siblings"
_FIRST = datetime(2026, 8, 3, 9, tzinfo=UTC)
_BETWEEN_GROUPS = timedelta(hours=11)
_BETWEEN_SIBLINGS = timedelta(minutes=3)
_BETWEEN_VERSIONS = timedelta(days=4)


def siblings(_: Path) -> Corpus:
    """All groups in one project; notes are asked for under AGENT and CHAT, code under AGENT and CODE."""
    groups: list[Mapping[str, Any]] = json.loads((DATA / "siblings.json").read_text(encoding="utf-8"))
    asked = _timestamp(_FIRST + len(groups) * _BETWEEN_GROUPS)
    questions: dict[tuple[str, str], list[Question]] = {}
    memories: list[pb.Memory] = []
    for number, group in enumerate(groups):
        members = list(_members(group, _FIRST + number * _BETWEEN_GROUPS))
        memories += members
        is_versions = "v" in group
        wanted = members[-1:] if is_versions else members
        question = Question(
            id=group["id"],
            project=_PROJECT,
            text=group["q"],
            relevant=frozenset(each.id for each in wanted),
            as_of=asked,
        )
        key = "versions" if is_versions else "siblings", "code" if "lang" in group else "notes"
        questions.setdefault(key, []).append(question)
    return Corpus(
        name="siblings",
        projects={_PROJECT: tuple(sorted(memories, key=lambda each: each.create_time.ToNanoseconds()))},
        slices=tuple(
            Slice(set=set_name, name=way.named(kind), questions=tuple(of_kind), way=way)
            for (set_name, kind), of_kind in questions.items()
            for way in (AGENT, CODE if kind == "code" else CHAT)
        ),
    )


def _members(group: Mapping[str, Any], time: datetime) -> Iterator[pb.Memory]:
    """The memories of a group; versions from the oldest to the newest."""
    if "v" in group:
        texts, apart = group["v"], _BETWEEN_VERSIONS
        places = [(group.get("path", ""), group.get("symbol", ""))] * len(texts)
    elif "lang" in group:
        texts, apart = [text for _, _, text in group["r"]], _BETWEEN_SIBLINGS
        places = [(path, symbol) for path, symbol, _ in group["r"]]
    else:
        texts, apart = [group["m"].format(*row) for row in group["r"]], _BETWEEN_SIBLINGS
        places = [("", "")] * len(texts)
    last = len(texts) - 1
    for number, (text, (path, symbol)) in enumerate(zip(texts, places, strict=True)):
        # Versions end where siblings begin, so that the newest of every group is about as old.
        stored = time - (last - number) * apart if "v" in group else time + number * apart
        yield _memory(group, number, text, path, symbol, stored)


def _memory(group: Mapping[str, Any], number: int, text: str, path: str, symbol: str, time: datetime) -> pb.Memory:
    memory = pb.Memory(
        id=f"{group['id']}-{number}",
        kind=pb.MEMORY_KIND_NOTE,
        origin=pb.ORIGIN_MANUAL,
        title=group.get("title", ""),
        content=text,
        create_time=_timestamp(time),
    )
    if "lang" in group:
        memory.kind, memory.origin = pb.MEMORY_KIND_CODE_FRAGMENT, pb.ORIGIN_INDEXER
        memory.title = text.partition("\n")[0]
        fragment = pb.CodeFragment(path=path, symbol=symbol, language=group["lang"])
        memory.code_fragment.CopyFrom(fragment)
    return memory


def _timestamp(time: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp
