"""`python -m bench.eval`: how good the answers are, by set, slice and path, for every model that is installed."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.eval import answers, summary
from bench.eval.answers import REPOSITORY, Answer, Place, arguments_parser, emb_space, installed, serving
from bench.eval.corpora import CORPORA, may_hold
from bench.eval.indexed import SetSkipped
from bench.eval.made import Half
from bench.eval.sets import Corpus, Slice
from bench.eval.summary import ModelRows, Row, changed_answers, changed_figures, committed, markdown, rows_of
from bench.machine import DIRTY, Machine
from bench.report import json_text
from bench.service import BenchFailed, Serving, say
from hummock.core.errors import HummockError

_SUMMARY = REPOSITORY / "bench" / "results" / "eval.json"


def main() -> None:
    """The command line: tables and what changed to stdout; what was asked in full goes into the summary too."""
    given = _arguments()
    try:
        models = given.model or installed(given.models_dir)
        if not models:
            raise BenchFailed(f"no model is installed in {given.models_dir}; `hummock models pull` fetches one")
        before = committed(_SUMMARY)
        for model in models:
            place = Place(directory=given.dir, models_dir=given.models_dir, model=model)
            found = _model_rows(place, given)
            print(markdown(found, (Half.TUNE, Half.REPORT, Half.ALL)))
            print("\n### Against the committed run\n")
            print("\n".join(f"- {line}" for line in changed_figures(before, found)), end="\n\n", flush=True)
            if given.limit is None:
                keep(found, installed(given.models_dir), _SUMMARY)
    except (BenchFailed, HummockError, OSError) as failed:
        sys.exit(f"error: {failed}")


def keep(found: ModelRows, names: Sequence[str], file: Path) -> None:
    """Puts what was found into the summary, alongside what other runs found; the default model comes first.

    Figures of code that no commit holds are not kept, and that is said.
    """
    if any(row.commit.endswith(DIRTY) for row in found.rows):
        say(f"{found.model}: {file} does not take these figures, for they are of changes that are not committed")
        return
    kept = summary.from_json(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else []
    models = summary.merged(kept, found)
    models.sort(key=lambda each: names.index(each.model) if each.model in names else len(names))
    file.parent.mkdir(exist_ok=True)
    file.write_text(json_text(summary.as_json(models)) + "\n", encoding="utf-8")
    say(f"{found.model}: {file} has these figures")


def _model_rows(place: Place, given: argparse.Namespace) -> ModelRows:
    rows: list[Row] = []
    space = ""
    for corpus in _corpora(given.shared, given.set):
        wanted = [each for each in corpus.slices if not given.set or given.set in (each.key, each.set, corpus.name)]
        if not wanted:
            continue
        with serving(place, corpus, say) as service:
            space = emb_space(service)
            for asked in wanted:
                rows.extend(_slice_rows(service, place, asked.limited(given.limit)))
    if not rows:
        raise BenchFailed(f"there is no set {given.set}; there are {', '.join(_keys(given.shared))}")
    return ModelRows(model=place.model, emb_space=space, rows=tuple(rows))


def _slice_rows(service: Serving, place: Place, asked: Slice) -> list[Row]:
    started_s = time.perf_counter()
    found: list[Answer] = list(answers.answers(service.channel, asked, say))
    path = place.directory / "answers" / place.model / f"{asked.key}.json"
    after = answers.as_json(found)
    for line in changed_answers(json.loads(path.read_text(encoding="utf-8")) if path.exists() else [], after):
        print(f"- {asked.key}, against the last run here, {line}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json_text(after) + "\n", encoding="utf-8")
    say(f"{asked.key}: asked in {time.perf_counter() - started_s:.0f} s; every answer is in {path}")
    return rows_of(asked, found, Machine.here(place.directory).commit)


def _keys(shared: Path) -> list[str]:
    return [each.key for corpus in _corpora(shared) for each in corpus.slices]


def _corpora(shared: Path, asked: str | None = None) -> Iterator[Corpus]:
    """Corpora that can be made here; the reason is printed for each that cannot."""
    for name, make in CORPORA.items():
        if not may_hold(name, asked):
            continue
        try:
            yield make(shared / "datasets")
        except SetSkipped as skipped:
            say(f"{name}: skipped, {skipped}")


def _arguments() -> argparse.Namespace:
    parser = arguments_parser(__doc__)
    parser.add_argument("--set", help="one set, corpus or slice, such as xquad-zh; unset: all")
    parser.add_argument("--limit", type=int, help="questions of each slice at most, always the same ones")
    given = parser.parse_args()
    given.dir.mkdir(parents=True, exist_ok=True)
    return given


if __name__ == "__main__":
    main()
