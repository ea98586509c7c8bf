"""Replies to recalls as bytes: each hit is joined from the bytes of its memory and its numbers.

Protobuf joins what stands one behind the other, so a reply equals the message that is built field by field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from struct import Struct
from typing import TYPE_CHECKING, Final

from hummock.core.candidates import FoundBy
from hummock.core.recall import Hit, Recalled
from hummock.recall.plan import SECONDS_A_DAY
from hummock.rpc.memory_messages import memory_bytes
from hummock.rpc.recall_messages import degradations, intent, receipt
from hummock.rpc.status import MAX_REPLY_BYTES, Spliced
from hummock_client.v1 import memory_pb2, recall_pb2

if TYPE_CHECKING:
    from hummock.recall.cache import Answer

_TEXTS: Final = ("content", "raw", "learning_record", "domain_knowledge", "code_fragment", "text")
_ROOM_TO_SAY_SO_BYTES = 1024

_SCORES, _RARE_SCORES, _AGE = Struct("<BdBdBdBdBdHd"), Struct("<BdBdBd"), Struct("<Bd")
"""Numbers of a hit, each behind the byte or two that begin its field; 0 is written as well."""

# A fragment of a key file is found through its domain.
_PATH_OF = (
    (FoundBy.VECTOR, recall_pb2.RECALL_PATH_VECTOR),
    (FoundBy.KEYWORD, recall_pb2.RECALL_PATH_KEYWORD),
    (FoundBy.DOMAIN | FoundBy.KEY_FILE, recall_pb2.RECALL_PATH_DOMAIN),
)
_PATHS_OF = tuple(
    recall_pb2.Hit(paths=[path for flag, path in _PATH_OF if bits & flag]).SerializeToString() for bits in range(128)
)
_HITS, _CODE, _DOMAINS, _MEMORY, _AGE_TAG = b"\x0a", b"\x12", b"\x1a", b"\x0a", 0x41
"""The bytes that begin a group's hit in a reply, and the memory and the age in a hit: field number and wire type."""


def recall_reply(answer: Answer, *, with_raw: bool = False) -> Spliced:
    """The reply to one caller. An answer is written once; a cached one gets the caller's own ages and receipt.

    If not all texts fit, the best hits of each group keep theirs.
    """
    replies = answer.of.replies
    if with_raw not in replies:
        replies[with_raw] = _written(answer.of.recalled, with_raw=with_raw)
    written = replies[with_raw]
    hits: bytes | bytearray = written.hits
    reply = written.rest
    if answer.is_cached or answer.project_settings:
        reply = recall_pb2.RecallResponse()
        reply.CopyFrom(written.rest)
        reply.receipt.project_settings.extend(answer.project_settings)
    if answer.is_cached:
        reply.seq = answer.seq
        told = reply.receipt
        told.cached = True
        del told.stages[:]
        told.elapsed.FromNanoseconds(round(answer.elapsed_s * 1e9))
        told.stages.add(stage=recall_pb2.RECALL_STAGE_CACHE, elapsed=told.elapsed)
        if answer.as_of is not None:
            told.as_of.FromMicroseconds(round(answer.as_of * 1e6))
            hits = bytearray(hits)
            for end, create_time in written.ages:
                age_days = max(0.0, (answer.as_of - create_time) / SECONDS_A_DAY)
                _AGE.pack_into(hits, end - _AGE.size, _AGE_TAG, age_days)
    if len(hits) + reply.ByteSize() > MAX_REPLY_BYTES:
        return _without_texts(hits, reply)
    return Spliced(hits, reply)


@dataclass(frozen=True, slots=True)
class _Written:
    """An answer as it is sent.

    Attributes:
        hits: The fields of all groups. Each hit ends with its age, so that it can be replaced.
        ages: The end of each hit in them, and its memory's create time in Unix seconds.
        rest: All else.
    """

    hits: bytes
    ages: tuple[tuple[int, float], ...]
    rest: recall_pb2.RecallResponse


