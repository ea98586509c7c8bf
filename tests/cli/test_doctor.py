"""`hummock doctor`, with faults planted in directories, settings, the machine and the service."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bench import toy_models
from hummock.access.tokens import TokenFile
from hummock.cli.main import app
from hummock.core.access import Scope
from hummock.store.lmdb.files import DirectoryLock
from hummock.store.upkeep.backup import KnownBackup, note_backup
from tests.cli import fake_service
from tests.cli.fake_service import FakeService
from tests.service.running import in_process
from tests.store.opening import MIB, opened
from tests.store.test_fsck import altered
from tests.store.test_project_removal import fill
from tests.strategies import SPACE

pytestmark = pytest.mark.long

Doctor = Callable[..., Result]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of models with one in it."""
    directory = tmp_path_factory.mktemp("tiny")
    toy_models.build_tiny(directory)
    return directory


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A sound directory with memories, of the tiny model."""
    with opened(tmp_path / "data", space=replace(SPACE, model=toy_models.TINY)) as store:
        fill(store)
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny: Path) -> None:
    """Settings of a machine on which nothing listens at the service's address."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUMMOCK_MODELS", str(tiny))
    monkeypatch.setenv("HUMMOCK_PORT", "0")
    monkeypatch.setenv("HOME", str(tmp_path))


def run(*arguments: object) -> Result:
    """The command; what it does not expect is not hidden."""
    return CliRunner().invoke(app, ["doctor", *map(str, arguments)], catch_exceptions=False)


def found(data: Path, level: str) -> dict[str, str]:
    """Findings of a level, with the commands that fix them."""
    findings = json.loads(run("--data", data, "--json").stdout)["findings"]
    return {each["what"]: each["command"] for each in findings if each["level"] == level}


def back_up(data: Path) -> None:
    made = CliRunner().invoke(app, ["backup", str(data.parent / "backups"), "--data", str(data)])
    assert made.exit_code == 0, made.output


def test_a_sound_directory_ends_with_nothing_to_mend(data: Path) -> None:
    back_up(data)
    done = run("--data", data)
    assert done.exit_code == 0, done.output
    assert "error" not in done.stdout
    assert done.stdout.splitlines()[-1].endswith(" checks fine")
    assert found(data, "error") == {}
    fine = found(data, "ok")
    assert f"the data file is whole, with vectors of {toy_models.TINY}" in fine
    assert f"model {toy_models.TINY} is as it was published" in fine
    assert "no service runs" in fine
    assert not any(what.startswith("there is no backup") for what in found(data, "warning"))


def test_a_machine_without_a_directory_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUMMOCK_MODEL", toy_models.TINY)
    done = run("--data", tmp_path / "none")
    assert done.exit_code == 0, done.output
    assert any("the first `hummock serve` makes it" in what for what in found(tmp_path / "none", "ok"))
    assert not (tmp_path / "none").exists()


def test_errors_come_first_each_with_its_command(data: Path) -> None:
    data.chmod(0o755)
    tokens = TokenFile(data)
    tokens.create("ide", [Scope.parse("shop:learn")], now_s=1.0)
    tokens.path.chmod(0o644)
    done = run("--data", data)
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0] == f"error    {tokens.path} is open to other users; chmod 600 {tokens.path}"
    assert lines[1].startswith(f"         $ chmod 600 {tokens.path}")
    assert f"warning  other users may look into {data} (mode 755)" in lines
    assert f"         $ chmod 700 {data}" in lines
    data.chmod(0o700)
    tokens.path.chmod(0o600)
    assert run("--data", data).exit_code == 0


def _cut(data: Path) -> None:
    os.truncate(data / "data.mdb", 3 * 4096)


def _emptied(data: Path) -> None:
    os.truncate(data / "data.mdb", 0)


def _lost(data: Path) -> None:
    (data / "data.mdb").unlink()


def _garbage(data: Path) -> None:
    (data / "data.mdb").write_bytes(b"no database " * 4096)


def _directory(data: Path) -> None:
    (data / "data.mdb").unlink()
    (data / "data.mdb").mkdir()


