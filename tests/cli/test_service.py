"""`hummock service`: units of systemd and launchd. Only the machine's manager is a stand-in, which notes its calls."""

from __future__ import annotations

import json
import os
import plistlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hummock.cli.main import app
from hummock.store.lmdb.files import DirectoryLock

Run = Callable[..., Result]

_MANAGER = """#!/bin/sh
echo "$(basename "$0") $*" >> "{folder}/calls"
if [ -e "{folder}/refuses" ]; then echo "Failed to connect to bus: No medium found" >&2; exit 1; fi
case "$*" in
*" show "*) cat "{folder}/shown" ;;
"print gui/"*/*) test -e "{folder}/loaded" && cat "{folder}/loaded" ;;
bootstrap*) touch "{folder}/loaded" ;;
bootout*) rm "{folder}/loaded" ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a home, and with the stand-ins that come before the real managers on the PATH."""
    folder = tmp_path / "a machine"
    (folder / "bin").mkdir(parents=True)
    for name in ("systemctl", "launchctl"):
        program = folder / "bin" / name
        program.write_text(_MANAGER.format(folder=folder), encoding="utf-8")
        program.chmod(0o755)
    (folder / "shown").write_text("ActiveState=active\nMainPID=4711\n", encoding="utf-8")
    (folder / "home").mkdir()
    monkeypatch.setenv("PATH", str(folder / "bin"), prepend=":")
    monkeypatch.setenv("HOME", str(folder / "home"))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "HUMMOCK_CONFIG", "HUMMOCK_DATA", "HUMMOCK_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    return folder


@pytest.fixture
def run(folder: Path) -> Run:
    return lambda *arguments: CliRunner().invoke(app, ["service", *map(str, arguments)])


def unit_of(folder: Path) -> Path:
    return folder / "home" / ".config" / "systemd" / "user" / "hummock.service"


def calls_of(folder: Path) -> list[str]:
    """Calls to the manager, after the question whether it is there."""
    calls = (folder / "calls").read_text(encoding="utf-8").splitlines()
    return [call for call in calls if call != "systemctl --user show-environment"]


def test_a_unit_is_installed_enabled_and_started(run: Run, folder: Path) -> None:
    done = run("install", "--data", folder / "my data", "--port", "7431", "--console", "--log-text")
    assert done.exit_code == 0, done.output
    lines = unit_of(folder).read_text(encoding="utf-8").splitlines()
    serve = f'ExecStart="{sys.executable}" "-P" "-m" "hummock" "serve"'
    assert f'{serve} "--data" "{folder}/my data" "--port" "7431" "--console" "--log-text"' in lines
    assert {"Restart=on-failure", "WantedBy=default.target", "UMask=0077"} <= set(lines)
    assert calls_of(folder) == [
        "systemctl --user daemon-reload",
        "systemctl --user enable --now hummock.service",
        "systemctl --user restart hummock.service",
    ]
    assert unit_of(folder).stat().st_mode & 0o777 == 0o600


def test_the_same_again_changes_nothing_and_other_options_start_it_anew(run: Run, folder: Path) -> None:
    run("install")
    (folder / "calls").unlink()
    again = run("install", "--json")
    assert json.loads(again.stdout)["changed"] is False
    assert "systemctl --user restart hummock.service" not in calls_of(folder)
    changed = run("install", "--readers", "2", "--json")
    assert json.loads(changed.stdout)["command"][-2:] == ["--readers", "2"]
    assert calls_of(folder)[-1] == "systemctl --user restart hummock.service"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("a b", "a b"),
        ("100%", "100%%"),
        ("$HOME", "$$HOME"),
        ('say "hi"', 'say \\"hi\\"'),
        ("back\\slash", "back\\\\slash"),
    ],
    ids=lambda text: text,
)
def test_a_path_is_quoted_as_systemd_reads_it(run: Run, folder: Path, path: str, shown: str) -> None:
    done = run("install", "--dry-run", "--data", f"/srv/{path}")
    assert f'"--data" "/srv/{shown}"' in done.stdout


