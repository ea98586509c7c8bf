"""The Python client's runner: every case through the blocking client, or with --aio the one for asyncio."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pool, json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from hummock_client import Client, HummockCallError
from hummock_client.v1.memory_pb2 import MemoryFilter
from tests.client.waiting import WaitingClient
from tests.conformance.matching import mismatch
from tests.conformance.python_facades import Cancelled, Facade

Json = Any
"""Parsed JSON of a case."""

_SAVED = re.compile(r"\$\{(\w+)\}")


class Failed(Exception):
    """A step did not go as expected; says why."""


def main(arguments: Sequence[str]) -> None:
    """Runs all cases of the file that HUMMOCK_CONFORMANCE names."""
    make = WaitingClient if "--aio" in arguments else Client
    told = json.loads(Path(os.environ["HUMMOCK_CONFORMANCE"]).read_bytes())
    for file in sorted(Path(told["cases"]).glob("*.json")):
        for case in json.loads(file.read_bytes()):
            detail = _detail(case, told, make)
            print(
                json.dumps({"case": case["name"], "ok": not detail, "detail": detail}, ensure_ascii=False), flush=True
            )


def _detail(case: Json, told: Json, make: type[Client | WaitingClient]) -> str:
    saved = {"project": f"conformance-{uuid.uuid4()}"}
    options = case.get("client", {})
    token = told["token"] if options.get("token") == "good" else options.get("token")
    ca = Path(told["ca"]).read_bytes() if options.get("tls") else None
    target = told["targets"][case.get("server", "main")]
    deadline_ms = options.get("deadline_ms")
    with Facade(make, target, token=token, root_certificates=ca, deadline_ms=deadline_ms) as client:
        for number, step in enumerate(case["steps"], start=1):
            try:
                _run_in_time(client, step, saved)
            except Failed as failed:
                return f"step {number}: {failed}"
            except Exception as error:  # a runner that ends would say nothing of later cases
                return f"step {number}: {type(error).__name__}: {error}"
    return ""


def _run_in_time(client: Facade, step: Json, saved: dict[str, str]) -> None:
    started_s = time.monotonic()
    if "with_memory" in step:
        _with_memory(client, _filled(step, saved))
    elif "delete_where" in step:
        _delete_where(client, _filled(step, saved))
    else:
        _call(client, step, saved)
    took_ms = (time.monotonic() - started_s) * 1000
    if took_ms > step.get("within_ms", float("inf")):
        raise Failed(f"took {took_ms:.0f} ms; at most {step['within_ms']} were expected")


def _call(client: Facade, step: Json, saved: dict[str, str]) -> None:
    method = _method(step["call"])
    ask = partial(
        _streamed if "requests" in step or method.server_streaming else _answered, client, method, step, saved
    )
    if "error" in step:
        return _fails(ask, step["error"])
    got = ask()
    if why := mismatch(_filled(step.get("replies", step.get("reply", {})), saved), got):
        raise Failed(why)
    saved.update({name: _at(got, pointer) for name, pointer in step.get("save", {}).items()})
    return None


def _method(called: str) -> MethodDescriptor:
    service, _, name = called.partition("/")
    method: MethodDescriptor = descriptor_pool.Default().FindServiceByName(service).FindMethodByName(name)
    return method


def _answered(client: Facade, method: MethodDescriptor, step: Json, saved: Mapping[str, str]) -> Json:
    cancel_after_s = step["cancel_after_ms"] / 1000 if "cancel_after_ms" in step else None
    request = _message(method, step.get("request", {}), saved)
    return json_format.MessageToDict(client.send(request, _timeout_s(step), cancel_after_s))


def _streamed(client: Facade, method: MethodDescriptor, step: Json, saved: Mapping[str, str]) -> Json:
    requests = [_message(method, one, saved) for one in step.get("requests") or [step["request"]]]
    most = len(step["replies"]) if step.get("then") == "cancel" else None
    meanwhile = _meanwhile(step["meanwhile"], saved) if "meanwhile" in step else None
    replies = client.stream(method, requests, _timeout_s(step), most, meanwhile)
    return [json_format.MessageToDict(one) for one in replies]


def _meanwhile(step: Json, saved: Mapping[str, str]) -> Message:
    return _message(_method(step["call"]), step["request"], saved)


def _fails(ask: Callable[[], Json], expected: Json) -> None:
    try:
        got = ask()
    except HummockCallError as error:
        told = {
            "code": error.code.name,
            "reason": error.reason,
            "message": error.message,
            "fields": [broken.field for broken in error.field_violations],
            "metadata": error.metadata,
            "retry_after": error.retry_after_s is not None,
        }
        if why := mismatch(expected, told):
            raise Failed(f"{why}; the message: {error.message}") from error
    except Cancelled as error:
        if expected["code"] != "CANCELLED":
            raise Failed("it was cancelled") from error
    else:
        raise Failed(f"it went well, and should have failed with {expected}: {got}")


def _with_memory(client: Facade, step: Json) -> None:
    asked = step["with_memory"]
    messages = asked["messages"]
    got = client.with_memory(asked["project"], messages, asked["budget_ms"] / 1000)
    if step.get("unchanged") and got is not messages:
        raise Failed(f"other messages came back: {got}")
    if why := mismatch(step.get("messages", {"$any": True}), got):
        raise Failed(why)


def _delete_where(client: Facade, step: Json) -> None:
    asked = step["delete_where"]
    removed = client.delete_where(asked["project"], json_format.ParseDict(asked["filter"], MemoryFilter()))
    if removed != step["removed"]:
        raise Failed(f"expected {step['removed']} to be removed, got {removed}")


def _message(method: MethodDescriptor, said: Json, saved: Mapping[str, str]) -> Message:
    return json_format.ParseDict(_filled(said, saved), GetMessageClass(method.input_type)())


def _timeout_s(step: Json) -> float | None:
    return step["deadline_ms"] / 1000 if "deadline_ms" in step else None


def _filled(value: Json, saved: Mapping[str, str]) -> Json:
    """The value with what was saved in place of `${name}`, and long strings written out."""
    if isinstance(value, str):
        return _SAVED.sub(lambda found: saved[found[1]], value)
    if isinstance(value, list):
        return [_filled(one, saved) for one in value]
    if isinstance(value, dict):
        if "$repeat" in value:
            text, times = value["$repeat"]
            return text * times
        if "$each" in value:
            times, one = value["$each"]
            return [_filled(one, {**saved, "n": str(number)}) for number in range(1, times + 1)]
        return {key: _filled(one, saved) for key, one in value.items()}
    return value


def _at(value: Json, pointer: str) -> str:
    """Value that a JSON pointer points to; a number as a string."""
    for part in pointer.split("/")[1:]:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return str(value)


if __name__ == "__main__":
    main(sys.argv[1:])
