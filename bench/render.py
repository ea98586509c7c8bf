"""`python -m bench.render`: writing 50 candidates into 4,000 tokens, in process and without the recall (row 15)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import cast

from bench.asking import Latency, settled
from bench.command import Options, run_parts
from bench.corpus import NOW_S, Corpus
from bench.report import Findings, Row
from bench.stores import SEED
from hummock.core.memory import Memory, SecretPolicy
from hummock.core.project import ProjectInfo
from hummock.core.render import Locale, Quotas, RenderForm
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
    rows = [*_rows(EstimatedTokens(), turns, "tokens estimated", _ESTIMATED_MS)]
    skipped = []
    if file := next(iter(sorted(options.models_dir.glob("*/tokenizer.json"))), None):
        counter = CountedOnce(TokenizerTokens.from_file(file))
        rows += _rows(counter, turns, f"tokens counted by {file.parent.name}", _EXACT_MS)
    else:
        skipped.append(f"row 15, counting exactly: there is no tokenizer.json in {options.models_dir}")
    return Findings(part=PART, rows=tuple(rows), skipped=tuple(skipped), not_measured=NOT_MEASURED)


def _rows(counter: TokenCounter, turns: Sequence[tuple[Selected, ...]], how: str, limit_ms: float) -> Iterator[Row]:
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
        latency = Latency.of(times_s)
        note = f"{latency.line()}; {tokens // len(turns)} tokens"
        what = f"{_CANDIDATES} candidates within {_BUDGET_TOKENS:,} tokens as {form.name}, {how}; p50"
        is_usual = form is RenderForm.CONTEXT and limit_ms == _ESTIMATED_MS
        brief = f"{_CANDIDATES} Chinese memories written into {_BUDGET_TOKENS:,} tokens" if is_usual else ""
        yield Row.guide(15, what, limit_ms, latency.p50_ms, "ms", note=note, brief=brief)


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
    for prepared in preparation.prepare(request.project, drafts, SecretPolicy.REDACT):
        yield make_memory(prepared, None, chunk_count=1, now=NOW_S)


if __name__ == "__main__":
    run_parts((measure,), __doc__)