def _record(data: Path) -> None:
    altered(data, lambda tables: tables.put("meta", b"directory", b"\xff\xff"))


@pytest.mark.parametrize("damage", [_cut, _emptied, _lost, _garbage, _directory, _record])
def test_a_damaged_directory_is_to_be_restored(data: Path, damage: Callable[[Path], None]) -> None:
    damage(data)
    assert run("--data", data).exit_code == 1
    [(what, command)] = found(data, "error").items()
    assert str(data) in what
    assert command == "hummock restore BACKUPS --data NEW_DIR"


def test_names_of_no_project_are_told_without_the_names(data: Path) -> None:
    altered(data, lambda tables: tables.put("project", b"nsecret", b"\x00\x00\x00\x63"))
    [(what, command)] = found(data, "error").items()
    assert "a name is that of no project" in what
    assert "secret" not in what
    assert command == f"hummock fsck --data {data}"


def test_keys_and_numbers_that_are_cut_are_a_finding(data: Path) -> None:
    """`hummock fsck`, to which it leads, says them too."""
    altered(data, lambda tables: tables.put("project", b"nname", b"\x00"))
    altered(data, lambda tables: tables.put("memory", b"\xff", b""))
    [(what, _)] = found(data, "error").items()
    for problem in ("a name's project cannot be read", "table memory has keys that cannot be read"):
        assert problem in what
        assert problem in CliRunner().invoke(app, ["fsck", "--data", str(data)], catch_exceptions=False).stdout


def test_a_file_in_the_place_of_the_directory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert any("is no directory" in what for what in found(tmp_path / "file", "error"))


def test_backups_that_are_old_missing_or_unknown_are_told(data: Path, tmp_path: Path) -> None:
    assert found(data, "warning")["there is no backup"] == f"hummock save backup BACKUPS --data {data}"
    note_backup(data, KnownBackup(directory=str(tmp_path / "away"), name="b", time=0.0))
    [command] = [command for what, command in found(data, "warning").items() if "the newest backup is" in what]
    assert command == f"hummock save backup {tmp_path / 'away'} --data {data}"
    (data / "backups.json").write_text("[{")
    assert any("backups.json is damaged" in what for what in found(data, "warning"))


