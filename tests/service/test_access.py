"""Tokens, TLS and what goes with them, over the whole service: its commands, its readers, HTTP, a running process."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from hummock.access.audit import FILE_NAME
from hummock.access.tokens import TokenFile
from hummock.core.access import Scope
from hummock_client import Client, HummockCallError
from hummock_tools.cli.background import SERVING_ON
from tests.service.running import free_port, in_process

pytestmark = [pytest.mark.long, pytest.mark.timed, pytest.mark.storeless]

TOO_LONG_S = 60


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("access")


def hummock(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hummock", *arguments]
    env = {**os.environ, **environ}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)


def token_of(data: Path, name: str, *scopes: str) -> str:
    return TokenFile(data).create(name, [Scope.parse(scope) for scope in scopes], now_s=1.0)[1]


def code_of(call: Any) -> grpc.StatusCode:
    with pytest.raises(HummockCallError) as caught:
        call()
    code: grpc.StatusCode = caught.value.code
    return code


def token_lines(directory: Path) -> list[dict[str, Any]]:
    """Lines of the audit log about tokens."""
    lines = map(json.loads, (directory / FILE_NAME).read_text().splitlines())
    of_tokens = [line for line in lines if line["method"] == "hummock tokens"]
    return [{name: line[name] for name in ("outcome", "made", "revoked", "counts")} for line in of_tokens]


@contextmanager
def killed_at_the_end(popen: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        popen.kill()


def test_a_token_is_made_used_and_revoked_while_the_service_runs(data: Path, models_dir: Path, model: str) -> None:
    """X11: through the commands, as an operator does it."""
    directory = data / "main"
    with in_process(directory, models_dir, model) as service:
        with Client(service.target) as nobody:
            nobody.note("shop", "before there were tokens")
            made = hummock("tokens", "create", "ci", "--scope", "shop:learn", "--json", "--data", str(directory))
            assert made.returncode == 0, made.stderr
            assert "every call over a port needs a token" in made.stderr
            told = json.loads(made.stdout)
            assert told["scopes"] == ["shop:learn"]
            assert code_of(lambda: nobody.recall("shop", "x")) is grpc.StatusCode.UNAUTHENTICATED
        where = {"HUMMOCK_TARGET": service.target, "HUMMOCK_PROJECT": "shop"}
        secret = data / "token"
        secret.write_text(told["token"] + "\n")
        secret.chmod(0o600)
        # Through the commands: a unary call, a stream, one of another project, one without.
        by_file = {**where, "HUMMOCK_TOKEN_FILE": str(secret)}
        assert hummock("learn", "the lamp is lit", **by_file).returncode == 0
        found = hummock("recall", "which lamp?", HUMMOCK_TOKEN=told["token"], **where)
        assert "lamp" in found.stdout, found.stderr
        exported = hummock("export", "shop", **by_file)
        assert "the lamp is lit" in exported.stdout, exported.stderr
        foreign = hummock("recall", "x", **{**by_file, "HUMMOCK_PROJECT": "other"})
        assert "the token ci may not read this project" in foreign.stderr
        assert "HUMMOCK_TOKEN" in hummock("recall", "x", **where).stderr
        secret.chmod(0o644)
        assert f"chmod 600 {secret}" in hummock("recall", "x", **by_file).stderr
        # Revoked, it is refused at the next call.
        with Client(service.target, token=told["token"]) as ci:
            assert ci.recall("shop", "lamp").hits
            assert hummock("tokens", "revoke", "ci", "--data", str(directory)).returncode == 0
            assert code_of(lambda: ci.recall("shop", "lamp")) is grpc.StatusCode.UNAUTHENTICATED
    listed = json.loads(hummock("tokens", "ls", "--json", "--data", str(directory)).stdout)
    assert [(each["name"], each["state"]) for each in listed] == [("ci", "revoked")]
    assert told["token"] not in hummock("tokens", "ls", "--data", str(directory)).stdout
    verified = hummock("audit", "verify", "--json", "--data", str(directory))
    assert verified.returncode == 0
    assert json.loads(verified.stdout)["lines"] >= 2
    assert token_lines(directory) == [
        {"outcome": "CHANGED", "made": ["ci"], "revoked": [], "counts": {"live": 1, "made": 1, "revoked": 0}},
        {"outcome": "CHANGED", "made": [], "revoked": ["ci"], "counts": {"live": 0, "made": 0, "revoked": 1}},
    ]


def test_a_start_notes_whose_tokens_are_known(data: Path, models_dir: Path, model: str) -> None:
    """X12: what was made while no service ran is not missed."""
    directory = data / "known"
    text = token_of(directory, "ci", "shop:learn")
    with in_process(directory, models_dir, model) as service, Client(service.target, token=text) as ci:
        ci.note("shop", "the lamp is lit")
    assert token_lines(directory) == [
        {"outcome": "KNOWN", "made": ["ci"], "revoked": [], "counts": {"live": 1, "made": 1, "revoked": 0}}
    ]


@pytest.mark.lmdb("readers follow LMDB beside its writer")
@pytest.mark.skipif(sys.platform != "linux", reason="readers share a port as Linux does it")
def test_readers_and_http_ask_for_tokens_as_the_service_does(data: Path, models_dir: Path, model: str) -> None:
    """X11: whichever process a connection reaches, for recalls and for what is handed on."""
    directory = data / "readers"
    text = token_of(directory, "ci", "shop:learn")
    environ = {"HUMMOCK_READERS": "1", "HUMMOCK_HTTP_PORT": "0"}
    with in_process(directory, models_dir, model, environ) as service:
        with Client(service.target, token=text) as ci:
            ci.note("shop", "the lamp is lit")
        # A connection each, so that both processes are met.
        for _ in range(12):
            with Client(service.target, token=text) as ci:
                assert ci.recall("shop", "lamp").hits
                assert code_of(lambda ci=ci: ci.recall("other", "lamp")) is grpc.StatusCode.PERMISSION_DENIED
                assert code_of(lambda ci=ci: ci.note("other", "x")) is grpc.StatusCode.PERMISSION_DENIED
            with Client(service.target) as nobody:
                assert code_of(lambda nobody=nobody: nobody.recall("shop", "x")) is grpc.StatusCode.UNAUTHENTICATED
                assert code_of(lambda nobody=nobody: nobody.note("shop", "x")) is grpc.StatusCode.UNAUTHENTICATED


def test_http_before_a_unix_socket_asks_for_a_token_though_the_socket_does_not(
    data: Path, models_dir: Path, model: str
) -> None:
    """All users of the machine reach HTTP; the socket is its owner's."""
    directory, port = data / "unix", free_port()
    text = token_of(directory, "ci", "shop:learn")
    environ = {"HUMMOCK_UNIX_SOCKET": str(data / "u.sock"), "HUMMOCK_HTTP_PORT": str(port)}
    with in_process(directory, models_dir, model, environ) as service:
        with Client(service.target) as owner:
            owner.note("shop", "the lamp is lit")

        def post(**headers: str) -> tuple[int, str]:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
                body = json.dumps({"project": "shop", "queryText": "lamp"})
                sent = {"Content-Type": "application/json", **headers}
                connection.request("POST", "/hummock.v1.ContextService/Recall", body, sent)
                response = connection.getresponse()
                return response.status, response.read().decode()

        assert post()[0] == 401
        assert post(Authorization="Bearer x")[0] == 401
        assert post(Authorization="Bearer \xff")[0] == 401
        status, said = post(Authorization=f"Bearer {text}")
        assert (status, "the lamp is lit" in said) == (200, True)


