"""`python -m bench.eval.learning`: what turns teach a service that has no language model, asked through the service.

Chinese questions about English paragraphs: some are observed as turns whose answers used the right paragraph, the
others are asked before and after.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.eval.answers import REPOSITORY, arguments_parser, emb_space, installed, request
from bench.eval.made import draw
from bench.eval.metrics import Judged, recall, wilson
from bench.eval.sets import Question, records, xquad
from bench.eval.ways import RecallPath
from bench.machine import DIRTY, Machine
from bench.report import json_text
from bench.service import Bench, BenchFailed, Serving, say
from hummock.core.errors import HummockError
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import learning_pb2, memory_pb2
from hummock_client.v1 import learning_service_pb2 as pb
from hummock_client.v1.context_service_pb2_grpc import ContextServiceStub
from hummock_client.v1.learning_service_pb2_grpc import LearningServiceStub

TURNS = 200
CUTS = (1, 5, 10)

_RESULTS = REPOSITORY / "bench" / "results" / "learning.json"
_BATCH_MEMORIES = 32
_CALL_S = 600.0
_SCAN_EVERY = 50
_DIGITS = 4
_ABOUT = (
    f"{TURNS} Chinese questions are observed with the English paragraph that answers each; all others are asked by all "
    f"paths before and after. All entries are read after every {_SCAN_EVERY} turns, so that no figure depends on how "
    "fast the machine is. The interval is Wilson's 95 % of recall at 5 after the turns"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """Observed questions, and the questions to ask by slice, of which none was observed."""

    name: str
    observed: tuple[Question, ...]
    asked: Mapping[str, tuple[Question, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRow:
    """Recall of a slice before and after the turns.

    Attributes:
        lesson: How many paragraphs were observed in how many questions each.
        before: Recall at 1, 5 and 10.
        after: Recall at 1, 5 and 10 after the turns.
        interval5: 95 % of recall at 5 after.
        won: Questions whose paragraph came among the first 5; lost: those whose paragraph left them.
    """

    model: str
    lesson: str
    slice: str
    queries: int
    before: tuple[float, ...]
    after: tuple[float, ...]
    interval5: tuple[float, float]
    won: int
    lost: int
    emb_space: str
    commit: str


def lessons(datasets: Path) -> list[Lesson]:
    """One question of each of 200 paragraphs, and two of each of 100."""
    (same, across) = xquad(datasets, "en").slices
    titles = {each["_id"]: each["title"] for each in records(datasets / "xquad-en-zh" / "corpus.en.jsonl")}
    return [_lesson(across.questions, same.questions, titles, per_paragraph) for per_paragraph in (1, 2)]


def _lesson(
    chinese: Sequence[Question], english: Sequence[Question], titles: Mapping[str, str], per_paragraph: int
) -> Lesson:
    by_paragraph: dict[str, list[Question]] = {}
    for question in sorted(chinese, key=lambda each: draw(f"observed:{each.id}")):
        by_paragraph.setdefault(_paragraph(question), []).append(question)
    enough = [name for name, questions in by_paragraph.items() if len(questions) > per_paragraph]
    chosen = sorted(enough, key=lambda name: draw(f"paragraph:{name}"))[: TURNS // per_paragraph]
    observed = [question for name in chosen for question in by_paragraph[name][:per_paragraph]]
    ids, articles = {each.id for each in observed}, {titles[name] for name in chosen}
    others = [each for each in chinese if _paragraph(each) not in chosen]
    return Lesson(
        name=f"{len(chosen)} paragraphs x {per_paragraph}",
        observed=tuple(sorted(observed, key=lambda each: draw(f"turn:{each.id}"))),
        asked={
            "zh, observed": tuple(each for each in chinese if _paragraph(each) in chosen and each.id not in ids),
            "zh, not observed": tuple(others),
            "zh, not observed, article observed": tuple(
                each for each in others if titles[_paragraph(each)] in articles
            ),
            "zh, not observed, nor the article": tuple(
                each for each in others if titles[_paragraph(each)] not in articles
            ),
            "en, observed": tuple(each for each in english if _paragraph(each) in chosen),
            "en, not observed": tuple(each for each in english if _paragraph(each) not in chosen),
        },
    )


def _paragraph(question: Question) -> str:
    (name,) = question.relevant
    return name


def measure(service: Serving, model: str, lesson: Lesson, datasets: Path, commit: str) -> Iterator[LearningRow]:
    """Teaches one lesson in a project of its own. Raises: BenchFailed."""
    project = f"lesson {lesson.name}"
    _store(service, project, datasets)
    before = {name: _judged(service, project, questions) for name, questions in lesson.asked.items()}
    _teach(service, project, lesson)
    for name, questions in lesson.asked.items():
        after = _judged(service, project, questions)
        if not questions:
            continue
        hits = [(recall(one, 5), recall(other, 5)) for one, other in zip(before[name], after, strict=True)]
        low, high = wilson(sum(now for _, now in hits), len(hits))
        yield LearningRow(
            model=model,
            lesson=lesson.name,
            slice=name,
            queries=len(questions),
            before=_recalls(before[name]),
            after=_recalls(after),
            interval5=(round(low, _DIGITS), round(high, _DIGITS)),
            won=sum(now > was for was, now in hits),
            lost=sum(now < was for was, now in hits),
            emb_space=emb_space(service),
            commit=commit,
        )


def _store(service: Serving, project: str, datasets: Path) -> None:
    (memories,) = xquad(datasets, "en").projects.values()
    entries = []
    for memory in memories:
        entry = memory_pb2.Memory()
        entry.CopyFrom(memory)
        entry.kind = memory_pb2.MEMORY_KIND_ENTRY
        entries.append(entry)
    learn = ContextServiceStub(service.channel).Learn
    for start in range(0, len(entries), _BATCH_MEMORIES):
        batch = entries[start : start + _BATCH_MEMORIES]
        learn(context.LearnRequest(project=project, memories=batch), timeout=_CALL_S)


def _teach(service: Serving, project: str, lesson: Lesson) -> None:
    stub = LearningServiceStub(service.channel)
    pause_s = learning_pb2.LearningSettings()
    pause_s.cold_start_pause.FromSeconds(0)
    stub.UpdateLearningSettings(
        pb.UpdateLearningSettingsRequest(project=project, enabled=True, settings=pause_s), timeout=_CALL_S
    )
    for number, question in enumerate(lesson.observed, start=1):
        stub.ObserveTurn(
            pb.ObserveTurnRequest(
                project=project,
                turn=number,
                user_text=question.text,
                assistant_text=question.id,
                used_memory_ids=[_paragraph(question)],
            ),
            timeout=_CALL_S,
        )
        if number % _SCAN_EVERY == 0 or number == len(lesson.observed):
            _read_all(stub, project)


def _read_all(stub: LearningServiceStub, project: str) -> None:
    wanted = pb.LearnKeywordsRequest(project=project, scope=pb.SCAN_SCOPE_ALL)
    *_, last = stub.LearnKeywords(wanted, timeout=_CALL_S)
    if last.end != pb.SCAN_END_DONE:
        raise BenchFailed(f"the entries were not all read: {last.reason}")


def _judged(service: Serving, project: str, questions: Sequence[Question]) -> list[Judged]:
    ask = ContextServiceStub(service.channel).Recall
    judged = []
    for question in questions:
        reply = ask(request(replace(question, project=project), RecallPath.RERANKED), timeout=_CALL_S)
        if reply.degraded:
            raise BenchFailed(f"{question.id}: {reply.degraded[0].message}")
        judged.append(Judged.of(tuple(hit.memory.id for hit in reply.hits), question.relevant))
    return judged


def _recalls(judged: Sequence[Judged]) -> tuple[float, ...]:
    return tuple(round(sum(recall(one, cut) for one in judged) / len(judged), _DIGITS) for cut in CUTS)


def as_json(rows: Sequence[LearningRow]) -> dict[str, Any]:
    """The committed form."""
    return {"about": _ABOUT, "cuts": CUTS, "rows": [asdict(row) for row in rows]}


def from_json(values: Mapping[str, Any]) -> list[LearningRow]:
    """Rows of the committed form."""
    lists = ("before", "after", "interval5")
    return [LearningRow(**{**row, **{name: tuple(row[name]) for name in lists}}) for row in values["rows"]]


def markdown(rows: Sequence[LearningRow]) -> str:
    """A table for people: recall at 1, 5 and 10, before and after."""
    lines = ["| model | observed | slice | n | before | after | won, lost at 5 |", "|---|---|---|---:|---|---|---|"]
    for row in rows:
        before, after = (" / ".join(f"{value:.3f}" for value in values) for values in (row.before, row.after))
        lines.append(
            f"| {row.model} | {row.lesson} | {row.slice} | {row.queries} | {before} | {after} | {row.won}, {row.lost} |"
        )
    return "\n".join(lines)


def main() -> None:
    """The command line: a table to stdout, and the rows into bench/results/learning.json."""
    given = arguments_parser(__doc__).parse_args()
    given.dir.mkdir(parents=True, exist_ok=True)
    commit = Machine.here(given.dir).commit
    try:
        models = given.model or installed(given.models_dir)
        rows = [row for model in models for row in _model_rows(given, model, commit)]
    except (BenchFailed, HummockError, OSError) as failed:
        sys.exit(f"error: {failed}")
    print(markdown(rows))
    keep(rows, installed(given.models_dir), _RESULTS)


def keep(rows: Sequence[LearningRow], names: Sequence[str], file: Path) -> None:
    """Puts rows into the committed file in place of their models' earlier ones; models stand in the order of names.

    Figures of code that no commit holds are not kept, and that is said.
    """
    if any(row.commit.endswith(DIRTY) for row in rows):
        say("not kept, for these figures are of changes that are not committed")
        return
    known = from_json(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else []
    measured = {row.model for row in rows}
    kept = [*(row for row in known if row.model not in measured), *rows]
    kept.sort(key=lambda row: names.index(row.model) if row.model in names else len(names))
    file.write_text(json_text(as_json(kept)) + "\n", encoding="utf-8")


def _model_rows(given: argparse.Namespace, model: str, commit: str) -> Iterator[LearningRow]:
    directory = given.dir / "learning" / model
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    datasets = given.shared / "datasets"
    with Bench.prepare(directory, model, given.models_dir).serving() as service:
        for lesson in lessons(datasets):
            say(f"{model}: {lesson.name}")
            yield from measure(service, model, lesson, datasets, commit)


if __name__ == "__main__":
    main()
