"""Interceptor of every call: authenticates and authorises the caller, and records the call."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import structlog
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from msgspec import Struct

from hummock.access.audit import AuditFailed, AuditLog
from hummock.access.authenticator import Authenticator
from hummock.core.access import LOCAL, Caller, TokenInvalid, Verb
from hummock.rpc.policy import MethodPolicy, lower_claims
from hummock.rpc.status import Spliced
from hummock_client.v1 import recall_pb2

AUTHORIZATION = "authorization"
OVER_HTTP = "hummock-over-http"
"""Metadata of a call that came over HTTP. It only takes rights away, so any client may send it."""

PEER = "hummock-peer"
"""Metadata key of the original peer, set by a process that forwards a call to the service."""

TRACE_KEYS = ("traceparent", "tracestate")
"""Metadata of W3C Trace Context."""

_NO_TRACE: Mapping[str, str] = {}

_BEGUN = "BEGUN"
_TOKENS = "hummock tokens"
_KNOWN = "KNOWN"
_CHANGED = "CHANGED"

MOST_IDS = 20
"""Most ids noted for one call; `counts` says how many there were in all."""

_DEPTH = 2
_NO_IDS = frozenset({"request_id", "missing_ids", "unknown_ids"})
_NUMBERS = (FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64)

_log = structlog.get_logger("hummock.rpc")


class Context(Protocol):
    """The part of gRPC's call context that the interceptor reads."""

    def invocation_metadata(self) -> Iterable[tuple[str, str | bytes]] | None:
        """The metadata that the caller sent with the request."""


class PeerContext(Context, Protocol):
    """The part of a call's context that identifies its peer."""

    def peer(self) -> str:
        """GRPC's name of the other end."""


def peer_of(context: PeerContext) -> str:
    """The address of another machine, or the connection of a local process.

    All local processes have one address, and the calls of a script are not to slow down an editor.
    """
    peer = context.peer()
    if peer.startswith("unix:"):
        # Only this user can open the socket, so the forwarded peer can be trusted.
        sent = dict(context.invocation_metadata() or ())
        peer = str(sent.get(PEER, peer))
    kind, _, address = peer.partition(":")
    host, _, _ = address.rpartition(":")
    is_here = kind == "unix" or host.startswith("127.") or host.strip("[]") in {"::1", "%5B::1%5D"}
    return peer if is_here or not host else host


class EndedCall(Struct, frozen=True, kw_only=True):
    """A finished call.

    Attributes:
        method: Its name on the wire.
        outcome: The name of its status.
        reason: Reason of the failure, as in `ErrorInfo`; "CANCELLED" if the caller hung up, empty if it did not fail.
        ended_at: Unix seconds.
        took_s: Seconds since its arrival.
        waited_s: Seconds before its work began, part of `took_s`; None if it never began.
        is_stream: Whether the caller decided how long it lasted.
        receipt: Receipt of its recall; None if there was none.
        degraded: What that recall left out.
        trace: Headers of the trace that the caller sent, by W3C's names; empty if traces are off.
    """

    method: str
    outcome: str
    reason: str
    ended_at: float
    took_s: float = 0.0
    waited_s: float | None = None
    is_stream: bool = False
    receipt: recall_pb2.Receipt | None = None
    degraded: Sequence[recall_pb2.Degradation] = ()
    trace: Mapping[str, str] = _NO_TRACE


class Meter(Protocol):
    """Receives every call that has ended."""

    def ended(self, call: EndedCall) -> None:
        """Record a finished call; called on the event loop, so it must take only microseconds."""


