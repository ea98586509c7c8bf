"""Likely reads of a group of writes from a project, sent before its transaction begins.

An engine with a round trip for each read fetches it all with the first one. It is a guess: what is not foreseen is read
when it is asked for, and what nobody asks for is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from hummock.ports.writes import ProjectRemoval, WriteRequest
from hummock.store.tables import keys
from hummock.store.tables.engine import Foreseen
from hummock.store.tables.term_dictionary import TermDictionaries
from hummock.store.views.forward_lists import unknown_terms

_TRIMMED = ("ops", "request_age")
"""Tables in which each write looks for outdated entries, as in the vectors that all projects have retired."""


def foreseen(
    jobs: Sequence[tuple[str, WriteRequest[Any] | ProjectRemoval]], dictionaries: TermDictionaries
) -> dict[str, Foreseen]:
    """By project what its writes will read.

    Args:
        jobs: Projects and what is to be written to them.
        dictionaries: The writer's, whose terms need no look.
    """
    by_project: dict[str, list[WriteRequest[Any]]] = {}
    for project, request in jobs:
        if isinstance(request, WriteRequest):
            by_project.setdefault(project, []).append(request)
    return {
        project: partial(_of_number, project, some, dictionaries, is_first=not place)
        for place, (project, some) in enumerate(by_project.items())
    }


def _of_number(
    project: str, requests: Sequence[WriteRequest[Any]], dictionaries: TermDictionaries, number: int, *, is_first: bool
) -> tuple[Mapping[str, Sequence[bytes]], Mapping[str, Sequence[bytes]]]:
    lookups = [one.lookups for one in requests if one.lookups is not None]
    terms = [each for one in lookups for each in one.terms()]
    prefix = keys.project_prefix(number)
    wanted = {
        "settings": [prefix],
        "request": keys.name_keys(number, [one.request_id for one in requests if one.request_id]),
        "by_id": _distinct(keys.name_keys(number, list(chain.from_iterable(one.ids for one in lookups)))),
        "session": _distinct(keys.name_keys(number, list(chain.from_iterable(one.session_ids for one in lookups)))),
        "term": _distinct(keys.name_keys(number, unknown_terms(terms, dictionaries.of(project, number)))),
    }
    texts = [
        keys.text_prefix(number, text)
        for one in lookups
        for key in one.texts
        for text in (keys.text_bytes(key), *keys.earlier_text_bytes(key))
    ]
    starts = {"by_text": _distinct(texts), **{name: [prefix] for name in _TRIMMED}}
    if is_first:
        starts["retired_age"] = [b""]
    return wanted, {name: some for name, some in starts.items() if some}


def _distinct(several: Sequence[bytes]) -> list[bytes]:
    return list(dict.fromkeys(several))
