"""A server that speaks OpenAI's chat completions as a test tells it to, on a real socket."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest

Answer = tuple[int, bytes]


def completion(content: object) -> Answer:
    """The reply of a model that said this; what is no text is said as JSON."""
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return 200, json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


@dataclass(kw_only=True)
class Stub:
    """A stub of a language model: its answer, and the bodies and headers of the requests."""

    base_url: str
    answer: Callable[[dict[str, Any]], Answer]
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    may_answer: Event = field(default_factory=Event)

    def says(self, *contents: object) -> None:
        """Answers with these, one after the other, the last one for ever."""
        left = list(contents)
        self.answer = lambda _: completion(left.pop(0) if len(left) > 1 else left[0])


@contextmanager
def stub_server() -> Iterator[Stub]:
    """A stub that answers at once, asked without a proxy; clear `may_answer` to hold it."""
    stub = Stub(base_url="", answer=lambda _: completion({}))
    stub.may_answer.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            stub.asked.append({"path": self.path, **body})
            stub.headers.append(dict(self.headers.items()))
            stub.may_answer.wait(30)
            status, data = stub.answer(body)
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:  # who asked has gone, which some tests want
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass

    with pytest.MonkeyPatch.context() as patch, Server(("127.0.0.1", 0), Handler) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            patch.delenv(name, raising=False)
        stub.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield stub
        finally:
            stub.may_answer.set()
            server.shutdown()
            thread.join()
