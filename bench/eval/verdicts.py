"""`python -m bench.eval.verdicts`: what verdicts do to answers, by how many voices there are.

Questions of XQuAD are asked once. A verdict is a factor of the score, so what any number of voices does to an answer
follows from its hits: those above the right one are called WRONG, or the right one is, falsely, or the second is called
HELPFUL for another question. The figures are printed and not kept: the numbers are chosen once (decision 044).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.eval.answers import Place, arguments_parser, request, serving
from bench.eval.made import Half, half_of
from bench.eval.sets import xquad
from bench.eval.ways import RecallPath
from bench.service import BenchFailed, say
from hummock.core.errors import HummockError
from hummock.recall.evidence import DOUBT, DOUBT_OF_WRONG, MOST_GAIN, MOST_LOSS
from hummock_client.v1.context_service_pb2_grpc import ContextServiceStub

VOICES = (1, 2, 3, 5, 10, 32)
LOSSES = (0.2, MOST_LOSS, 0.6)
LANGUAGES = ("zh", "en")
_HITS = 10
_QUESTIONS = 300
"""Largest number of questions of a slice."""
_CALL_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """An answer: scores of its hits, best first, and the place of the right one."""

    half: Half
    scores: tuple[float, ...]
    right: int


def first_after(answer: Ranked, places: Iterable[int], factor: float) -> bool:
    """True if the right hit comes first once these hits have this factor; equal scores keep their order."""
    scores = np.array(answer.scores)
    scores[[at for at in places if at < len(scores)]] *= factor
    return int(np.argmax(scores)) == answer.right


def wrong(voices: int, most_loss: float) -> float:
    """The factor of so many voices that said WRONG."""
    return 1 - most_loss * voices / (voices + DOUBT_OF_WRONG)


def helpful(voices: int) -> float:
    """The factor of so many voices that said HELPFUL."""
    return 1 + MOST_GAIN * voices / (voices + DOUBT)


def rows(answers: Sequence[Ranked]) -> list[str]:
    """A line for each number of voices and each bound: shares that are repaired and that are lost."""
    lines = ["| WRONG takes | voices | wrong first hit gives way | right first hit, falsely accused, stays first |"]
    lines.append("|---:|---:|---:|---:|")
    behind = [each for each in answers if each.right > 0]
    first = [each for each in answers if each.right == 0]
    for most_loss in LOSSES:
        for voices in VOICES:
            factor = wrong(voices, most_loss)
            repaired = [first_after(each, range(each.right), factor) for each in behind]
            kept = [first_after(each, [0], factor) for each in first]
            lines.append(f"| {most_loss} | {voices} | {np.mean(repaired):.3f} | {np.mean(kept):.3f} |")
    lines += ["", "| HELPFUL for something else, second hit | right first hit stays first |", "|---:|---:|"]
    for voices in VOICES:
        kept = [first_after(each, [1], helpful(voices)) for each in first]
        lines.append(f"| {voices} | {np.mean(kept):.3f} |")
    return lines


def asked(place: Place, datasets: Path, language: str) -> list[Ranked]:
    """The answers about one language's paragraphs whose first hits hold the right one. Raises: BenchFailed."""
    corpus = xquad(datasets, language)
    found: list[Ranked] = []
    with serving(place, corpus, say) as service:
        recall = ContextServiceStub(service.channel).Recall
        questions = [each for slice_of in corpus.slices for each in slice_of.limited(_QUESTIONS).questions]
        for question in questions:
            hits = recall(request(question, RecallPath.RERANKED), timeout=_CALL_S).hits[:_HITS]
            right = [at for at, hit in enumerate(hits) if hit.memory.id in question.relevant]
            if right:
                scores = tuple(hit.score for hit in hits)
                found.append(Ranked(half=half_of(question.id), scores=scores, right=right[0]))
    return found


def main() -> None:
    """The command line: tables to stdout, for each half of the questions."""
    given = arguments_parser(__doc__).parse_args()
    given.dir.mkdir(parents=True, exist_ok=True)
    try:
        for model in given.model or ["bge-small-zh-v1.5+all-MiniLM-L6-v2"]:
            place = Place(directory=given.dir, model=model, models_dir=given.models_dir)
            answers = [one for language in LANGUAGES for one in asked(place, given.shared / "datasets", language)]
            for half in (Half.TUNE, Half.REPORT):
                of_half = [each for each in answers if each.half is half]
                print(f"\n{model}, {half}: {len(of_half)} answers that hold the right paragraph\n")
                print("\n".join(rows(of_half)))
    except (BenchFailed, HummockError, OSError) as failed:
        sys.exit(f"error: {failed}")


if __name__ == "__main__":
    main()
