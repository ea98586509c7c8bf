"""Learns keywords from observed turns, without a language model."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from threading import Lock
from typing import Final

from hummock.core.learning import (
    MAX_KEYWORD_CHARACTERS,
    FeedbackGiven,
    Forgotten,
    Judgement,
    KeywordUpdate,
    Learner,
    LoggedEvent,
    TurnObserved,
)
from hummock.learning.entry_keywords import MAX_NEW_KEYWORDS
from hummock.learning.recurring import UserText, log_likelihood_ratio, recurring
from hummock.ports.models import EntryText, KeywordQuestion
from hummock.ports.store import Store
from hummock.text.analyzer import document_terms, query_terms
from hummock.text.keywords import phrases
from hummock.text.normalise import prose
from hummock.text.word_lists import EVERYDAY_WORDS

LEAST_EVIDENCE: Final = 10.83
"""Log-likelihood ratio from which a term may be a hint of an entry; one term in a thousand reaches it by chance."""

LEAST_SHARE: Final = 0.9
"""Least share of the turns that hold a term in which the entry was used."""

MOST_CHARACTERS: Final = 2000
"""Most characters of a turn's text that are read."""

WINDOW_EVENTS: Final = 6000
"""Newest events of a project's log that are counted; a turn is two or three."""
MAX_PROJECTS: Final = 64
"""Projects whose counts are cached; others are counted again from their logs."""
MOST_DUE: Final = 20

_PAGE: Final = 500
_DIGEST_BYTES = 16
_LENGTH_WORTH = 0.1


class LearnOffline:
    """`ports.KeywordLearner` by counting. Its state is a function of the newest events of a project's log."""

    kind = Learner.OFFLINE

    def __init__(self, store: Store) -> None:
        self._store = store
        self._projects: OrderedDict[str, _Project] = OrderedDict()
        self._lock = Lock()

    def due(self, project: str) -> tuple[str, ...]:
        """Return the entries of turns since the last call, newest first, then some of the others in rotation.

        Old words about an entry may become evidence as more is said about other things.
        """
        with self._lock:
            return self._current(project).due()

    def keywords(self, question: KeywordQuestion) -> tuple[KeywordUpdate, ...]:
        """Return the new words of each entry.

        After a turn, entries without new words count as unread, since checking them again is cheap.
        """
        with self._lock:
            observed = self._current(question.project).observed
            found = [observed.of(entry) for entry in question.entries]
        return tuple(update for update in found if update.has_words or not question.user_text)

    def _current(self, project: str) -> _Project:
        """The project's counts, with all that its log holds by now."""
        known = self._projects.pop(project, None) or _Project()
        while events := self._store.read_learning(
            project, lambda learning: learning.events(known.after(learning.state().events), _PAGE)
        ):
            known.follow(events)
        self._projects[project] = known
        if len(self._projects) > MAX_PROJECTS:
            self._projects.popitem(last=False)
        return known


class _Project:
    def __init__(self) -> None:
        self.observed = Observed()
        self._last = 0
        self._newest: OrderedDict[str, None] = OrderedDict()
        self._others: deque[str] = deque()

    def after(self, events: int) -> int:
        """Return the event number to continue after, in a log of this length."""
        return max(self._last, events - WINDOW_EVENTS)

    def follow(self, events: Sequence[LoggedEvent]) -> None:
        """Counts the next events."""
        for logged in events:
            match logged.event:
                case TurnObserved(user_text=text, used_ids=used_ids):
                    self._count(logged.number, text, used_ids)
                case FeedbackGiven(query_text=text, verdicts=verdicts):
                    useful = tuple(verdict.memory_id for verdict in verdicts if verdict.judgement is Judgement.HELPFUL)
                    self._count(logged.number, text, useful)
                case Forgotten(memory_ids=memory_ids):
                    self.observed.forget(memory_ids)
        self._last = events[-1].number
        self.observed.drop_before(self._last - WINDOW_EVENTS + 1)

    def due(self) -> tuple[str, ...]:
        """Entries that were used since it was asked last, the newest first, then others; at most MOST_DUE."""
        newest = tuple(reversed(self._newest))[:MOST_DUE]
        self._newest.clear()
        room = MOST_DUE - len(newest)
        if not self._others:
            self._others.extend(self.observed.memory_ids)
        others = [self._others.popleft() for _ in range(min(room, len(self._others)))]
        return tuple(dict.fromkeys((*newest, *others)))

    def _count(self, number: int, text: str, used_ids: tuple[str, ...]) -> None:
        self.observed.add(number, text, used_ids)
        for memory_id in used_ids:
            self._newest[memory_id] = None
            self._newest.move_to_end(memory_id)


@dataclass(frozen=True, slots=True, eq=False)
class _Turn(UserText):
    number: int
    used_ids: tuple[str, ...]
    key: bytes


@dataclass(slots=True, eq=False)
class _Uses:
    """The turns of one entry, and how many of them hold each term."""

    turns: deque[_Turn] = field(default_factory=deque)
    counts: Counter[str] = field(default_factory=Counter)


