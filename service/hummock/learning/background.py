"""Background learning: no call waits for it or fails because of it."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Thread

from hummock.core.errors import places_of
from hummock.core.learning import Learner
from hummock.core.learning_requests import EntryLearnt, EntryOutcome, ScanEnd, ScanProgress, ScanScope
from hummock.learning.learn_keywords import LearnKeywords
from hummock.ports.models import Clock, LearnerFailed
from hummock.ports.writes import Claim, ClaimLost, Claims, Work

MAX_WAITING_PROJECTS = 256
"""With a turn that waits to be learnt from; of more than these, the turn that has waited longest is dropped."""
FAILURES = 3
"""Failures in a row after which a scan ends."""

_END_S = 5.0
_HELD_S = 1.0
"""Between two looks at a project where another service learns."""
_REASONS = {
    ScanEnd.DONE: "",
    ScanEnd.NO_LEARNER: "no learner is configured, so that nothing was read; set llm, and ask for all entries then",
    ScanEnd.OFF: "learning is off in this project",
    ScanEnd.FAILING: f"the learner failed {FAILURES} times in a row; ask again to go on with the entries that are left",
}
_NO_COLD_START = (
    "entries without keywords are not read, for no language model is configured; set llm, and ask for them then "
    "(LearnKeywords, hummock learning run)"
)
_log = logging.getLogger(__name__)


class Scan:
    """A scan of a project's entries, as seen by its watchers. Guarded by its owner's lock.

    Attributes:
        waiting: Entries still to read.
        learnt: Outcomes of the others.
        end: Why it ended; None while it runs.
        due_s: Time to read the next entry.
        claim: Claim for reading entries; None while another service has it.
        asked_at: Number of events in the project's log at the last request for entries.
    """

    def __init__(self, lock: Condition) -> None:
        self._lock = lock
        self.waiting: OrderedDict[str, None] = OrderedDict()
        self.learnt: list[EntryLearnt] = []
        self.end: ScanEnd | None = None
        self.due_s = 0.0
        self.claim: Claim | None = None
        self.asked_at = 0

    def since(self, read: int) -> ScanProgress:
        """Return the progress after the first `read` outcomes."""
        with self._lock:
            return ScanProgress(
                total=len(self.learnt) + len(self.waiting),
                learnt=tuple(self.learnt[read:]),
                end=self.end,
                reason="" if self.end is None else _REASONS[self.end],
            )

    @property
    def is_failing(self) -> bool:
        """Whether the learner failed at each of the last few entries."""
        last = self.learnt[-FAILURES:]
        return len(last) == FAILURES and all(one.outcome is EntryOutcome.FAILED for one in last)


@dataclass(frozen=True, slots=True)
class _Turn:
    """A turn that waits to be learnt from, at the earliest at a moment of the monotonic clock."""

    user_text: str
    due_s: float


class BackgroundLearner:
    """Learns from turns and scans, one at a time, on one thread for all projects; turns go first.

    Only the newest turn of each project is queued; it replaces an older one. A scan reads an entry, waits for the
    project's pause, and reads the next. Of several services with one store, one at a time learns from a project's
    turns, and one scans it; a scan that waited for another does not read its entries again. Safe to call from several
    threads.
    """

    def __init__(self, learn: LearnKeywords, claims: Claims, clock: Clock) -> None:
        """Nothing runs before `start`."""
        self._learn = learn
        self._claims = claims
        self._clock = clock
        self._lock = Condition()
        self._turns: OrderedDict[str, _Turn] = OrderedDict()
        self._scans: OrderedDict[str, Scan] = OrderedDict()
        self._followers: list[Callable[[str, int], None]] = []
        self._thread: Thread | None = None
        self._is_closed = False
        self._dropped = 0
        self._failure = ""

    @property
    def dropped(self) -> int:
        """Number of turns replaced by newer ones before they were learnt from."""
        return self._dropped

    @property
    def waiting(self) -> int:
        """Turns that are to be learnt from."""
        return len(self._turns)

    def start(self) -> None:
        """Begins to work."""
        self._thread = Thread(target=self._run, name="learner", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; a running question to the learner is awaited briefly and then abandoned."""
        with self._lock:
            self._is_closed = True
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join(_END_S)

    def follow(self, follower: Callable[[str, int], None]) -> None:
        """Call the follower at every step of a scan, as `ports.Store.follow` does for writes."""
        self._followers.append(follower)

    def seen(self, project: str, user_text: str) -> None:
        """A turn is over; returns at once."""
        with self._lock:
            if self._is_closed or self._learn.learner is None:
                return
            replaced = self._turns.get(project)
            self._dropped += replaced is not None
            self._turns[project] = _Turn(user_text, 0.0 if replaced is None else replaced.due_s)
            if len(self._turns) > MAX_WAITING_PROJECTS:
                self._turns.popitem(last=False)
                self._dropped += 1
            self._lock.notify_all()

    def forget(self, project: str) -> None:
        """A project was deleted: its turn is not learnt from, and its scan ends."""
        with self._lock:
            self._turns.pop(project, None)
            scan = self._scans.pop(project, None)
            if scan is not None:
                scan.waiting.clear()
                scan.end = ScanEnd.DONE
            self._lock.notify_all()
        if scan is not None:
            self._release(scan)

    def switched_on(self, project: str) -> str:
        """Start a scan of entries without keywords after learning was switched on; returns why not, else ""."""
        if self._learn.learner is not Learner.LLM:
            return _NO_COLD_START
        self.scan(project, ScanScope.UNLEARNED)
        return ""

    def scan(self, project: str, scope: ScanScope, chosen: Sequence[str] = ()) -> Scan:
        """Start a scan, or append these entries to the project's running one."""
        # Before looking up the entries, so that no other service reads them too.
        claim = None if project in self._scans else self._claims.take(Work.SCAN, project)
        try:
            end, memory_ids, events = self._begin(project, scope, chosen)
        except BaseException:
            if claim is not None:
                self._claims.release(claim)
            raise
        with self._lock:
            scan = self._scans.get(project) or Scan(self._lock)
            scan.claim = claim or scan.claim
            if end is None:
                if not scan.waiting:  # else what others have read since it was first asked for would be read again
                    scan.asked_at = events
                scan.waiting.update(dict.fromkeys(memory_ids))
                end = None if scan.waiting else ScanEnd.DONE
            if end is not None:
                scan.end = end
                self._scans.pop(project, None)
            elif not self._is_closed:
                self._scans[project] = scan
            self._lock.notify_all()
        if scan.end is not None:
            self._release(scan)
        return scan

    def step(self) -> bool:
        """Process one due turn, or one entry of the first due scan. Returns False if nothing is due."""
        with self._lock:
            turn = self._due_turn()
            due = None if turn else self._due_scan()
        if turn is not None:
            self._learn_from(*turn)
        elif due is not None:
            self._go_on(*due)
        return turn is not None or due is not None

    def _begin(
        self, project: str, scope: ScanScope, chosen: Sequence[str]
    ) -> tuple[ScanEnd | None, tuple[str, ...], int]:
        """Why nothing is read, else the entries to read, and how many events the project's log had before."""
        if self._learn.learner is None:
            return ScanEnd.NO_LEARNER, (), 0
        state = self._learn.state(project)
        if not state.enabled:
            return ScanEnd.OFF, (), 0
        if scope is ScanScope.CHOSEN:
            return None, tuple(chosen), state.events
        ids = self._learn.all_ids(project) if scope is ScanScope.ALL else self._learn.unlearned_ids(project)
        return None, ids, state.events

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._is_closed and (wait_s := self._wait_s()) != 0:
                    self._lock.wait(wait_s)
                if self._is_closed:
                    return
            self.step()

    def _wait_s(self) -> float | None:
        """Until something is due; None when nothing will be."""
        due = [*(turn.due_s for turn in self._turns.values()), *(scan.due_s for scan in self._scans.values())]
        return max(0.0, min(due) - self._clock.monotonic()) if due else None

    def _due_turn(self) -> tuple[str, str] | None:
        now = self._clock.monotonic()
        project = next((project for project, turn in self._turns.items() if turn.due_s <= now), None)
        return None if project is None else (project, self._turns.pop(project).user_text)

    def _due_scan(self) -> tuple[str, Scan] | None:
        now = self._clock.monotonic()
        ready = [(scan.due_s, project) for project, scan in self._scans.items() if scan.due_s <= now]
        if not ready:
            return None
        project = min(ready, key=lambda one: one[0])[1]
        return project, self._scans[project]

    def _learn_from(self, project: str, user_text: str) -> None:
        try:
            claim = self._claims.take(Work.LEARN, project)
            if claim is None:
                self._put_off(project, user_text)
                return
            try:
                self._learn.from_turn(project, user_text, claim)
            finally:
                self._claims.release(claim)
            self._failure = ""
        except ClaimLost:
            self._put_off(project, user_text)
        except LearnerFailed as failed:
            # Once for a language model that is down, not for every turn.
            if str(failed) != self._failure:
                _log.warning("nothing was learnt from a turn: %s", failed)
            self._failure = str(failed)
        except Exception as error:
            # Whatever it is: the next turn is another matter.
            _log_unexpected("nothing was learnt from a turn", error)

    def _put_off(self, project: str, user_text: str) -> None:
        """Another service learns from a turn of the project; this one waits, unless a newer one has come."""
        with self._lock:
            self._dropped += project in self._turns
            newest = self._turns.get(project) or _Turn(user_text, 0.0)
            self._turns[project] = _Turn(newest.user_text, self._clock.monotonic() + _HELD_S)

    def _may_scan(self, project: str, scan: Scan) -> bool:
        """Whether this service scans the project; if not, the scan waits. What others have read meanwhile is done."""
        if scan.claim is not None and self._claims.holds(scan.claim):
            return True
        scan.claim = self._claims.take(Work.SCAN, project)
        if scan.claim is None:
            with self._lock:
                scan.due_s = self._clock.monotonic() + _HELD_S
            return False
        learnt = self._learn.learnt_since(project, scan.asked_at)
        with self._lock:
            for memory_id in [one for one in scan.waiting if one in learnt]:
                del scan.waiting[memory_id]
                scan.learnt.append(learnt[memory_id])
        return True

    def _release(self, scan: Scan) -> None:
        claim, scan.claim = scan.claim, None
        if claim is not None:
            self._claims.release(claim)

    def _go_on(self, project: str, scan: Scan) -> None:
        memory_id = next(iter(scan.waiting), "")
        end, pause_s, learnt = None, 0.0, None
        try:
            claim = scan.claim if self._may_scan(project, scan) else None
            if claim is None:
                return
            memory_id = next(iter(scan.waiting), "")
            state = self._learn.state(project)
            pause_s = state.settings.cold_start_pause_s
            if memory_id and state.enabled:
                learnt = self._learn.of_entry(project, memory_id, claim)
            end = None if state.enabled else ScanEnd.OFF
        except ClaimLost:
            scan.claim = None
            return
        except Exception as error:
            _log_unexpected("an entry could not be learnt of", error)
            learnt = EntryLearnt(memory_id=memory_id, outcome=EntryOutcome.FAILED, reason=type(error).__name__)
        with self._lock:
            if learnt is not None:
                scan.waiting.pop(memory_id, None)
                scan.learnt.append(learnt)
            if end is None and scan.is_failing:
                end = ScanEnd.FAILING
            if end is None and not scan.waiting:
                end = ScanEnd.DONE
            scan.end = scan.end or end
            scan.due_s = self._clock.monotonic() + pause_s
            is_over = scan.end is not None
            if is_over and self._scans.get(project) is scan:
                del self._scans[project]
        if is_over:
            self._release(scan)
        for follower in self._followers:
            follower(project, 0)


def _log_unexpected(event: str, error: Exception) -> None:
    """Log an error without its message, which could contain users' text."""
    _log.error("%s: %s at %s", event, type(error).__qualname__, ", ".join(places_of(error)))
