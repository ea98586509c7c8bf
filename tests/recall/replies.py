"""Whole replies to many recalls, as lines that can be compared: before and after a change of how they are computed.

`python -m tests.recall.replies OUT` writes one line a recall, of everything but times that were measured and the last
digits of a mean; `cmp` tells two such files apart. The memories and questions are those of our own that the evaluation
has; the conversations and texts of the shared folder come with them where they are. `--model` is a model's name in
`.demo/models`, `--store` the address of a PostgreSQL database.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from google.protobuf import text_format
from google.protobuf.timestamp_pb2 import Timestamp

from bench import toy_models
from bench.eval.sets import code, note, records
from bench.eval.talk import turns
from hummock_client.v1 import context_service_pb2 as context
from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from hummock_client.v1.admin_service_pb2 import GetStatusRequest
from tests.service import inputs
from tests.service.running import Stubs, in_thread, settings
from tests.shared import find_shared

DATA = Path(__file__).parents[2] / "bench" / "eval" / "data"
AS_OF = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
OURS, SHARED = "ours", "shared"

_MOST_SHARED = 400
_SEED = 20_260_304
_BATCH = 64

Ask = Callable[[recall.RecallRequest], None]


def _stamp(time: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp


def _rows(file: str) -> list[dict[str, str]]:
    with (DATA / file).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def our_memories() -> Iterator[pb.Memory]:
    """Facts, slips, talk of a session, versions of code, domains, records and entries, each with its time."""
    return _dated(_ours())


def _dated(memories: Iterable[pb.Memory]) -> Iterator[pb.Memory]:
    for place, memory in enumerate(memories):
        memory.id = memory.id or f"m{place}"
        if not memory.HasField("create_time"):
            memory.create_time.CopyFrom(_stamp(AS_OF - timedelta(hours=place)))
        yield memory


def _ours() -> Iterator[pb.Memory]:
    day = AS_OF - timedelta(days=90)
    for place, row in enumerate([*_rows("facts.tsv"), *_rows("spelling.tsv")]):
        time = _stamp(day + timedelta(hours=7 * place))
        yield inputs.note(row["text"], id=row["id"], create_time=time, tags=["odd" if place % 2 else "even"])
    names = ("Mia", "小林", "Ben Lee")
    for place, row in enumerate(_rows("noise.tsv")):
        time = _stamp(day + timedelta(minutes=3 * place))
        yield inputs.note(
            row["text"],
            id=f"turn-{row['id']}",
            origin=pb.ORIGIN_AI_OUTPUT if place % 2 else pb.ORIGIN_USER_INPUT,
            session_id=f"s{place // 30}",
            speaker=names[place % 3],
            create_time=time,
            event_time=time,
        )
    for place, row in enumerate(_rows("code_questions.tsv")):
        time = _stamp(day + timedelta(hours=place))
        text = f"def {row['symbol']}(value):\n    # {row['en']}\n    return parse_{row['symbol']}(value)"
        yield inputs.fragment(row["file"], row["symbol"], text, id=row["id"], create_time=time)
        if not place % 5:
            later = _stamp(day + timedelta(hours=place, days=20))
            newer = text.replace("value", "given")
            yield inputs.fragment(row["file"], row["symbol"], newer, id=f"{row['id']}-2", create_time=later)
        if not place % 7:
            yield inputs.record(row["zh"], f"{row['symbol']} 在 {row['file']}", row["file"], id=f"record-{row['id']}")
    yield inputs.domain(
        "还款", "先本后息、逾期与减免", aliases=("repayment",), key_files=("service/hummock/cli/output.py",)
    )
    yield inputs.domain("indexing", "How a folder is read, cut and kept up to date.", aliases=("索引",))
    for place in range(30):
        yield inputs.entry(
            f"entry-{place}", f"rule {place}", f"Rule {place}: 金额一律用 Decimal, never float, in case {place % 4}"
        )
    yield inputs.note("接口超时改为 30 秒", id="timeout-old", create_time=_stamp(day))
    yield inputs.note("接口超时改为 45 秒", id="timeout-new", supersedes=["timeout-old"], create_time=_stamp(AS_OF))


def our_questions() -> list[str]:
    """What is asked of them, in both languages, with slips, names, times and small talk."""
    asked = [row["paraphrase"] for row in _rows("facts.tsv")] + [row["question"] for row in _rows("spelling.tsv")]
    asked += [row[language] for row in _rows("code_questions.tsv") for language in ("zh", "en")]
    asked += [row["symbol"] for row in _rows("code_questions.tsv")[::3]]
    asked += [row["text"] for row in _rows("noise.tsv")[::2]]
    more = "还款|parseDate|先本后息的还款怎么算|接口超时是多少|昨天说了什么|what did Mia say last week|小林说了什么？"
    more += "|hi|谢谢|🦄|ab|中|indexing 怎么更新|when did I talk about 天气|上个月的会议|rule 3|C#|你推荐过什么书"
    return [text for text in asked + more.split("|") if text.strip()]


def shared_memories() -> Iterator[pb.Memory]:
    """Conversations of three people, functions and paragraphs of the shared folder; none where it is not there."""
    found = find_shared("datasets")
    if found is None:
        return
    for language in ("zh", "en"):
        for record in records(found / f"memorybank-zh-en/corpus.{language}.jsonl")[:_MOST_SHARED]:
            time = datetime.fromisoformat(record["day"]).replace(tzinfo=UTC) + timedelta(hours=12)
            for turn in turns(record, language, time):
                turn.id, turn.session_id = f"{language}-{turn.id}", f"{language}-{turn.session_id}"
                yield turn
        for record in records(found / f"xquad-en-zh/corpus.{language}.jsonl")[: _MOST_SHARED // 2]:
            yield note({**record, "_id": f"{language}-{record['_id']}"})
    for record in records(found / "cosqa-code/corpus.jsonl")[:_MOST_SHARED]:
        yield code(record)


def shared_questions() -> list[str]:
    """What the data sets ask, some hundred of each."""
    found = find_shared("datasets")
    if found is None:
        return []
    files = [f"memorybank-zh-en/queries.{each}.jsonl" for each in ("zh", "en")]
    files += [f"xquad-en-zh/queries.{each}.jsonl" for each in ("zh", "en")] + ["cosqa-code/queries.jsonl"]
    return [record["text"] for file in files for record in records(found / file)[:_MOST_SHARED:4]]


def _tuned(**values: float) -> Ask:
    def ask(asked: recall.RecallRequest) -> None:
        asked.tuning.MergeFrom(recall.RecallTuning(**values))  # type: ignore[arg-type]

    return ask


def _with(**values: object) -> Ask:
    return lambda asked: asked.MergeFrom(recall.RecallRequest(**values))  # type: ignore[arg-type]


def _filtered(**values: object) -> Ask:
    return lambda asked: asked.filter.MergeFrom(pb.MemoryFilter(**values))  # type: ignore[arg-type]


def _all(*asks: Ask) -> Ask:
    def ask(asked: recall.RecallRequest) -> None:
        for each in asks:
            each(asked)

    return ask


WAYS: Sequence[tuple[str, Ask]] = (
    ("agent", _with()),
    ("chat", _with(preset=recall.PRESET_CHAT)),
    ("code", _with(preset=recall.PRESET_CODE)),
    ("codex", _with(preset=recall.PRESET_CODEX)),
    ("in session", _with(preset=recall.PRESET_CHAT, session_id="s1")),
    ("in session, all", _all(_with(session_id="s0"), _tuned(window_turns=0))),
    ("many", _tuned(top_k=40, candidates=200)),
    ("vector", _with(paths=[recall.RECALL_PATH_VECTOR])),
    ("chat, vector", _with(preset=recall.PRESET_CHAT, paths=[recall.RECALL_PATH_VECTOR])),
    ("words", _with(paths=[recall.RECALL_PATH_KEYWORD])),
    ("substrings", _with(keyword_mode=recall.KEYWORD_MODE_SUBSTRING)),
    ("newest", _with(keyword_mode=recall.KEYWORD_MODE_SUBSTRING, paths=[recall.RECALL_PATH_KEYWORD])),
    ("kinds", _filtered(kinds=[pb.MEMORY_KIND_NOTE, pb.MEMORY_KIND_ENTRY])),
    ("sessions", _filtered(session_ids=["s0", "s2"])),
    ("tags", _filtered(tags=["odd"])),
    ("of", _filtered(speakers=["小林", "Mia"])),
    ("after", _filtered(created_after=_stamp(AS_OF - timedelta(days=80)))),
    ("decay", _tuned(decay_mode=recall.DECAY_MODE_EXPONENTIAL, half_life_days=30, decay_floor=0.2)),
    ("replaced", _with(include_superseded=True)),
    ("around", _with(context_window=2)),
    ("no late", _with(late_interaction=False)),
    ("raw", _with(view=pb.MEMORY_VIEW_RAW)),
    ("index", _with(view=pb.MEMORY_VIEW_INDEX)),
    ("similarity", _with(mmr_relevance=recall.MMR_RELEVANCE_SIMILARITY)),
    ("zone", _with(time_zone="Asia/Shanghai")),
    ("intent", _with(intent=recall.Intent(domains=["还款"], keywords=["parse"]))),
    ("relevance", _tuned(relevance_weight=1.0, near_twin_bar=0.9)),
    ("writers", _tuned(writer_cap=1)),
    ("bar", _all(_with(preset=recall.PRESET_CODE), _tuned(min_similarity=0.3, code_top_k=5, domain_top_k=2))),
    ("no times", _with(time_words=False)),
)
"""How a recall is asked, in turns; each name begins the lines of its recalls."""


def requests(
    project: str, questions: Iterable[str], dim: int, space: str
) -> Iterator[tuple[str, recall.RecallRequest]]:
    """The recalls with their names: each question in two ways, every fifth one with a vector of its own."""
    drawn = random.Random(_SEED)  # noqa: S311
    vectors = np.random.default_rng(_SEED)
    ways = itertools.cycle(WAYS)
    for place, text in enumerate(questions):
        for _ in range(2):
            name, ask = next(ways)
            asked = recall.RecallRequest(project=project, query_text=text)
            asked.as_of.CopyFrom(_stamp(AS_OF - timedelta(hours=drawn.randrange(48))))
            ask(asked)
            if not place % 5:
                vector = vectors.standard_normal(dim).astype(np.float32)
                vector /= np.linalg.norm(vector)
                asked.query_vector.CopyFrom(pb.Embedding(emb_space=space, values=vector.tobytes()))
            yield f"{project} {place} {name}", asked
        if not place % 7:
            next(ways)  # else a question meets the same ways whenever the list grows


def told(reply: recall.RecallResponse) -> str:
    """The reply in one line, without what differs from run to run."""
    told = recall.RecallResponse()
    told.CopyFrom(reply)
    told.receipt.ClearField("stages")
    told.receipt.ClearField("elapsed")
    for group in told.receipt.groups:
        if group.HasField("mean_cosine"):
            group.mean_cosine = round(group.mean_cosine, 5)
    for hit in itertools.chain(told.hits, told.code_fragments, told.domains):
        for memory in (hit.memory, *hit.before, *hit.after):
            memory.ClearField("update_time")
    return text_format.MessageToString(told, as_one_line=True, as_utf8=True)


def hits_of(reply: recall.RecallResponse) -> list[tuple[str, float]]:
    """The id and the score of each hit, group by group."""
    groups = (reply.hits, reply.code_fragments, reply.domains)
    return [(hit.memory.id, hit.score) for hit in itertools.chain(*groups)]


def fill(service: Stubs, project: str, memories: Iterable[pb.Memory]) -> None:
    """Teaches the memories, and verdicts on a few of them."""
    left = list(memories)
    for first in range(0, len(left), _BATCH):
        service.context.Learn(context.LearnRequest(project=project, memories=left[first : first + _BATCH]))
    judgements = (context.JUDGEMENT_HELPFUL, context.JUDGEMENT_WRONG, context.JUDGEMENT_NOT_HELPFUL)
    for place, memory in enumerate(left[3:40:6]):
        if memory.id:
            judged = context.FeedbackVerdict(memory_id=memory.id, judgement=judgements[place % len(judgements)])
            service.context.Feedback(context.FeedbackRequest(project=project, verdicts=[judged]))


def our_replies(service: Stubs) -> Iterator[tuple[str, recall.RecallResponse]]:
    """Each recall's name and its reply, of what is our own."""
    return _replies(service, OURS, our_memories(), our_questions())


def _replies(
    service: Stubs, project: str, memories: Iterable[pb.Memory], questions: Iterable[str]
) -> Iterator[tuple[str, recall.RecallResponse]]:
    fill(service, project, memories)
    model = service.admin.GetStatus(GetStatusRequest()).model
    for name, asked in requests(project, questions, model.dim, model.emb_space):
        yield name, service.context.Recall(asked)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", help="a model of .demo/models; the toy one without it")
    parser.add_argument("--store", help="address of a PostgreSQL database; LMDB without it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        data, models_dir = Path(directory) / "data", Path(directory) / "models"
        data.mkdir()
        models_dir.mkdir()
        model = given.model or toy_models.build_tiny(models_dir).name
        if given.model:
            models_dir = Path(".demo/models").resolve()
        chosen = settings(data, models_dir, model, store=given.store)
        with in_thread(chosen) as service, given.out.open("w", encoding="utf-8") as out:
            of_shared = _replies(service, SHARED, _dated(shared_memories()), shared_questions())
            for name, reply in itertools.chain(our_replies(service), of_shared):
                out.write(f"{name}: {told(reply)}\n")


if __name__ == "__main__":
    main()