def _written(recalled: Recalled, *, with_raw: bool) -> _Written:
    rest = recall_pb2.RecallResponse(
        intent=intent(recalled.intent),
        receipt=receipt(recalled.receipt),
        degraded=degradations(recalled.degraded),
        seq=recalled.seq,
        content_seq=recalled.content_seq,
    )
    groups = ((_HITS, recalled.hits), (_CODE, recalled.code_fragments), (_DOMAINS, recalled.domains))
    parts: list[bytes] = []
    ages: list[tuple[int, float]] = []
    end = 0
    for tag, hits in groups:
        for hit, sent in zip(hits, _hits(hits, with_raw=with_raw) if hits else (), strict=True):
            nbytes = sum(map(len, sent))
            length = _varint(nbytes)
            parts += (tag, length, *sent)
            end += len(tag) + len(length) + nbytes
            ages.append((end, hit.memory.create_time))
    return _Written(b"".join(parts), tuple(ages), rest)


def _hits(hits: Sequence[Hit], *, with_raw: bool) -> list[tuple[bytes, ...]]:
    """The bytes of each hit in parts: its memory, its numbers, what few hits have, and its age."""
    sent: list[tuple[bytes, ...]] = []
    terms: dict[tuple[str, ...], bytes] = {}
    for hit, memory in zip(hits, memory_bytes([hit.memory for hit in hits], with_raw=with_raw), strict=True):
        if hit.matched_terms not in terms:
            terms[hit.matched_terms] = recall_pb2.Hit(matched_terms=hit.matched_terms).SerializeToString()
        if hit.superseded_by:
            memory += memory_pb2.Memory(superseded_by=hit.superseded_by).SerializeToString()
        late, time_match, cross = hit.late_interaction_score, hit.time_match, hit.cross_encoder_score
        told = hit.near_twin, hit.over_writer_cap, hit.helpful_count, hit.wrong_count, hit.corrections
        scores = _SCORES.pack(
            0x11, hit.score, 0x19, hit.similarity, 0x21, hit.cosine, 0x29, hit.keyword_score, 0x49, hit.decay,
            0x0189, hit.verdict,
        )  # fmt: skip # fields and values in pairs
        sent.append(
            (
                _MEMORY,
                _varint(len(memory)),
                memory,
                scores,
                _PATHS_OF[hit.found_by],
                terms[hit.matched_terms],
                _RARE_SCORES.pack(0x59, late, 0x71, time_match, 0x79, cross) if late or cross or time_match else b"",
                _rare(hit, with_raw=with_raw) if hit.before or hit.after or any(told) else b"",
                _AGE.pack(_AGE_TAG, hit.age_days),
            )
        )
    return sent


def _rare(hit: Hit, *, with_raw: bool) -> bytes:
    """What few hits have: marks, verdicts, corrections and the memories beside it."""
    rare = recall_pb2.Hit(
        near_twin=hit.near_twin,
        over_writer_cap=hit.over_writer_cap,
        helpful_count=hit.helpful_count,
        wrong_count=hit.wrong_count,
        corrections=[recall_pb2.Correction(asked=one.asked, meant=one.meant) for one in hit.corrections],
    )
    for messages, memories in ((rare.before, hit.before), (rare.after, hit.after)):
        for memory in memory_bytes(memories, with_raw=with_raw):
            messages.add().MergeFromString(memory)
    return rare.SerializeToString()


@lru_cache(maxsize=4096)
def _varint(number: int) -> bytes:
    """A number from 0 as protobuf writes it: seven bits a byte, the lowest first."""
    return bytes((number,)) if number < 128 else bytes((number & 127 | 128,)) + _varint(number >> 7)


def _without_texts(hits: bytes | bytearray, rest: recall_pb2.RecallResponse) -> Spliced:
    """The reply without the texts of as many hits as needed, the worst of each group first; it says so."""
    reply = recall_pb2.RecallResponse.FromString(bytes(hits))
    excess = reply.ByteSize() + rest.ByteSize() - MAX_REPLY_BYTES
    if excess <= 0:  # without the zeros it fits
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