@dataclass(slots=True, eq=False)
class Interceptor:
    """Authenticates and records calls. Without an authenticator all callers are the machine's owner.

    Attributes:
        authenticator: Authenticates callers by their tokens.
        audit: Records writes and administrative calls.
        meters: Receive every call that has ended.
        slow_s: Calls that take longer are logged, except streams; None logs none.
        now: Unix seconds.
        monotonic: Seconds from some start.
        reads_traces: Whether trace headers are read.
    """

    authenticator: Authenticator | None = None
    audit: AuditLog | None = None
    meters: tuple[Meter, ...] = ()
    slow_s: float | None = None
    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    reads_traces: bool = False

    @property
    def has_tokens(self) -> bool:
        """Whether any token is configured."""
        return self.authenticator is not None and self.authenticator.has_tokens

    def turned_away(self, policy: MethodPolicy, outcome: str, reason: str) -> None:
        """Record a call that was refused before it got a record."""
        call = EndedCall(method=policy.method, outcome=outcome, reason=reason, ended_at=self.now())
        for meter in self.meters:
            meter.ended(call)

    def caller(self, metadata: Iterable[tuple[str, str | bytes]]) -> Caller:
        """The caller with this metadata. Raises: TokenInvalid."""
        if self.authenticator is None:
            return LOCAL
        said: str | None = None
        is_over_http = False
        for key, value in metadata:
            if key == AUTHORIZATION:
                if said is not None:
                    raise TokenInvalid("the call has two tokens; send one")
                said = str(value)
            elif key == OVER_HTTP:
                is_over_http = True
        return self.caller_of(said, is_over_http=is_over_http)

    def caller_of(self, authorization: str | None, *, is_over_http: bool) -> Caller:
        """The caller with this Authorization header, as `Authenticator.caller` reads it. Raises: TokenInvalid."""
        if self.authenticator is None:
            return LOCAL
        try:
            return self.authenticator.caller(authorization, is_over_http=is_over_http)
        finally:
            if self.authenticator.news and self.audit is not None:
                self._note_tokens(self.authenticator, self.audit)

    def _note_tokens(self, authenticator: Authenticator, audit: AuditLog) -> None:
        """Record a change of the token file, before any call that uses the new tokens."""
        # Another thread may have taken it meanwhile; a failed audit write is logged already.
        with suppress(IndexError, AuditFailed):
            news = authenticator.news.popleft()
            counts = {"live": news.live, "made": len(news.made), "revoked": len(news.revoked)}
            told = {"made": news.made[:MOST_IDS], "revoked": news.revoked[:MOST_IDS], "counts": counts}
            outcome = _KNOWN if news.is_first else _CHANGED
            said = {"who": LOCAL.name, "method": _TOKENS, "outcome": outcome, **told}
            audit.append(said, self.now(), is_durable=True)


class CallRecord:
    """Record of one call, from the interceptor on."""

    def __init__(self, interceptor: Interceptor, policy: MethodPolicy, context: Context, caller: Caller) -> None:
        self._interceptor = interceptor
        self._policy = policy
        self._context = context
        self.caller = caller
        self._began_s = interceptor.monotonic()
        self._admitted_s: float | None = None
        self._audit_fields = AuditFields() if interceptor.audit is not None and policy.verb is not Verb.READ else None
        self._projects: Sequence[str] = ()
        self._reply: Message | None = None

    def check_rights(self, projects: Sequence[str]) -> None:
        """Check that the caller, who has a token, may do this in these projects, before its work waits among theirs.

        Raises: ScopeMissing: its token does not allow it.
        """
        if self._audit_fields is not None:
            self._audit_fields.projects.update(dict.fromkeys(projects))
        if self._policy.is_of_all:
            self.caller.require_all(self._policy.verb)
        else:
            self.caller.require(self._policy.verb, projects)

    def admit(self, request: Message, projects: Sequence[str]) -> None:
        """Record a request, which names these projects, just before it is carried out; lower what it claims.

        Raises:
            ScopeMissing: An update claims to be an indexer's, which its token does not allow.
            AuditFailed: The method is administrative, and the audit log cannot be written.
        """
        self._projects = projects
        if self._audit_fields is not None:
            self._audit_fields.request(request, projects)
        if self.caller is not LOCAL:
            lower_claims(request, self.caller)
        is_first = self._admitted_s is None
        self._admitted_s = self._interceptor.monotonic()
        if is_first and self._interceptor.audit is not None and self._policy.verb is Verb.ADMIN:
            # Before the effect: a crash in between must not leave an effect without a line.
            self._interceptor.audit.append(self._line(_BEGUN), self._interceptor.now(), is_durable=True)

    def look_again(self) -> None:
        """Check that the token of a long call is still valid. Raises: TokenInvalid."""
        self.caller = self._interceptor.caller(self._context.invocation_metadata() or ())

    def saw(self, reply: Message | Spliced) -> None:
        """Record the reply."""
        self._reply = reply.rest if isinstance(reply, Spliced) else reply
        if self._audit_fields is not None:
            self._audit_fields.note(self._reply)

    def leave(self, outcome: str, reason: str) -> None:
        """Ends the call: "OK", or the name of its status and the reason of its failure."""
        if self._audit_fields is not None and self._interceptor.audit is not None:
            # A failure is logged already; the call took effect, so the caller gets its outcome.
            with suppress(AuditFailed):
                self._interceptor.audit.append(self._line(outcome), self._interceptor.now())
        receipt = getattr(self._reply, "receipt", None)
        call = EndedCall(
            method=self._policy.method,
            outcome=outcome,
            reason=reason,
            took_s=self._interceptor.monotonic() - self._began_s,
            waited_s=None if self._admitted_s is None else self._admitted_s - self._began_s,
            is_stream=self._policy.lane.gives_stream,
            receipt=receipt if isinstance(receipt, recall_pb2.Receipt) else None,
            degraded=getattr(self._reply, "degraded", ()),
            ended_at=self._interceptor.now(),
            trace=_trace_of(self._context) if self._interceptor.reads_traces else _NO_TRACE,
        )
        for meter in self._interceptor.meters:
            meter.ended(call)
        slow_s = self._interceptor.slow_s
        if slow_s is not None and not call.is_stream and call.took_s >= slow_s:
            self._log_slow(call)

    def _line(self, outcome: str) -> Mapping[str, Any]:
        said = {"who": self.caller.name, "method": self._policy.method, "outcome": outcome}
        return said if self._audit_fields is None else {**said, **self._audit_fields.told()}

    def _log_slow(self, call: EndedCall) -> None:
        waited_s = call.took_s if call.waited_s is None else call.waited_s
        stages = () if call.receipt is None else call.receipt.stages
        _log.warning(
            "slow_call",
            method=call.method,
            projects=self._projects,
            who=self.caller.name,
            outcome=call.outcome,
            took_ms=round(call.took_s * 1000, 3),
            waited_ms=round(waited_s * 1000, 3),
            stages_ms={stage_name(each.stage): round(each.elapsed.ToNanoseconds() / 1e6, 3) for each in stages},
        )


