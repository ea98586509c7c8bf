"""Questions of a conversation and what was replied to them, by position, speaker and traits of the turns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np

from hummock.core.candidates import SessionWindow
from hummock.core.memory import Filter, Origin
from hummock.store.search.filters import Flags, last_turns, passing
from hummock.store.tables.reads import TableProject
from hummock.store.tables.row_codec import id_hash
from hummock.store.views.columns import Columns
from hummock.store.views.view import ProjectView
from hummock.text.questions import Trait

MOST_AHEAD: Final = 4
"""Turns after a question in which its answer is looked for: one counter-question with its reply may lie between."""

_FIRST_REPLY: Final = 2
"""An answer begins at most so many turns after its question, as where recall ranks (`hummock_kernels.rank`)."""

MOST_REPEATS: Final = 3
"""Turns with the same text, the newest, whose replies are looked for."""

LONGEST_COUNTER_QUESTION: Final = 16
"""Terms of a reply that asks, up to which it is a counter-question and no answer: "for how many?", 几个人？"""

LONGEST_ELLIPTICAL: Final = 48
"""Terms of an answer that may mean nothing without its question. A longer one stands by itself."""

_ASKING: Final = int(Trait.ASKS | Trait.ASKS_WITHIN)


class ExchangeDocs(NamedTuple):
    """Document numbers of the question that a turn answers, of the replies to the turn itself, and of its answer."""

    question: int | None = None
    replies: tuple[int, ...] = ()
    answer: int | None = None


class Replies(NamedTuple):
    """Replies to a turn, and the one among them that answers it; -1 if there are none."""

    turns: list[int]
    answer: int


NO_EXCHANGE: Final = ExchangeDocs()


def exchange_docs(
    view: ProjectView, stored: TableProject, memory_ids: Sequence[str], where: Filter, window: SessionWindow | None
) -> list[ExchangeDocs]:
    """What belongs to each of these turns, in order; see `ports.Snapshot.exchanges`. Raises: Outdated."""
    if not view.columns.turns.has_any:
        return [NO_EXCHANGE] * len(memory_ids)
    turns = _Turns(view, _shown(view, stored, where, window))
    return [turns.around(memory_id) for memory_id in memory_ids]


def replies_to(
    view: ProjectView, stored: TableProject, text_hashes: Collection[int], where: Filter, window: SessionWindow | None
) -> list[int]:
    """Document numbers of the replies to turns with one of these texts; see `ports.Snapshot.replies_to`."""
    columns = view.columns
    is_same = np.isin(columns.text_hash, np.fromiter(text_hashes, np.uint64)) & (columns.alive != 0)
    newest_first = np.flatnonzero(is_same & (columns.session_position >= 0))[::-1]
    if not len(newest_first):
        return []
    turns = _Turns(view, _shown(view, stored, where, window))
    found = [
        reply for turn in newest_first[:MOST_REPEATS].tolist() for reply in turns.replies(turn, is_asked=True).turns
    ]
    return [int(columns.doc[reply]) for reply in dict.fromkeys(found)]


def last_said(view: ProjectView, stored: TableProject, window: SessionWindow) -> list[int]:
    """Document numbers of what the user said in a window of a session, newest first."""
    turns = last_turns(view, window, stored)
    is_users = view.columns.origin[turns.ordinals] == Origin.USER_INPUT
    newest_first = np.argsort(turns.turns_ago[is_users], kind="stable")
    docs: list[int] = view.columns.doc[turns.ordinals[is_users][newest_first]].tolist()
    return docs


def _shown(view: ProjectView, stored: TableProject, where: Filter, window: SessionWindow | None) -> Flags:
    """(memories,) uint8, 1 for those that may be shown: what is replaced or in the window is not."""
    allowed, _ = last_turns(view, window, stored).left_out(passing(view, where, stored))
    superseded = view.superseded(stored)
    return allowed if superseded is None else allowed & superseded.current


class _Turns:
    """The turns of a view; `allowed` are those that may be shown."""

    def __init__(self, view: ProjectView, allowed: Flags) -> None:
        self._columns: Columns = view.columns
        self._allowed = allowed

    def around(self, memory_id: str) -> ExchangeDocs:
        columns = self._columns
        same_hash = np.flatnonzero((columns.id_hash == np.uint64(id_hash(memory_id))) & (columns.alive != 0))
        own = next((one for one in same_hash.tolist() if columns.ids[one] == memory_id), None)
        if own is None:
            return NO_EXCHANGE
        question, (turns, answer) = self._question(own), self.replies(own)
        return ExchangeDocs(
            question=None if question is None else int(columns.doc[question]),
            replies=tuple(columns.doc[turns].tolist()),
            answer=int(columns.doc[answer]) if turns else None,
        )

    def _question(self, turn: int) -> int | None:
        """The question that a short turn answers."""
        if self._columns.length[turn] > LONGEST_ELLIPTICAL:
            return None
        at = turn
        for _ in range(MOST_AHEAD):
            at = self._beside(at, 0)
            if at < 0:
                return None
            if turn in self.replies(at).turns:
                return at if self._allowed[at] else None
        return None

    def replies(self, asked: int, *, is_asked: bool = False) -> Replies:
        """The turns after a question up to its answer, and further while the last one asks; none if it asks nothing.

        Turns that the asker adds before the first reply are left out. All that are returned may be shown. With
        `is_asked` the turn counts as a question, however it is written.
        """
        turns: list[int] = []
        answer, at = -1, asked
        is_awaited = is_asked or bool(self._columns.traits[asked] & _ASKING)
        for ahead in range(1, (MOST_AHEAD if is_awaited else 0) + 1):
            at = self._beside(at, 1)
            if at < 0 or (not turns and ahead > _FIRST_REPLY):
                break
            is_reply = self._is_reply(at, asked, ahead)
            if not (turns or is_reply):
                continue
            if not self._allowed[at]:
                break
            turns.append(at)
            if answer < 0 and is_reply and not self._asks_back(at):
                answer = at
            if answer >= 0 and not self._columns.traits[at] & Trait.ASKS:
                break
        return Replies(turns, answer if answer >= 0 or not turns else turns[-1])

    def _asks_back(self, turn: int) -> bool:
        columns = self._columns
        return bool(columns.traits[turn] & Trait.ASKS and columns.length[turn] <= LONGEST_COUNTER_QUESTION)

    def _is_reply(self, turn: int, asked: int, ahead: int) -> bool:
        """Whether another one has said it; where speakers are unknown, the next turn counts as a reply."""
        columns = self._columns
        if columns.origin[turn] != columns.origin[asked]:
            return True
        if columns.speaker[turn] and columns.speaker[asked]:
            return bool(columns.speaker[turn] != columns.speaker[asked])
        return ahead == 1

    def _beside(self, turn: int, step: int) -> int:
        """The turn before (0) or after (1) one in its session; -1 if there is none."""
        return int(self._columns.neighbours(np.array([turn], np.int64))[0, step])
