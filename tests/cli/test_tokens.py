"""`hummock tokens` and `hummock audit`, on a data directory alone."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hummock.access.audit import FILE_NAME, AuditLog
from hummock.access.authenticator import Authenticator, Exposure
from hummock.access.tokens import TokenFile
from hummock.cli.main import app
from tests.cli.conftest import Run
from tests.cli.fake_service import FakeService

pytestmark = pytest.mark.long


def run_on(data: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--data", str(data)])


def test_a_token_is_shown_once_and_known_by_the_authenticator(tmp_path: Path) -> None:
    made = run_on(tmp_path, "tokens", "create", "ci", "--scope", "shop-*:learn", "--expires", "2999-01-01")
    assert made.exit_code == 0, made.stderr
    text = made.stdout.strip()
    caller = Authenticator(tmp_path, Exposure.MACHINE).caller(f"Bearer {text}")
    assert (caller.name, [str(scope) for scope in caller.scopes]) == ("ci", ["shop-*:learn"])
    listed = run_on(tmp_path, "tokens", "ls")
    assert text not in listed.stdout
    assert "shop-*:learn" in listed.stdout
    (shown,) = json.loads(run_on(tmp_path, "tokens", "ls", "--json").stdout)
    assert (shown["name"], shown["state"], shown["expires"]) == ("ci", "live", "2999-01-01T00:00:00+00:00")
    assert "sha256" not in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "ci"), "--scope"),
        (("create", "ci", "--scope", "shop"), "PROJECT:VERB"),
        (("create", "ci", "--scope", "shop:write"), "PROJECT:VERB"),
        (("create", "a b", "--scope", "shop:read"), "no name of a token"),
        (("create", "ci", "--scope", "shop:read", "--expires", "2001-01-01"), "expired already"),
        (("revoke", "ci"), "no token ci"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    result = run_on(tmp_path, "tokens", *arguments)
    assert result.exit_code != 0
    assert said in " ".join(result.stderr.replace("│", " ").split())
    assert TokenFile(tmp_path).read() == ()


def test_a_changed_line_of_the_audit_log_fails_the_command(tmp_path: Path) -> None:
    """X12."""
    log = AuditLog(tmp_path)
    for who in ("a", "b", "c"):
        log.append({"who": who}, time.time())
    log.close()
    whole = run_on(tmp_path, "audit", "verify")
    assert whole.exit_code == 0
    head = whole.stdout.split()[-1]
    assert json.loads(run_on(tmp_path, "audit", "verify", "--json", "--head", head).stdout)["last"] == 3
    file = tmp_path / FILE_NAME
    file.write_bytes(file.read_bytes().replace(b'"b"', b'"x"'))
    broken = run_on(tmp_path, "audit", "verify", "--head", head)
    assert broken.exit_code == 1
    assert "audit.jsonl:3: the line before it was removed or changed" in broken.stderr


def test_commands_send_the_token_of_the_environment_with_every_shape_of_call(
    run: Run, fake: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUMMOCK_TOKEN", "s3cret")
    assert run("recall", "x").exit_code == 0
    assert run("status").exit_code == 0
    assert set(fake.tokens) == {"Bearer s3cret"}
    monkeypatch.setenv("HUMMOCK_TOKEN", "two words")
    refused = run("recall", "x")
    assert refused.exit_code == 1
    assert "the token has characters" in refused.stderr


def test_no_command_sends_a_token_to_another_machine_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUMMOCK_TOKEN", "s3cret")
    for command in (("status",), ("mcp", "--project", "p"), ("index", ".", "--project", "p", "--watch")):
        result = CliRunner().invoke(app, [*command, "--target", "memory.example.org:7420"])
        assert result.exit_code == 1, command
        assert "is not sent to memory.example.org:7420 in the clear" in result.stderr
        assert "s3cret" not in result.output
