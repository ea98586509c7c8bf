"""`python -m bench.eval.replacements`: which notes the service proposes as replaced, and how many of them are.

Asked of the set `changes`, of pairs of ours of which a half replaces nothing though it tells a change of the same thing
(`data/replacements.tsv`), of pairs of which a third gives the same thing another day, time, place or number
(`data/rescheduled.tsv`), and of sets in which nothing is replaced.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from bench.eval.answers import Place, arguments_parser, installed, serving
from bench.eval.changes import told_at
from bench.eval.corpora import CORPORA
from bench.eval.made import Half, half_of
from bench.eval.noise import facts, rows
from bench.eval.sets import Corpus
from bench.service import BenchFailed, Serving, say
from hummock.core.errors import HummockError
from hummock_client.v1 import memory_pb2
from hummock_client.v1 import memory_service_pb2 as pb
from hummock_client.v1.memory_service_pb2_grpc import MemoryServiceStub

_SETS = ("changes", "facts", "siblings", "diary", "talk-zh", "talk-en")
_PAIRS = ("replacements", "rescheduled")
_BETWEEN_OLD_AND_NEW = timedelta(days=70)
_CALL_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """What was proposed of a set: ids of the newer and the older note."""

    name: str
    memories: int
    found: tuple[tuple[str, str], ...]
    wanted: frozenset[tuple[str, str]]

    def row(self, half: Half | None = None) -> str:
        """A row of the table, of one half of the newer notes or of all."""
        found = [pair for pair in self.found if half is None or half_of(pair[0]) == half]
        wanted = [pair for pair in self.wanted if half is None or half_of(pair[0]) == half]
        right = len(self.wanted.intersection(found))
        precision = f"{right / len(found):.2f}" if found else "-"
        recall = f"{right / len(wanted):.2f}" if wanted else "-"
        part = "" if half is None else f", half {half.name}"
        return f"| {self.name}{part} | {self.memories} | {len(found)} | {right} | {precision} | {recall} |"


def pairs_of(name: str, datasets: Path) -> Corpus:
    """Pairs that replace, and pairs that do not, in two projects, between the facts of `facts`; `name` is a file's."""
    (between,) = facts(datasets).projects.values()
    told: dict[str, list[memory_pb2.Memory]] = {"replaces": [*between], "keeps": [*between]}
    for place, (pair, old, later, verdict) in enumerate(rows(f"{name}.tsv")):
        told[verdict] += [
            told_at(f"{pair}-old", old, place),
            told_at(f"{pair}-new", later, place, _BETWEEN_OLD_AND_NEW),
        ]
    projects = {f"{name}-{verdict}": tuple(each) for verdict, each in told.items()}
    return Corpus(name=name, projects=projects, slices=())


def measured(place: Place, corpus: Corpus) -> Iterator[Proposals]:
    """The proposals for each project of a corpus, or for all of them where nothing is to be found."""
    with serving(place, corpus, say) as service:
        found = {project: tuple(proposed(service, project)) for project in corpus.projects}
    if corpus.name not in _PAIRS:
        told = [memory.id for memories in corpus.projects.values() for memory in memories]
        together = tuple(pair for pairs in found.values() for pair in pairs)
        yield Proposals(name=corpus.name, memories=len(told), found=together, wanted=_wanted(corpus.name, told))
        return
    for project, pairs in found.items():
        told = [memory.id for memory in corpus.projects[project]]
        yield Proposals(name=project, memories=len(told), found=pairs, wanted=_wanted(project, told))


def proposed(service: Serving, project: str) -> Iterator[tuple[str, str]]:
    """All proposals for a project."""
    request = pb.ListReviewRequest(project=project, kind=pb.REVIEW_KIND_REPLACEMENT)
    stub = MemoryServiceStub(service.channel)
    while True:
        page = stub.ListReview(request, timeout=_CALL_S)
        for one in page.replacements:
            say(f"{one.newer.content} <- {one.older.content}")
            yield one.newer.id, one.older.id
        request.page_token = page.next_page_token
        if not request.page_token:
            return


def _wanted(name: str, ids: list[str]) -> frozenset[tuple[str, str]]:
    if name != "changes" and not name.endswith("-replaces"):
        return frozenset()
    return frozenset((one, f"{one.removesuffix('-new')}-old") for one in ids if one.endswith("-new"))


def main() -> None:
    """The command line: a table to stdout."""
    given = arguments_parser(__doc__).parse_args()
    corpora = [
        *(CORPORA[name](given.shared / "datasets") for name in _SETS),
        *(pairs_of(name, given.shared) for name in _PAIRS),
    ]
    try:
        for model in given.model or installed(given.models_dir):
            place = Place(directory=given.dir, models_dir=given.models_dir, model=model)
            print(
                f"{model}\n\n| set | memories | proposed | right | precision | recall |\n|---|---:|---:|---:|---:|---:|"
            )
            for corpus in corpora:
                for one in measured(place, corpus):
                    print(one.row())
                    if one.wanted:
                        print(*map(one.row, (Half.TUNE, Half.REPORT)), sep="\n")
    except (BenchFailed, HummockError, OSError) as failed:
        sys.exit(f"error: {failed}")


if __name__ == "__main__":
    main()
