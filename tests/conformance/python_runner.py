"""The Python client's runner: every case through the blocking client, a line of JSON each."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from google.protobuf import json_format, symbol_database
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from hummock_client import Client, HummockCallError
from tests.conformance.matching import mismatch

Json = Any
"""Of a case."""


class Failed(Exception):
    """A step did not go as expected; says why."""


def main() -> None:
    """Runs all cases of the file that HUMMOCK_CONFORMANCE names."""
    told = json.loads(Path(os.environ["HUMMOCK_CONFORMANCE"]).read_bytes())
    for file in sorted(Path(told["cases"]).glob("*.json")):
        for case in json.loads(file.read_bytes()):
            detail = _detail(case, told)
            print(json.dumps({"case": case["name"], "ok": not detail, "detail": detail}, ensure_ascii=False), flush=True)


def _detail(case: Json, told: Json) -> str:
    saved = {"project": f"conformance-{uuid.uuid4()}"}
    try:
        with _client(case, told) as client:
            for number, step in enumerate(case["steps"], start=1):
                started_s = time.monotonic()
                try:
                    _run(client, step, saved)
                except Failed as failed:
                    return f"step {number}: {failed}"
                took_ms = (time.monotonic() - started_s) * 1000
                if took_ms > step.get("within_ms", float("inf")):
                    return f"step {number}: took {took_ms:.0f} ms; at most {step['within_ms']} were expected"
    except Exception as error:  # a runner that ends would say nothing of the cases behind
        return f"{type(error).__name__}: {error}"
    return ""


def _client(case: Json, told: Json) -> Client:
    options = case.get("client", {})
    token = told["token"] if options.get("token") == "good" else options.get("token")
    ca = Path(told["ca"]).read_bytes() if options.get("tls") else None
    return Client(told["targets"][case.get("server", "main")], token=token, root_certificates=ca)


def _run(client: Client, step: Json, saved: dict[str, str]) -> None:
    if "with_memory" in step:
        return _with_memory(client, _filled(step, saved))
    method = _method(step["call"])
    reply_of = _caller(client, step, method, saved)
    if "error" in step:
        return _fails(reply_of, step["error"])
    reply = reply_of()
    why = mismatch(_filled(step.get("replies", step.get("reply")), saved), reply)
    if why:
        raise Failed(why)
    saved.update({name: _at(reply, pointer) for name, pointer in step.get("save", {}).items()})
    return None
