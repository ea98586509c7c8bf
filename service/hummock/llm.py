"""The port `Llm` on any endpoint that speaks OpenAI's chat completions; left alone for a while when it fails."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from threading import Lock
from typing import Any

import httpx2

from hummock.ports.models import Clock, LlmFailed, LlmLate, LlmLeftAlone, LlmQuestion, LlmUsage

FAILURES = 5
"""In a row, after which nothing is tried."""

OPEN_S = 30.0
"""How long; then one call may try."""

ATTEMPTS = 3

FIRST_PAUSE_S = 0.05
"""Before the second attempt; twice as long before the third."""

MAX_REPLY_BYTES = 256 * 1024

_MOST_TOKENS = 1 << 32
"""Upper bound on the tokens of one reply; a larger number is taken for a fault."""

# Each takes time in proportion to the text, whatever it is: no other thread runs while one looks.
_FENCE = re.compile(r"```(?:json)?[^\S\n]*\n")
_FENCE_END = re.compile(r"\n[^\S\n]*```")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a model is asked: the URL before `/chat/completions`, its name there, and the key, if it wants one."""

    base_url: str
    model: str
    timeout_s: float
    api_key: str = field(default="", repr=False)


class OpenAiCompatible:
    """Asks a model over HTTP. Safe to call from several threads.

    Answers are forced into the question's schema where the endpoint knows `response_format`, else asked for in words.
    What fails again and again is left alone for a while (`Breaker`). Nothing of question, reply or key is logged or
    comes into a message.
    """

    def __init__(self, endpoint: Endpoint, clock: Clock, pause: Callable[[float], None] = time.sleep) -> None:
        """`pause` waits between attempts."""
        self._endpoint = endpoint
        self._monotonic = clock.monotonic
        self._pause = pause
        self._breaker = Breaker(clock.monotonic)
        self.usage = LlmUsage()
        self._lock = Lock()
        self._knows_schemas = True
        headers = {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
        self._client = httpx2.Client(
            base_url=endpoint.base_url.rstrip("/") + "/", headers={**headers, "Accept-Encoding": "identity"}
        )

    def ask(self, question: LlmQuestion, until_s: float) -> object:
        """The JSON value of the reply; see `ports.Llm`."""
        if not self._breaker.lets_through():
            raise LlmLeftAlone
        try:
            value = self._answered(question, min(until_s, self._monotonic() + self._endpoint.timeout_s))
        except LlmFailed:
            self._breaker.failed()
            raise
        self._breaker.succeeded()
        return value

    @property
    def is_left_alone(self) -> bool:
        """Whether it is not asked for a while; see `ports.Llm`."""
        return self._breaker.is_open

    def close(self) -> None:
        """Closes its connections."""
        self._client.close()

    def _answered(self, question: LlmQuestion, until_s: float) -> object:
        pause_s = FIRST_PAUSE_S
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._value_of(self._reply(question, until_s))
            except _Transient:
                if attempt == ATTEMPTS or self._monotonic() + pause_s >= until_s:
                    raise
            self._pause(pause_s)
            pause_s *= 2
        raise AssertionError("the last attempt returns or raises")

    def _value_of(self, body: bytes) -> object:
        reply = _decoded(body)
        # Usable or not: its tokens were paid for.
        self._count(**{name: _tokens(reply, name) for name in ("prompt_tokens", "completion_tokens")})
        value = _json_of(_content_of(reply))
        self._count(replies=1)
        return value

    def _count(self, **more: int) -> None:
        with self._lock:
            self.usage = replace(self.usage, **{name: getattr(self.usage, name) + n for name, n in more.items()})

    def _reply(self, question: LlmQuestion, until_s: float) -> bytes:
        with_schema = self._knows_schemas
        status, body = self._posted(question, until_s, with_schema=with_schema)
        if with_schema and status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
            status, body = self._posted(question, until_s, with_schema=False)
            # Only where that was the reason: another bad request says nothing about schemas.
            self._knows_schemas = status != HTTPStatus.OK
        if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise _Transient(f"it answered with status {status}")
        if status != HTTPStatus.OK:
            raise LlmFailed(f"it answered with status {status}")
        return body

    def _posted(self, question: LlmQuestion, until_s: float, *, with_schema: bool) -> tuple[int, bytes]:
        left_s = until_s - self._monotonic()
        if left_s <= 0:
            raise LlmLate
        body = _request(self._endpoint.model, question, with_schema=with_schema)
        self._count(requests=1)
        try:
            with self._client.stream("POST", "chat/completions", json=body, timeout=left_s) as response:
                return response.status_code, self._read(response, until_s)
        except httpx2.TimeoutException as late:
            raise LlmLate from late
        except httpx2.HTTPError as failed:
            # Its own message may hold the URL, and with it what people put there.
            raise _Transient(f"the connection failed ({type(failed).__name__})") from None

    def _read(self, response: httpx2.Response, until_s: float) -> bytes:
        """The reply, as long as it is short and comes in time: each read may take all of the time that is left."""
        read = bytearray()
        for part in response.iter_raw():
            read += part
            if len(read) > MAX_REPLY_BYTES:
                raise LlmFailed(f"its reply has more than {MAX_REPLY_BYTES} bytes")
            if self._monotonic() > until_s:
                raise LlmLate
        return bytes(read)


class _Transient(LlmFailed):
    """A failure that may be gone at the next attempt."""


class Breaker:
    """Counts failures in a row. Safe to call from several threads."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Closed; `monotonic` gives seconds from some start."""
        self._monotonic = monotonic
        self._failures = 0
        self._open_until_s = 0.0
        self._lock = Lock()

    @property
    def is_open(self) -> bool:
        """Whether a call would not be tried now; to ask uses up no attempt."""
        with self._lock:
            return self._is_open()

    def lets_through(self) -> bool:
        """Whether a call may be tried; while it is open, one every OPEN_S."""
        with self._lock:
            if self._is_open():
                return False
            if self._failures >= FAILURES:
                self._open_until_s = self._monotonic() + OPEN_S
            return True

    def succeeded(self) -> None:
        """Closes it."""
        with self._lock:
            self._failures = 0

    def failed(self) -> None:
        """Counts a failure."""
        with self._lock:
            self._failures += 1
            if self._failures == FAILURES:
                self._open_until_s = self._monotonic() + OPEN_S

    def _is_open(self) -> bool:
        return self._failures >= FAILURES and self._monotonic() < self._open_until_s


def _request(model: str, question: LlmQuestion, *, with_schema: bool) -> Mapping[str, object]:
    schema = {"name": question.name, "strict": True, "schema": question.schema}
    in_words = f"{question.instructions}\nReply with one JSON value of this schema and nothing else: "
    instructions = question.instructions if with_schema else in_words + json.dumps(question.schema)
    return {
        "model": model,
        "messages": [{"role": "system", "content": instructions}, {"role": "user", "content": question.data}],
        "temperature": 0,
        "max_tokens": question.max_tokens,
        **({"response_format": {"type": "json_schema", "json_schema": schema}} if with_schema else {}),
    }


def _decoded(body: bytes) -> object:
    try:
        reply: object = json.loads(body)
    except (ValueError, RecursionError):
        raise LlmFailed("its reply is not that of a chat completion") from None
    return reply


def _content_of(reply: Any) -> str:
    try:
        content = reply["choices"][0]["message"]["content"]
    except (LookupError, TypeError):
        raise LlmFailed("its reply is not that of a chat completion") from None
    if not isinstance(content, str):
        raise LlmFailed("its reply has no text")
    return content


def _json_of(content: str) -> object:
    """The JSON value that a text is, or has in a fence."""
    fence = _FENCE.search(content)
    end = _FENCE_END.search(content, fence.end() - 1) if fence else None
    try:
        value: object = json.loads(content[fence.end() : end.start()] if fence and end else content)
    except (ValueError, RecursionError):
        raise LlmFailed("its reply is not JSON") from None
    return value


def _tokens(reply: object, name: str) -> int:
    usage = reply.get("usage") if isinstance(reply, dict) else None
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count < _MOST_TOKENS else 0