def test_a_path_becomes_absolute_and_a_missing_systemctl_is_said(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert f'"--data" "{folder}/here"' in run("install", "--dry-run", "--data", "here").stdout
    monkeypatch.setenv("PATH", str(folder / "home"))
    refused = run("install")
    assert refused.exit_code == 1
    assert "systemctl is missing" in refused.stderr


def test_what_serve_does_not_take_and_a_dry_run_write_no_unit(run: Run, folder: Path) -> None:
    shown = run("install", "--dry-run", "--json")
    said = json.loads(shown.stdout)
    assert (said["unit"], said["text"].splitlines()[0]) == (str(unit_of(folder)), "[Unit]")
    assert not unit_of(folder).exists()
    assert not (folder / "calls").exists()
    refused = run("install", "--rocket")
    assert refused.exit_code == 2
    assert "--rocket" in refused.output
    assert not unit_of(folder).exists()
    refused = run("install", "--data", "/srv/two\nlines")
    assert refused.exit_code == 1
    assert "no unit can hold" in refused.stderr
    assert not unit_of(folder).exists()


def test_without_a_manager_it_says_so_and_writes_nothing(run: Run, folder: Path) -> None:
    (folder / "refuses").touch()
    for command in ("install", "status"):
        refused = run(command)
        assert refused.exit_code == 1
        assert "no systemd runs for this user (Failed to connect to bus: No medium found)" in refused.stderr
        assert "loginctl enable-linger" in refused.stderr
    assert not unit_of(folder).exists()


def test_a_directory_that_another_service_has_is_left_to_it(run: Run, folder: Path) -> None:
    (folder / "data").mkdir()
    lock = DirectoryLock(folder / "data")
    refused = run("install", "--data", folder / "data")
    lock.release()
    assert refused.exit_code == 1
    assert "hummock stop" in refused.stderr
    assert not unit_of(folder).exists()


def test_a_setting_of_the_shell_that_the_unit_lacks_is_named(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUMMOCK_LOG_JSON", "true")
    monkeypatch.setenv("HUMMOCK_CONFIG", str(folder / "hummock.toml"))
    (folder / "hummock.toml").write_text("", encoding="utf-8")
    done = run("install")
    assert "HUMMOCK_LOG_JSON is set here and not in the unit" in done.stderr
    assert f'Environment="HUMMOCK_CONFIG={folder}/hummock.toml"' in unit_of(folder).read_text(encoding="utf-8")


def test_the_status_is_the_managers(run: Run, folder: Path) -> None:
    assert "not installed" in run("status").stdout
    run("install")
    shown = run("status")
    assert (shown.exit_code, shown.stdout) == (0, f"active (process 4711): {unit_of(folder)}\n")
    (folder / "shown").write_text("ActiveState=failed\nMainPID=0\n", encoding="utf-8")
    failed = run("status", "--json")
    assert failed.exit_code == 1
    said = json.loads(failed.stdout)
    assert (said["is_installed"], said["is_running"], said["state"], said["pid"]) == (True, False, "failed", 0)


def test_uninstall_removes_the_unit_and_leaves_the_data(run: Run, folder: Path) -> None:
    data = folder / "data"
    data.mkdir()
    (data / "memories").write_text("kept", encoding="utf-8")
    run("install", "--data", data)
    assert "would be removed" in run("uninstall", "--dry-run").stdout
    assert unit_of(folder).exists()
    (folder / "calls").unlink()
    assert json.loads(run("uninstall", "--json").stdout)["removed"] is True
    assert calls_of(folder) == ["systemctl --user disable --now hummock.service", "systemctl --user daemon-reload"]
    assert not unit_of(folder).exists()
    assert (data / "memories").read_text(encoding="utf-8") == "kept"
    again = run("uninstall")
    assert (again.exit_code, again.stdout) == (0, f"not installed: {unit_of(folder)}\n")


def test_on_macos_it_is_an_agent_of_launchd(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(os, "getuid", lambda: 501)
    agent = folder / "home" / "Library" / "LaunchAgents" / "dev.hummock.plist"
    done = run("install", "--data", folder / "my data")
    assert done.exit_code == 0, done.output
    said = plistlib.loads(agent.read_bytes())
    assert (said["Label"], said["RunAtLoad"], said["KeepAlive"]) == ("dev.hummock", True, {"SuccessfulExit": False})
    serve = [sys.executable, "-P", "-m", "hummock", "serve"]
    assert said["ProgramArguments"] == [*serve, "--data", str(folder / "my data")]
    assert calls_of(folder)[-2:] == ["launchctl enable gui/501/dev.hummock", f"launchctl bootstrap gui/501 {agent}"]
    (folder / "loaded").write_text("\tstate = running\n\tpid = 815\n", encoding="utf-8")
    assert run("status").stdout == f"running (process 815): {agent}\n"
    run("install", "--data", folder / "my data", "--port", "7431")
    assert "launchctl bootout gui/501/dev.hummock" in calls_of(folder)
    assert "removed" in run("uninstall").stdout
    assert not agent.exists()


def test_systemd_finds_no_fault_in_the_unit(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is missing, which reads a unit as systemd does")
    run("install", "--data", folder / '100% of $HOME, "it\'s" here')
    # A short path, for units of other packages have sockets there.
    with tempfile.TemporaryDirectory() as runtime:
        environ = {"XDG_RUNTIME_DIR": runtime, "HOME": str(folder / "home"), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            [analyze, "--user", "verify", unit_of(folder)], env=environ, capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")