def test_a_hangup_reloads_the_level_of_the_log_and_the_bar_of_slow_calls(
    data: Path, models_dir: Path, model: str
) -> None:
    directory, config = data / "hup", data / "hummock.toml"
    config.write_text('log_level = "error"\nslow_call_ms = 1\n')
    directory.mkdir(mode=0o755)
    env = {
        **os.environ,
        "HUMMOCK_CONFIG": str(config),
        "HUMMOCK_DATA": str(directory),
        "HUMMOCK_MODELS": str(models_dir),
        "HUMMOCK_MODEL": model,
        "HUMMOCK_TOKEN": "meant for clients",
    }
    command = [sys.executable, "-m", "hummock", "serve", "--port", "0", "--log-json"]
    with (
        subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as popen,
        killed_at_the_end(popen),
    ):
        assert popen.stdout is not None
        target = popen.stdout.readline().removeprefix(SERVING_ON).strip()
        said = Said(popen)
        assert "chmod 700" in said.until("warning: other users")
        with Client(target, token="") as client:
            client.note("shop", "hunter2 is quiet")
            config.write_text('log_level = "info"\nslow_call_ms = 1\n')
            popen.send_signal(signal.SIGHUP)
            said.until("SIGHUP: the log's level is info")
            client.note("shop", "hunter2 is slow")
            slow = json.loads(said.until("slow_call"))
            assert (slow["method"], slow["projects"]) == ("/hummock.v1.ContextService/Learn", ["shop"])
            assert said.text.count('"slow_call"') == 1
            config.write_text('log_level = "loud"\n')
            popen.send_signal(signal.SIGHUP)
            said.until("the settings stay as they are")
            client.note("shop", "hunter2 goes on")
        popen.terminate()
        assert popen.wait(TOO_LONG_S) == 0
        assert "hunter2" not in said.text


class Said:
    """Output of a process to stderr, line by line."""

    def __init__(self, popen: subprocess.Popen[str]) -> None:
        assert popen.stderr is not None
        self._stream = popen.stderr
        self.text = ""

    def until(self, part: str) -> str:
        """The next line that holds this."""
        while True:
            line = self._stream.readline()
            assert line, f"it ended without saying {part}: {self.text}"
            self.text += line
            if part in line:
                return line


def test_an_address_of_the_network_needs_a_token_and_says_how_to_make_one(data: Path, models_dir: Path) -> None:
    """X11."""
    directory = data / "network"
    arguments = ("serve", "--host", "0.0.0.0", "--port", "0", "--data", str(directory), "--models", str(models_dir))  # noqa: S104 # refused
    refused = hummock(*arguments)
    assert refused.returncode == 1
    assert re.search(r"not encrypted.*tls_certificate", refused.stderr)
    assert not directory.exists() or not list(directory.glob("*.mdb"))
    plain = hummock(*arguments, "--allow-remote-plaintext")
    assert plain.returncode == 1
    assert "hummock tokens create NAME --scope" in plain.stderr
