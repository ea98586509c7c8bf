"""Each client passes every case. One whose toolchain is missing is skipped, or with REQUIRE_CLIENTS=1 fails."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hummock_client.v1.errors_pb2 import ErrorReason
from tests.alone import alone_in
from tests.conformance.__main__ import CLIENTS, ROOT, Client, Verdict, matrix, names_of_cases, verdicts
from tests.conformance.matching import mismatch
from tests.conformance.servers import CASES, serving

pytestmark = pytest.mark.long

_OF_ITS_DISK = {
    "STORAGE_FULL",
    "AUDIT_FAILED",
    "DISK_FAULT",
    "DATA_FILE_CUT_SHORT",
    "DATA_DIRECTORY_REPLACED",
    "RECORD_DAMAGED",
}
_OF_ITS_DATABASE = {"STORE_UNREACHABLE", "SCHEMA_TOO_NEW", "CLAIM_LOST"}
_OF_THE_SERVICE_ALONE = {"UNSPECIFIED", "TOO_MANY_STREAMS", "INTERNAL", *_OF_ITS_DISK, *_OF_ITS_DATABASE}
"""Reasons that no caller can bring about by what he sends."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with serving(tmp_path_factory.mktemp("conformance")) as file:
        yield file


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_passes_every_case(client: Client, told: Path) -> None:
    if client.missing:
        said = f"{client.missing} is missing, without which the client for {client.name} cannot be run"
        assert os.environ.get("REQUIRE_CLIENTS") != "1", said
        pytest.skip(said)
    with alone_in(ROOT / client.folder):
        found = verdicts(client, told)
    assert {case: verdict.detail for case, verdict in found.items() if verdict.detail} == {}


def test_a_runner_has_to_speak_of_every_case(tmp_path: Path) -> None:
    """One that says nothing, or ends before its time, has failed what it did not speak of."""
    first, *others = names_of_cases()
    program = f"import sys; print('{json.dumps({'case': first, 'ok': True})}'); sys.exit(3)"
    client = Client(name="short", folder=".", tool=sys.executable, command=(sys.executable, "-c", program))
    found = verdicts(client, tmp_path)
    assert list(found) == [first, *others]
    assert found[first] == Verdict()
    assert {found[name].detail for name in others} == {"the runner said nothing of it (exit status 3)"}
    lines = list(matrix({"short": found}))
    assert re.fullmatch(rf"{first} +ok", lines[1])
    assert all(re.fullmatch(rf"{name} +FAIL", line) for name, line in zip(others, lines[2:], strict=False))


def test_a_runner_that_does_not_end_keeps_what_it_said_and_fails_the_rest(tmp_path: Path) -> None:
    """The runner has started another program, as `npm` and `sh` do, which ends with it."""
    first, *others = names_of_cases()
    waiting = "import signal; signal.pause()"
    line = json.dumps({"case": first, "ok": True})
    program = (
        f"import subprocess, sys; print('{line}', flush=True); subprocess.run([sys.executable, '-c', '{waiting}'])"
    )
    client = Client(name="slow", folder=".", tool=sys.executable, command=(sys.executable, "-c", program))
    found = verdicts(client, tmp_path, limit_s=5)
    assert found[first] == Verdict()
    assert {found[name].detail for name in others} == {"the runner said nothing of it (it was ended after 5 s)"}


def test_cases_have_names_of_their_own() -> None:
    names = names_of_cases()
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in names)


def test_the_cases_bring_about_every_reason_that_a_caller_can() -> None:
    cases = "".join(file.read_text(encoding="utf-8") for file in CASES.glob("*.json"))
    reasons = {value.name.removeprefix("ERROR_REASON_") for value in ErrorReason.DESCRIPTOR.values}
    assert {reason for reason in reasons if f'"{reason}"' not in cases} == _OF_THE_SERVICE_ALONE


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ([1, {"$any": True}], [1, "x"]),
        ({"a": {"$absent": True}}, {}),
        ({"$contains": {"id": "b"}}, [{"id": "a"}, {"id": "b", "n": 1}]),
        ({"$contains": "amp"}, "lamp"),
        ({"$at_least": 2}, "3"),
        ({"$length": 2}, ["a", "b"]),
        (0.1 + 0.2, 0.3),
    ],
)
def test_what_is_expected_matches(expected: object, got: object) -> None:
    assert mismatch(expected, got) is None


@pytest.mark.parametrize(
    ("expected", "got", "why"),
    [
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, "a[0].b: expected 1, got 2"),
        ([1], [1, 2], "reply: expected [1], got [1, 2]"),
        ({"a": {"$any": True}}, {}, "a: expected {'$any': True}, got None"),
        ({"a": {"$absent": True}}, {"a": 0}, "a: expected {'$absent': True}, got 0"),
        (True, 1, "reply: expected True, got 1"),
        ("1", 1, "reply: expected '1', got 1"),
        ({"$golden": "memories.zh.txt"}, "", "reply: expected {'$golden': 'memories.zh.txt'}, got ''"),
    ],
)
def test_what_is_not_expected_is_said_with_its_place(expected: object, got: object, why: str) -> None:
    assert mismatch(expected, got) == why
