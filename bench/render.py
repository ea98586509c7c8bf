"""`python -m bench.render`: writing 50 candidates into a prompt of 4,000 tokens, in process and without the recall."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from bench.command import Options, run_part
from bench.corpus import NOW_S, Corpus
from bench.inside import settled
from bench.latency import Latency
from bench.rows import Findings
from bench.stores import SEED
from hummock.core.memory import Memory
from hummock.core.project import ProjectInfo
from hummock.core.render import Locale, Quotas, RenderForm
from hummock.ports import Embedder
from hummock.render import FORMS, Frame, Selected, compose, marked, wording_of
from hummock.rpc.parse_memory import learn_command
from hummock.text.tokens import CountedOnce, EstimatedTokens, TokenCounter, TokenizerTokens
from hummock.usecases.learn import Preparation, make_memory
from hummock.v1 import context_service_pb2

PART = "render"
_CANDIDATES, _BUDGET_TOKENS = 50, 4000
_TURNS = 40
_NEW_A_TURN = 5
"""Of the candidates of a turn so many were not there in the turn before."""
NOT_MEASURED = (
    "the recall and the reading of payloads; the reply's way to the caller",
    "the exact counter where no tokenizer.json is among the models",
)


def measure(options: Options) -> Findings:
    """Every form by the estimate, and by a tokenizer.json where a model brings one; no two turns have the same 50."""
    turns = list(_turns())
    figures = [*_figures(EstimatedTokens(), turns, "estimate, target 2 ms")]
    skipped = []
    if file := next(iter(sorted(options.models_dir.glob("*/tokenizer.json"))), None):
        figures += _figures(CountedOnce(TokenizerTokens.from_file(file)), turns, f"{_model(file)}, target 10 ms")
    else:
        skipped.append(f"counting exactly: there is no tokenizer.json in {options.models_dir}")
    return Findings(part=PART, figures=tuple(figures), skipped=tuple(skipped), not_measured=NOT_MEASURED)


def _figures(counter: TokenCounter, turns: list[tuple[Selected, ...]], what: str) -> Iterator[tuple[str, str]]:
    for form in RenderForm:
        frame = Frame(
            wording=wording_of(Locale.ZH),
            budget_tokens=_BUDGET_TOKENS,
            counter=counter,
            info=ProjectInfo(path="/srv/bench"),
            as_of=NOW_S,
            quotas=Quotas(domains=_CANDIDATES, learning_records=_CANDIDATES, code_fragments=_CANDIDATES),
        )
        times_s, tokens = [], 0
        with settled():
            for selected in turns:
                started_s = time.perf_counter()
                section = compose(selected, (), frame, FORMS[form])
                marked(section.memories, selected, frame)
                times_s.append(time.perf_counter() - started_s)
                tokens += section.token_count
        yield f"{form.name}, {what}; {tokens // len(turns)} tokens", Latency.of(times_s).line()


def _turns() -> Iterator[tuple[Selected, ...]]:
    places = _CANDIDATES + _TURNS * _NEW_A_TURN
    memories = list(_memories(places))
    for turn in range(_TURNS):
        window = memories[turn * _NEW_A_TURN : turn * _NEW_A_TURN + _CANDIDATES]
        yield tuple(Selected(memory=one, score=0.9 - 0.01 * place) for place, one in enumerate(window))


def _memories(count: int) -> Iterator[Memory]:
    corpus = Corpus(size=count, seed=SEED)
    request = context_service_pb2.LearnRequest(project="bench", memories=map(corpus.memory, range(count)))
    # Nothing is embedded here.
    preparation = Preparation(cast(Embedder, None), EstimatedTokens(), make_id=str)
    for prepared in preparation.prepare([lesson.draft for lesson in learn_command(request).lessons]):
        yield make_memory(prepared, None, chunk_count=1, now=NOW_S)


def _model(file: Path) -> str:
    return file.parent.name


if __name__ == "__main__":
    run_part(measure, __doc__)
