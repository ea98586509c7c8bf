"""Memories far longer than the model's window, through the socket."""

from __future__ import annotations

import random

import pytest

from hummock_client.v1 import memory_pb2 as pb
from hummock_client.v1 import recall_pb2 as recall
from tests.service.calls import ask, learn
from tests.service.inputs import note
from tests.service.running import Stubs

PROJECT = "long-memories"
LONG_BYTES = 200_000
NEEDLES = {
    "first": "The lighthouse keeper wrote that the northern lamp burns whale oil.",
    "middle": "潮汐木芯只在满月的夜里从退潮的礁石上采下来。",
    "last": "The cathedral's bell was cast by a goldsmith from Antwerp.",
}
WORDS = "ledger column invoice amount monthly balance entry total account period sum transfer batch".split()  # noqa: SIM905 - reads as words


def long_text() -> str:
    """Sentences about book-keeping, with one about something else at the beginning, in the middle and at the end."""
    rng = random.Random(7)  # noqa: S311 - a seed, not a secret
    sentences = []
    size = 0
    while size < LONG_BYTES:
        sentences.append(" ".join(rng.choices(WORDS, k=14)) + ".")
        size += len(sentences[-1]) + 1
    sentences[0] = NEEDLES["first"]
    sentences[len(sentences) // 2] = NEEDLES["middle"]
    sentences[-1] = NEEDLES["last"]
    return "\n".join(sentences)


@pytest.fixture(scope="module")
def filled(service: Stubs) -> pb.Memory:
    """A project with one long memory between short ones; gives the long one."""
    learn(service, PROJECT, note(long_text(), id="long"))
    learn(service, PROJECT, *(note(f"short note {number} about gardening and tomatoes") for number in range(30)))
    return ask(service, PROJECT, "ledger invoice").hits[0].memory


def test_a_long_memory_is_one_memory_of_many_chunks(filled: pb.Memory) -> None:
    """S4-55: chunking."""
    assert filled.id == "long"
    assert filled.chunk_count > 50


@pytest.mark.parametrize(
    ("where", "query"),
    [
        ("first", "lighthouse keeper whale oil lamp"),
        ("middle", "潮汐木芯怎么采"),
        ("last", "who cast the bell of the cathedral"),
    ],
)
@pytest.mark.usefixtures("filled")
def test_any_part_of_a_long_memory_finds_it_as_one_hit(service: Stubs, where: str, query: str) -> None:
    """S4-55: a memory scores as its best chunk and is one hit."""
    hits = ask(service, PROJECT, query).hits
    assert hits[0].memory.id == "long"
    assert NEEDLES[where] in hits[0].memory.content
    assert [hit.memory.id for hit in hits].count("long") == 1


@pytest.mark.usefixtures("filled", "real_models")
def test_a_long_memory_is_as_similar_as_its_best_part(service: Stubs) -> None:
    """S4-55, S4-25: the cosine is that of the nearest chunk, not of the mean of all."""
    paths = [recall.RECALL_PATH_VECTOR]
    hits = ask(service, PROJECT, NEEDLES["last"], paths=paths, top_k=1).hits
    assert hits[0].memory.id == "long"
    assert hits[0].cosine > 0.25