def test_models_that_are_missing_altered_or_of_another_name_are_told(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "models"
    monkeypatch.setenv("HUMMOCK_MODELS", str(own))
    toy_models.build_tiny(own)
    pull = f"hummock models pull {toy_models.TINY} --models {own}"
    with (own / toy_models.TINY / "tokenizer.json").open("ab") as file:
        file.write(b" ")
    assert [command for what, command in found(data, "error").items() if "SHA-256" in what] == [pull]
    (own / toy_models.TINY / "tokenizer.json").unlink()
    assert [command for what, command in found(data, "warning").items() if "a start fetches it" in what] == [pull]
    monkeypatch.setenv("HUMMOCK_MODEL", "bge-m3")
    assert any("the settings name bge-m3" in what for what in found(data, "error"))


def test_a_quota_that_is_nearly_reached_is_told(data: Path, fake: FakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    at(fake, data, monkeypatch, {"usedBytes": "900", "quotaBytes": "1000"})
    assert any(what.startswith("the store uses") for what in found(data, "warning"))
    at(fake, data, monkeypatch, {"usedBytes": "1000", "quotaBytes": "1000"})
    assert any("nothing more is stored" in what for what in found(data, "error"))


def test_a_disk_without_room_is_told(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimpleNamespace(total=1000 * MIB, used=900 * MIB, free=100 * MIB)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: disk)
    assert found(data, "error") == {}
    assert f"the disk of {data} has 100 of 1000 MiB free" in found(data, "warning")
    disk.free = 63 * MIB
    assert any("63 of 1000 MiB free" in what for what in found(data, "error"))


def test_a_place_for_kernels_or_a_setting_that_cannot_be_is_told(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null/kernels")
    assert any("NUMBA_CACHE_DIR /dev/null/kernels" in what for what in found(data, "warning"))
    monkeypatch.setenv("HUMMOCK_WORKERS", "many")
    assert run("--data", data).exit_code == 1
    assert any("workers" in what for what in found(data, "error"))


def test_few_open_files_are_told_by_the_real_command(data: Path) -> None:
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512))  # noqa: E731
    command = [sys.executable, "-m", "hummock", "doctor", "--data", str(data)]
    done = subprocess.run(command, preexec_fn=few, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning  a process may open 512 files" in done.stdout


@pytest.mark.parametrize("expired", [True, False])
def test_a_certificate_is_looked_at(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, expired: bool
) -> None:
    pytest.importorskip("cryptography")
    from tests.conformance.certificates import Authority

    signed = Authority().signed(expired=expired)
    (tmp_path / "tls.pem").write_bytes(signed.certificate)
    (tmp_path / "tls.key").write_bytes(signed.key)
    monkeypatch.setenv("HUMMOCK_TLS_CERTIFICATE", str(tmp_path / "tls.pem"))
    monkeypatch.setenv("HUMMOCK_TLS_KEY", str(tmp_path / "tls.key"))
    if expired:
        assert any("certificate has expired" in what for what in found(data, "error"))
    else:
        assert any("tls.pem is valid for 36" in what for what in found(data, "ok"))
        (tmp_path / "tls.key").write_text("no key")
        assert any("tls.key" in what for what in found(data, "error"))


def at(fake: FakeService, data: Path, monkeypatch: pytest.MonkeyPatch, storage: dict[str, Any]) -> None:
    """Makes the fake the service on the directory."""
    monkeypatch.setenv("HUMMOCK_PORT", fake.target.rpartition(":")[2])
    monkeypatch.setitem(fake_service.STATUS, "storage", {"directory": str(data), "quotaBytes": "1000"} | storage)


def test_what_the_service_says_of_itself_is_told(
    data: Path, fake: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = {"writeState": "WRITE_STATE_REFUSED", "writeFault": "the disk takes no more", "damagedCount": 3}
    at(fake, data, monkeypatch, refused | {"clockAhead": "8640000s"})
    monkeypatch.setitem(fake_service.STATUS, "version", "0.0.1")
    monkeypatch.setitem(fake_service.STATUS, "embedding", {"pendingCount": 7})
    errors, warnings = found(data, "error"), found(data, "warning")
    assert "the service stores nothing: the disk takes no more" in errors
    assert errors["the service found 3 memories damaged"] == f"hummock fsck --data {data}"
    assert any("the service is Hummock 0.0.1" in what for what in warnings)
    assert any("7 memories wait for their vectors" in what for what in warnings)
    assert any("the clock of the service is 8640000 s ahead" in what for what in warnings)


def test_another_service_at_the_address_is_told(data: Path, fake: FakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    at(fake, data.parent, monkeypatch, {})
    [(what, command)] = found(data, "error").items()
    assert "is taken by Hummock 0.1.0 over" in what
    assert command == f"hummock serve --data {data} --port PORT"


def test_a_stranger_at_the_address_is_told(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        monkeypatch.setenv("HUMMOCK_PORT", str(stranger.getsockname()[1]))
        assert any("is taken by another process" in what for what in found(data, "error"))


def test_a_lock_that_nobody_holds_or_that_a_process_holds_silently_is_told(data: Path) -> None:
    assert (data / "lock").exists()
    assert "nobody has the data directory" in found(data, "ok")
    lock = DirectoryLock(data)
    try:
        assert run("--data", data).exit_code == 0
        assert any(f"process {os.getpid()} has" in what for what in found(data, "warning"))
    finally:
        lock.release()


def test_a_running_service_is_asked(tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_process(tmp_path / "live", tiny, toy_models.TINY) as service:
        monkeypatch.setenv("HUMMOCK_PORT", service.target.rpartition(":")[2])
        fine = found(tmp_path / "live", "ok")
        assert f"a service answers at {service.target}" in fine
        assert f"process {service.popen.pid} has the data directory" in fine
        assert "the service stores what it is given" in fine
        assert run("--data", tmp_path / "live").exit_code == 0
