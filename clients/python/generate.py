"""Writes what in hummock_client follows from other files; `make client` runs it, `make lint` runs it with --check.

The blocking calls follow from those for asyncio, the types of `send` from the contract.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor import Descriptor, MethodDescriptor

import hummock_client.v1

PACKAGE = Path(__file__).parent / "hummock_client"
TWINS = {"async_calls.py": "calls.py", "async_sessions.py": "sessions.py", "async_learning.py": "learning.py"}

BLOCKING = (
    (r"\(await (.+)\)\.", r"\1."),
    (r"\bawait ", ""),
    (r"\bfor (\w+) in (.+):\n +yield \1\n", r"yield from \2\n"),
    (r"\basync (?=def|for)", ""),
    (r"AsyncGenerator\[(.+), None\]", r"Generator[\1, None, None]"),
    (r"\bAsync(?=[A-Z])", ""),
    (r" \(`aclosing`\)| for asyncio", ""),
)

SEND = '''"""The types of `send`: which reply belongs to which request."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, overload

from hummock_client.v1 import {modules}


class Send(Protocol):
    """Sends a request and returns its reply; `timeout_s` of None means the client's deadline.

    Raises: HummockCallError.
    """
{blocking}

class AsyncSend(Protocol):
    """Sends a request; awaited, its reply; `timeout_s` of None means the client's deadline.

    Raises: HummockCallError.
    """
{awaited}'''

CALL = """
    @overload
    def __call__(self, request: {request}, *, timeout_s: float | None = None) -> {reply}: ...
"""


def main() -> None:
    """Writes the files; with --check, exits with 1 when one of them is not what would be written."""
    stale = []
    for name, text in generated():
        path = PACKAGE / name
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    if stale:
        sys.exit(f"error: {', '.join(stale)} in hummock_client differ from their sources; run make client")


def generated() -> Iterator[tuple[str, str]]:
    """Names and texts of all files that follow from others."""
    for source, name in TWINS.items():
        yield name, styled(name, source, blocking((PACKAGE / source).read_text(encoding="utf-8")))
    yield "sending.py", styled("sending.py", "the contract", send_types())


def blocking(source: str) -> str:
    """Returns the blocking version of code that is written for asyncio."""
    for pattern, replacement in BLOCKING:
        source = re.sub(pattern, replacement, source, flags=re.MULTILINE)
    return source


def send_types() -> str:
    """The protocols of `send`, with one overload for each call that has one reply."""
    methods = [method for method in _methods() if not method.client_streaming and not method.server_streaming]
    pairs = [(_name(method.input_type), _name(method.output_type)) for method in methods]
    return SEND.format(
        modules=", ".join(sorted({name.partition(".")[0] for pair in pairs for name in pair})),
        blocking="".join(CALL.format(request=request, reply=reply) for request, reply in pairs),
        awaited="".join(CALL.format(request=request, reply=f"Awaitable[{reply}]") for request, reply in pairs),
    )


def styled(name: str, source: str, text: str) -> str:
    """The text as `make lint` wants it, under a line that says where it comes from."""
    text = f"# Generated from {source} by `make client`; do not edit.\n{text}"
    for command in (("check", "--fix", "--select", "I"), ("format",)):
        ruff = [sys.executable, "-m", "ruff", *command, "--quiet", "--stdin-filename", str(PACKAGE / name), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, encoding="utf-8", check=True).stdout
    return text


def _methods() -> Iterator[MethodDescriptor]:
    for stub in pkgutil.iter_modules(hummock_client.v1.__path__):
        if stub.name.endswith("_service_pb2"):
            for service in importlib.import_module(
                f"hummock_client.v1.{stub.name}"
            ).DESCRIPTOR.services_by_name.values():
                yield from service.methods


def _name(message: Descriptor) -> str:
    return f"{Path(message.file.name).stem}_pb2.{message.name}"


if __name__ == "__main__":
    main()