class Observed:
    """The last turns of a project that have a text. Not thread-safe."""

    def __init__(self) -> None:
        self._turns: deque[_Turn] = deque()
        self._keys: set[bytes] = set()
        self._counts: Counter[str] = Counter()
        self._uses: dict[str, _Uses] = {}

    @property
    def turn_count(self) -> int:
        """Turns that count."""
        return len(self._turns)

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """Return entries used by turns, in order of first use."""
        return tuple(self._uses)

    def add(self, number: int, text: str, used_ids: Iterable[str]) -> None:
        """Count a turn, whose number is greater than all before; repeats of one text for the same entries count once.

        `text` is the user's or a query; the answer is based on the used entries, or they were helpful.
        """
        said, used = text[:MOST_CHARACTERS], tuple(sorted(set(used_ids)))
        key = _key(said, used)
        terms = frozenset(query_terms(said))
        if not terms or key in self._keys:
            return
        turn = _Turn(said, terms, number, used, key)
        self._turns.append(turn)
        self._keys.add(key)
        self._counts.update(terms)
        for memory_id in used:
            uses = self._uses.setdefault(memory_id, _Uses())
            uses.turns.append(turn)
            uses.counts.update(terms)

    def drop_before(self, number: int) -> None:
        """Forgets the turns of smaller numbers."""
        while self._turns and self._turns[0].number < number:
            turn = self._turns.popleft()
            self._keys.remove(turn.key)
            _subtract(self._counts, turn.terms)
            for memory_id in turn.used_ids:
                uses = self._uses.get(memory_id)
                if uses is None or uses.turns[0] is not turn:
                    continue  # the entry was forgotten since
                uses.turns.popleft()
                _subtract(uses.counts, turn.terms)
                if not uses.turns:
                    del self._uses[memory_id]

    def forget(self, memory_ids: Iterable[str]) -> None:
        """Forgets which turns used these entries: another one may get an id of theirs."""
        for memory_id in memory_ids:
            self._uses.pop(memory_id, None)

    def of(self, entry: EntryText) -> KeywordUpdate:
        """Return an entry's new keywords and hints, the best supported first, within MAX_NEW_KEYWORDS together.

        Keywords recur in different turns (`recurring`). Hints are phrases from single turns, made of terms that occur
        so often in the entry's turns and so seldom in others that chance does not explain it. Terms of its own title or
        text are not new.
        """
        uses = self._uses.get(entry.memory_id)
        if uses is None:
            return KeywordUpdate(memory_id=entry.memory_id, keywords=())
        own = frozenset((*document_terms(entry.title), *document_terms(entry.text)))
        room = max(0, MAX_NEW_KEYWORDS - len(entry.keywords))
        keywords = tuple(_without_parts(self._recurring(uses, own), entry.keywords))[:room]
        known = (*entry.keywords, *entry.hints, *keywords)
        room = max(0, MAX_NEW_KEYWORDS - len(known))
        hints = tuple(_without_parts(self._hints(uses, own), known))[:room]
        return KeywordUpdate(memory_id=entry.memory_id, keywords=keywords, hints=hints)

    def _recurring(self, uses: _Uses, own: frozenset[str]) -> list[str]:
        turns = tuple(uses.turns)
        mine = set(map(id, turns))

        def others_with(terms: frozenset[str]) -> int:
            # Usually one of the terms occurs only in the entry's turns.
            if any(self._counts[term] == uses.counts[term] for term in terms):
                return 0
            return sum(terms <= turn.terms and id(turn) not in mine for turn in self._turns)

        return recurring(turns, own, len(self._turns) - len(turns), others_with)

    def _hints(self, uses: _Uses, own: frozenset[str]) -> list[str]:
        evidence = {term: self._evidence(term, uses) for term in uses.counts if term not in own}

        def belongs(term: str) -> bool:
            return evidence.get(term, 0.0) >= LEAST_EVIDENCE

        found = {phrase for turn in uses.turns for phrase in phrases(turn.text, belongs)}
        worth = {phrase: _worth(phrase, evidence) for phrase in found if len(phrase) <= MAX_KEYWORD_CHARACTERS}
        return sorted(worth, key=lambda phrase: (-worth[phrase], phrase))

    def _evidence(self, term: str, uses: _Uses) -> float:
        """Return the log-likelihood ratio of term and entry; 0 if the term occurs too often elsewhere.

        An everyday word counts only if it recurs.
        """
        both = uses.counts[term]
        elsewhere = self._counts[term] - both
        if both < LEAST_SHARE * (both + elsewhere) or (both == 1 and term in EVERYDAY_WORDS):
            return 0.0
        without = len(uses.turns) - both
        return log_likelihood_ratio(both, elsewhere, without, len(self._turns) - both - elsewhere - without)


def _key(text: str, used_ids: tuple[str, ...]) -> bytes:
    parts = "\0".join((prose(text), *used_ids))
    return blake2b(parts.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def _subtract(counts: Counter[str], terms: frozenset[str]) -> None:
    for term in terms:
        counts[term] -= 1
        if not counts[term]:
            del counts[term]


def _worth(phrase: str, evidence: dict[str, float]) -> float:
    """Worth of a phrase: the mean evidence of its terms; of two with the same evidence the longer one says more."""
    terms = query_terms(phrase)
    return sum(evidence[term] for term in terms) / len(terms) + _LENGTH_WORTH * len(phrase)


def _without_parts(phrases_found: list[str], known: tuple[str, ...]) -> list[str]:
    """Drop phrases that are part of an earlier one or of a known keyword, ignoring case."""
    news: list[str] = []
    whole = [prose(keyword) for keyword in known]
    for phrase in phrases_found:
        folded = prose(phrase)
        if not any(folded in longer for longer in whole):
            whole.append(folded)
            news.append(phrase)
    return news
