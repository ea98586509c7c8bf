"""Questions of a conversation with their answers: neither says much to a model without the other.

What answers a question often shares no word with it, so that a recall may find the question alone; a preset may leave
out what the model said. The question would take room and tell nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from msgspec import structs

from hummock.core.memory import Memory
from hummock.core.recall import RecallQuery
from hummock.ports.store import Exchange, Snapshot
from hummock.recall.plan import apply_settings, joins_paths, window_of
from hummock.recall.prefer import LATER_S
from hummock.recall.query_features import echo_hashes
from hummock.render.section import Selected
from hummock.render.turn import Source
from hummock.text.likeness import echo_and_stem
from hummock.text.questions import asks

_NONE = Exchange()
_BEARS = 0.35
"""Least score of a hit that is rather an answer than noise: unrelated ones of made chats have .2 to .33."""


def with_answers(source: Source, query: RecallQuery, project: Snapshot) -> Source:
    """The source with the answer of each shown question, and the question of each short answer, side by side.

    A pair has the place of the better one. What the query or the project's settings exclude is not brought, but for
    the origins that the preset would leave out. Results of one path alone stay as they are (1.1-10).
    """
    if not joins_paths(query):
        return source
    query, _ = apply_settings(query, project.settings)
    window = window_of(query)
    # A turn that repeats the query is not shown, its answer is.
    first = project.replies_to(echo_hashes(query.text), query.filter, window)
    said = [item.memory.id for item in source.selected if item.memory.session_id and not item.drawback]
    exchanges = dict(zip(said, project.exchanges(said, query.filter, window) if said else (), strict=True))
    selected = _side_by_side(first, source.selected, exchanges, echo_and_stem(query.text)[0])
    shown = {item.memory.id for item in selected}
    return replace(
        source,
        selected=selected,
        left_out=tuple([item for item in source.left_out if item.memory.id not in shown]),
        nothing_known=None if first else source.nothing_known,
        says_so=source.says_so and not first,
    )


def _side_by_side(
    first: Sequence[Memory], selected: Sequence[Selected], exchanges: Mapping[str, Exchange], asked: str
) -> tuple[Selected, ...]:
    """The memories in `first`, the others with what belongs to each, and those with a drawback.

    `asked` is the form of the user's text in which echoes are compared.
    """
    given = {item.memory.id: item for item in selected}
    placed: dict[str, Selected] = {}
    first, items = _by_age(first, selected)
    for memory in first:
        _place(placed, given, memory)
    for item in items:
        exchange = exchanges.get(item.memory.id)
        if exchange is None:
            if not item.drawback:
                placed.setdefault(item.memory.id, item)
            continue
        question = exchange.question
        # The user's own text need not be repeated to the model.
        if question is not None and item.memory.id not in placed and not _is_echo(question, asked):
            _place(placed, given, question, answer_id=item.memory.id)
        _place(placed, given, item.memory, answer_id=exchange.answer_id)
        for reply in exchange.replies:
            _place(placed, given, reply)
    rest = [item for item in items if item.memory.id not in placed]
    return (*placed.values(), *rest)


def _by_age(replies: Sequence[Memory], selected: Sequence[Selected]) -> tuple[Sequence[Memory], Sequence[Selected]]:
    """The replies to the query's very words that come first, and the hits, the best one before the other replies.

    It is before what was replied earlier than it was told, where it bears on the query and asks nothing.
    """
    given = {item.memory.id: item for item in selected}
    own = {reply.id for reply in replies}
    best = next((item for item in selected if item.memory.id not in own and not item.drawback), None)
    if not replies or best is None or (best.score or 0.0) < _BEARS or asks(_text(best.memory)):
        return replies, selected
    told_at = best.memory.create_time - LATER_S
    outdated = [
        structs.replace(given.get(reply.id) or Selected(memory=reply, score=best.score), drawback="")
        for reply in replies
        if reply.create_time <= told_at
    ]
    moved = {best.memory.id, *[item.memory.id for item in outdated]}
    if len(moved) == 1:
        return replies, selected
    others = [item for item in selected if item.memory.id not in moved]
    return [reply for reply in replies if reply.id not in moved], [best, *outdated, *others]


def _place(placed: dict[str, Selected], given: Mapping[str, Selected], memory: Memory, answer_id: str = "") -> None:
    """Put a memory behind those placed so far, unless it is among them; a question learns of its answer either way."""
    item = placed.get(memory.id) or given.get(memory.id) or Selected(memory=memory)
    placed[memory.id] = structs.replace(item, drawback="", answer_id=answer_id or item.answer_id)


def _is_echo(memory: Memory, asked: str) -> bool:
    return echo_and_stem(_text(memory))[0] == asked


def _text(memory: Memory) -> str:
    return "" if memory.payload is None else memory.payload.content


def answered(items: Sequence[Selected], shown: Set[str]) -> set[str]:
    """The ids in `shown` without those of questions whose answers are not among them.

    Items of earlier turns do not know their answers; those follow them, since they were recalled with them.
    """
    kept = set(shown)
    for place, item in enumerate(items):
        following = items[place + 1 : place + 2] if asks(_text(item.memory)) else ()
        answer_id = item.answer_id or next((one.memory.id for one in following), "")
        if answer_id and answer_id not in shown:
            kept.discard(item.memory.id)
    return kept


def with_replies(
    first: Sequence[Memory], selected: Sequence[Selected], exchanges: Mapping[str, Exchange], most: int
) -> list[Selected]:
    """The memories with the replies that are missing, at most `most`.

    Args:
        first: Replies to the query's own words: before all others, with the best score, or 1 where nothing else was
            found; behind a best hit that was told later.
        selected: Best first.
        exchanges: By the question's id; each reply comes behind its question and has its score.
        most: Limit on the result. Where it cuts a question off from its answer, the answer takes the question's place.
    """
    first, items = _by_age(first, selected)
    given = {item.memory.id for item in items}
    best = items[0].score if items else 1.0
    out = [Selected(memory=reply, score=best) for reply in first if reply.id not in given][:most]
    given.update(item.memory.id for item in out)
    for item in items:
        exchange = exchanges.get(item.memory.id, _NONE)
        missing = [reply for reply in exchange.replies if reply.id not in given]
        given.update(reply.id for reply in missing)
        group = [item, *[Selected(memory=reply, score=item.score) for reply in missing]]
        room = most - len(out)
        if len(group) > room and missing:
            group = [one for one in group if one.memory.id == exchange.answer_id] or group
        out += group[:room]
    return out
