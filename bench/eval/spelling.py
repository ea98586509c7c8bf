"""Questions as people type them: with a slip of the pen, in pinyin, in the other characters (set `spelling`).

All 86 memories are one project, so that each question finds the others in its way; 14 hold what misspelt questions have
besides. Texts and questions are ours (`data/spelling.tsv`): a question holds little besides the word in question, and
half of them nothing else.
"""

from __future__ import annotations

from pathlib import Path

from bench.eval.noise import rows
from bench.eval.sets import Corpus, Question, Slice
from bench.eval.ways import CHAT, Way
from hummock_client.v1 import memory_pb2 as pb

_KINDS = ("typos", "pinyin", "traditional")
_PROJECT = "spelling"
_WAYS = (Way(is_shipped=True), CHAT)
"""Ways to ask: under AGENT each path alone as well, to see what words find."""


def spelling(_: Path) -> Corpus:
    """Each kind of question is a slice, asked under AGENT, by each path, and under CHAT."""
    told = rows("spelling.tsv")
    slices = []
    for kind in _KINDS:
        questions = tuple(
            Question(id=id_, project=_PROJECT, text=question, relevant=frozenset({id_}))
            for id_, of_kind, _, question in told
            if of_kind == kind
        )
        slices += [Slice(set=_PROJECT, name=way.named(kind), questions=questions, way=way) for way in _WAYS]
    memories = tuple(
        pb.Memory(id=id_, kind=pb.MEMORY_KIND_NOTE, origin=pb.ORIGIN_USER_INPUT, content=text)
        for id_, _, text, _ in told
    )
    return Corpus(name=_PROJECT, projects={_PROJECT: memories}, slices=tuple(slices))
