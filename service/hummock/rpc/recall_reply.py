"""Replies to recalls as bytes: the hits are written once for each answer, all else once for each caller."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from struct import Struct
from typing import TYPE_CHECKING, Final

from hummock.core.candidates import FoundBy
from hummock.core.recall import Hit, ages_days
from hummock.rpc.memory_messages import memory_layout, memory_values
from hummock.rpc.message_tables import encode, table_of
from hummock.rpc.recall_messages import degradation_values, intent_values, receipt_values
from hummock.rpc.status import MAX_REPLY_BYTES, Spliced
from hummock_client.v1 import memory_pb2, recall_pb2
from hummock_kernels.messages import MARKED, written

if TYPE_CHECKING:
    from hummock.recall.cache import Answer

_TEXTS: Final = ("content", "raw", "learning_record", "domain_knowledge", "code_fragment", "text")
_ROOM_TO_SAY_SO_BYTES = 1024
_AGE = Struct("<d")

# A fragment of a key file is found through its domain.
_PATH_OF = (
    (FoundBy.VECTOR, recall_pb2.RECALL_PATH_VECTOR),
    (FoundBy.KEYWORD, recall_pb2.RECALL_PATH_KEYWORD),
    (FoundBy.DOMAIN | FoundBy.KEY_FILE, recall_pb2.RECALL_PATH_DOMAIN),
)
_PATHS_OF = tuple([path for flag, path in _PATH_OF if bits & flag] for bits in range(128))
_HIT = [("age_days", MARKED) if field.name == "age_days" else field.name for field in recall_pb2.Hit.DESCRIPTOR.fields]
_NO_HITS: Final[Sequence[Sequence[object]]] = ((), (), ())
_TABLES = [
    table_of(
        recall_pb2.RecallResponse.DESCRIPTOR,
        {memory_pb2.Memory.DESCRIPTOR: memory_layout(with_raw=with_raw), recall_pb2.Hit.DESCRIPTOR: _HIT},
    )
    for with_raw in (False, True)
]


def recall_reply(answer: Answer, *, with_raw: bool = False) -> Spliced:
    """The reply to one caller; a cached answer's hits get the caller's own ages.

    If not all texts fit, the best hits of each group keep theirs.
    """
    recalled, replies = answer.of.recalled, answer.of.replies
    groups = recalled.hits, recalled.code_fragments, recalled.domains
    if with_raw not in replies:
        values = [group and _hit_values(group) for group in groups]
        replies[with_raw] = written(encode(values), _TABLES[with_raw], sum(map(len, groups)))
    hits, ends = replies[with_raw]
    if answer.as_of is not None:
        hits = bytearray(hits)
        create_times = [hit.memory.create_time for group in groups for hit in group]
        for end, age in zip(ends, ages_days(create_times, answer.as_of), strict=True):
            _AGE.pack_into(hits, end - _AGE.size, age)
    degraded = recalled.degraded and degradation_values(recalled.degraded)
    told = intent_values(recalled.intent), receipt_values(answer.receipt()), degraded
    known = recalled.nothing_known
    nothing = known and (known.confidence, known.nearest_id, known.nearest_title, known.reason)
    sent, _ = written(encode((*_NO_HITS, *told, answer.seq, recalled.content_seq, nothing)), _TABLES[False])
    rest = recall_pb2.RecallResponse.FromString(sent)
    if len(hits) + rest.ByteSize() > MAX_REPLY_BYTES:
        return _without_texts(hits, rest)
    return Spliced(hits, rest)


def _hit_values(hits: Sequence[Hit]) -> list[tuple[object, ...]]:
    """The values of each hit's message, in the contract's order."""
    return [
        (
            (*memory, hit.superseded_by),
            hit.score,
            hit.similarity,
            hit.cosine,
            hit.keyword_score,
            _PATHS_OF[hit.found_by],
            hit.matched_terms,
            hit.age_days,
            hit.decay,
            hit.near_twin,
            hit.late_interaction_score,
            hit.before and memory_values(hit.before),
            hit.after and memory_values(hit.after),
            hit.time_match,
            hit.cross_encoder_score,
            [(one.asked, one.meant) for one in hit.corrections],
            hit.verdict,
            hit.helpful_count,
            hit.wrong_count,
            hit.over_writer_cap,
            hit.likely_replaced_by,
        )
        for hit, memory in zip(hits, memory_values([hit.memory for hit in hits]), strict=True)
    ]


def _without_texts(hits: bytes | bytearray, rest: recall_pb2.RecallResponse) -> Spliced:
    """The reply without the texts of as many hits as needed, the worst of each group first; it says so."""
    reply = recall_pb2.RecallResponse.FromString(bytes(hits))
    excess = reply.ByteSize() + rest.ByteSize() - MAX_REPLY_BYTES
    if excess <= 0:  # it fits without ages of 0, which `hits` keeps room for
        return Spliced(reply.SerializeToString(), rest)
    excess += _ROOM_TO_SAY_SO_BYTES
    groups = [list(reply.hits), list(reply.code_fragments), list(reply.domains)]
    # Groups give way in turns, so that each keeps its best.
    worst_first = [hit for row in zip_longest(*(reversed(group) for group in groups)) for hit in row if hit is not None]
    cut = 0
    for hit in worst_first:
        if excess <= 0:
            break
        before = hit.ByteSize()
        for memory in (hit.memory, *hit.before, *hit.after):
            for field in _TEXTS:
                memory.ClearField(field)
        excess -= before - hit.ByteSize()
        cut += 1
    told = recall_pb2.RecallResponse()
    told.CopyFrom(rest)
    told.degraded.add(
        part=recall_pb2.DEGRADED_PART_TEXTS,
        reason=recall_pb2.DEGRADATION_REASON_REPLY_LIMIT,
        message=f"the texts of {cut} of {len(worst_first)} hits were left out, for the reply would be too large; "
        "ask for fewer hits or the INDEX view, and read what is missing by BatchGetMemories",
    )
    return Spliced(reply.SerializeToString(), told)
