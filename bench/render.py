"""Part `render`: writing 50 candidates into 4,000 tokens, in process and without the recall."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from bench.asking import Latency, settled
from bench.command import Options
from bench.corpus import NOW_S, Corpus
from bench.goals import Headline
from bench.report import Findings, Row
from bench.stores import SEED
from hummock.core.memory import Memory
from hummock.core.project import ProjectInfo
from hummock.core.render import Locale, Quotas, RenderForm
from hummock.core.settings import ProjectSettings
from hummock.memories.preparation import Preparation, make_memory
from hummock.ports.models import Embedder
from hummock.render.compose import FORMS, compose, marked
from hummock.render.section import Frame, Selected, wording_of
from hummock.rpc.memory_messages import learn_command
from hummock.text.tokens import CountedOnce, EstimatedTokens, TokenCounter, TokenizerTokens
from hummock_client.v1 import context_service_pb2

PART = "render"
_CANDIDATES, _BUDGET_TOKENS = 50, 4000
_ESTIMATED_MS, _EXACT_MS = 1.2, 10.0
_TURNS = 40
_NEW_A_TURN = 5
"""Candidates of a turn that were not in the turn before."""
NOT_MEASURED = (
    "the recall and the reading of payloads; the reply's way to the caller",
    "the exact counter where no tokenizer.json is among the models",
)


def measure(options: Options) -> Findings:
    """Every form by the estimate, and by a tokenizer.json where a model brings one; no two turns have the same 50."""
    turns = list(_turns())
    estimated = {form: _written(EstimatedTokens(), turns, form) for form in RenderForm}
    rows = [_row(written, "tokens estimated", _ESTIMATED_MS) for written in estimated.values()]
    skipped = []
    if file := next(iter(sorted(options.models_dir.glob("*/tokenizer.json"))), None):
        counter, how = CountedOnce(TokenizerTokens.from_file(file)), f"tokens counted by {file.parent.name}"
        rows += [_row(_written(counter, turns, form), how, _EXACT_MS) for form in RenderForm]
    else:
        skipped.append(f"counting exactly: there is no tokenizer.json in {options.models_dir}")
    return Findings(
        part=PART,
        headlines=(Headline.of("render", estimated[RenderForm.CONTEXT].latency.p50_ms),),
        rows=tuple(rows),
        skipped=tuple(skipped),
        not_measured=NOT_MEASURED,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """Turns written in a form: the time of each, and their tokens on average."""

    form: RenderForm
    latency: Latency
    tokens: int


def _row(written: _Written, how: str, limit_ms: float) -> Row:
    what = f"{_CANDIDATES} candidates within {_BUDGET_TOKENS:,} tokens as {written.form.name}, {how}; p50"
    note = f"{written.latency.line()}; {written.tokens} tokens"
    return Row.guide(what, limit_ms, written.latency.p50_ms, "ms", note)


def _written(counter: TokenCounter, turns: Sequence[tuple[Selected, ...]], form: RenderForm) -> _Written:
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
    return _Written(form=form, latency=Latency.of(times_s), tokens=tokens // len(turns))


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
    drafts = [lesson.draft for lesson in learn_command(request).lessons]
    for prepared in preparation.prepare(request.project, drafts, ProjectSettings()):
        yield make_memory(prepared, None, chunk_count=1, now=NOW_S)
