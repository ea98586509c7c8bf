"""An outsider's tool, knowing nothing but the address, lists the methods, calls one and shows why a call is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rpc.edge import edge_on_a_thread
from tests.rpc.samples import MEMORY

BUF = shutil.which("buf", path=str(Path(sys.executable).parent)) or shutil.which("buf")
pytestmark = [pytest.mark.long, pytest.mark.skipif(BUF is None, reason="buf of the dev extra is not installed")]


def curl(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(BUF), "curl", "--protocol", "grpc", "--http2-prior-knowledge", *arguments, url]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_buf_curl_lists_and_calls_methods_and_shows_the_details_of_an_error() -> None:
    with edge_on_a_thread() as address:
        recall = f"http://{address}/hummock.v1.ContextService/Recall"
        listed = curl(f"http://{address}", "--list-methods")
        called = curl(recall, "-d", '{"project": "p", "query_text": "还款"}')
        refused = curl(recall, "-d", "{}")
    assert listed.returncode == 0, listed.stderr
    assert {"hummock.v1.ContextService/Recall", "grpc.health.v1.Health/Check"} <= set(listed.stdout.split())
    assert called.returncode == 0, called.stderr
    assert json.loads(called.stdout)["hits"][0]["memory"]["id"] == MEMORY.id
    answer = json.loads(refused.stderr)
    assert answer["code"] == "invalid_argument"
    assert [detail["type"] for detail in answer["details"]] == ["google.rpc.ErrorInfo", "google.rpc.BadRequest"]