def _trace_of(context: Context) -> Mapping[str, str]:
    return {
        key: value for key, value in context.invocation_metadata() or () if key in TRACE_KEYS and isinstance(value, str)
    }


@cache
def stage_name(stage: recall_pb2.RecallStage.ValueType) -> str:
    """A stage as people write it: "late_interaction"."""
    return recall_pb2.RecallStage.Name(stage).removeprefix("RECALL_STAGE_").lower()


class AuditFields:
    """Fields of a call for the audit log: projects, ids and counts in its messages, never content."""

    def __init__(self) -> None:
        self.projects: dict[str, None] = {}
        self.ids: dict[str, None] = {}
        self.counts: Counter[str] = Counter()

    def request(self, request: Message, projects: Iterable[str]) -> None:
        """Note a request: the projects it names, the ids in it, and the sizes of its lists."""
        self.projects.update(dict.fromkeys(projects))
        self.counts["requests"] += 1
        self.note(request)

    def told(self) -> Mapping[str, Any]:
        """The parts of a line that are not empty."""
        said = {"projects": list(self.projects), "ids": list(self.ids), "counts": dict(self.counts)}
        return {name: value for name, value in said.items() if value}

    def note(self, message: Message, depth: int = _DEPTH) -> None:
        """Note the ids and the counts of a message, and of those within it down to a depth."""
        for field, value in message.ListFields():
            if field.message_type is not None:
                self._note_inner(field, field.message_type, value, depth)
            elif field.name.endswith("_count") and field.cpp_type in _NUMBERS:
                self.counts[field.name] += value
            elif field.name == "seq":
                self.counts["seq"] = value
            elif field.name not in _NO_IDS and field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
                if field.name == "id" or field.name.endswith("_id"):
                    self._note_ids([value])
                elif field.name == "ids" or field.name.endswith("_ids"):
                    self.counts[field.name] += len(value)
                    self._note_ids(value[:MOST_IDS])

    def _note_inner(self, field: FieldDescriptor, kind: Descriptor, value: Any, depth: int) -> None:
        if kind.GetOptions().map_entry or not kind.full_name.startswith("hummock."):
            return
        if field.is_repeated:
            self.counts[field.name] += len(value)
        if depth > 1:
            for each in value[:MOST_IDS] if field.is_repeated else (value,):
                self.note(each, depth - 1)

    def _note_ids(self, ids: Any) -> None:
        for each in ids:
            if len(self.ids) < MOST_IDS:
                self.ids[each] = None
