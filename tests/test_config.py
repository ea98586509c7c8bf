"""Settings: which source wins, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from hummock.config import Settings, SettingsInvalid, default_data_dir, load_settings
from hummock.core.errors import StartError

HOME = {"HOME": "/home/someone"}


def write(directory: Path, text: str) -> Path:
    (directory / "hummock.toml").write_text(text, encoding="utf-8")
    return directory


def test_defaults_are_a_loopback_service_below_the_platforms_data_directory(tmp_path: Path) -> None:
    settings = load_settings(environ=HOME, directory=tmp_path)
    assert (settings.host, settings.port, settings.model) == ("127.0.0.1", 7420, "auto")
    assert settings.data_dir == default_data_dir(HOME, sys.platform)
    assert settings.models_dir == settings.data_dir / "models"
    assert settings.storage.map_bytes == 64 << 30
    assert settings.unix_socket is None
    assert settings.workers >= 1


def test_file_environment_and_flags_win_in_this_order(tmp_path: Path) -> None:
    write(tmp_path, 'port = 1\nhost = "file"\nmodel = "file"\ndata_dir = "/file"\n[storage]\nquota_bytes = 2000000\n')
    environ = {"HUMMOCK_PORT": "2", "HUMMOCK_HOST": "environment", "HUMMOCK_STORAGE_MAP_BYTES": "3000000"}
    settings = load_settings({"port": 3, "host": None}, environ, tmp_path)
    assert (settings.port, settings.host, settings.model) == (3, "environment", "file")
    assert (settings.storage.quota_bytes, settings.storage.map_bytes) == (2_000_000, 3_000_000)


def test_models_lie_in_the_data_directory_unless_named(tmp_path: Path) -> None:
    environ = {"HUMMOCK_DATA": "/srv/数据", "HUMMOCK_PORT": "1"}
    settings = load_settings(environ=environ, directory=tmp_path)
    assert (settings.data_dir, settings.models_dir) == (Path("/srv/数据"), Path("/srv/数据/models"))
    assert settings.port == 1
    named = load_settings(environ={**environ, "HUMMOCK_MODELS": "/srv/models"}, directory=tmp_path)
    assert (named.data_dir, named.models_dir) == (settings.data_dir, Path("/srv/models"))


def test_relative_directories_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings({"data_dir": "data"}, {}).data_dir == tmp_path / "data"


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [("prot = 1", "prot", "port"), ("[storage]\nqouta_bytes = 1", "storage.qouta_bytes", "storage.quota_bytes")],
)
def test_an_unknown_key_of_the_file_is_named_with_the_file(tmp_path: Path, text: str, key: str, meant: str) -> None:
    write(tmp_path, text)
    with pytest.raises(SettingsInvalid) as caught:
        load_settings(environ={"HUMMOCK_DATA": "/d"}, directory=tmp_path)
    assert caught.value.key == key
    said = f"{tmp_path / 'hummock.toml'}: {key}: is not a setting; did you mean {meant}?; known: data_dir, store, host"
    assert str(caught.value).startswith(said)
    assert "storage.quota_bytes" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("HUMMOCK_PROT", "HUMMOCK_PROT is no setting and does nothing; did you mean HUMMOCK_PORT?"),
        ("HUMMOCK_DATA_DIR", "did you mean HUMMOCK_DATA?"),
        ("HUMMOCK_STORAGE_QOUTA_BYTES", "did you mean HUMMOCK_STORAGE_QUOTA_BYTES?"),
        ("HUMMOCK_TOKENFILE", "did you mean HUMMOCK_TOKEN_FILE?"),
        ("HUMMOCK_ZZZ", "HUMMOCK_ZZZ is no setting and does nothing"),
        ("HUMMOCK_", "HUMMOCK_ is no setting and does nothing"),
    ],
)
def test_an_unknown_variable_of_the_environment_is_a_warning_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, said: str
) -> None:
    for _ in range(2):
        settings = load_settings(environ={"HUMMOCK_DATA": "/d", name: "1"}, directory=tmp_path)
    assert (settings.data_dir, settings.port) == (Path("/d"), 7420)
    assert len(caplog.messages) == 1
    assert caplog.messages[0].endswith(said)


def test_what_kubernetes_and_docker_tell_of_services_sets_nothing_and_is_not_worth_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    environ = {"HUMMOCK_DATA": "/d"}
    # Services of these names: the variables of some are those of settings.
    for service in ("HUMMOCK", "HUMMOCK_WEB", "HUMMOCK_HTTP", "HUMMOCK_METRICS", "HUMMOCK_CONSOLE", "HUMMOCK_TARGET"):
        for port, scheme in ((7420, "tcp"), (53, "udp")):
            link = f"{service}_PORT_{port}_{scheme.upper()}"
            address = f"{scheme}://10.0.0.7:{port}"
            environ |= {f"{service}_SERVICE_HOST": "10.0.0.7", f"{service}_SERVICE_PORT": "7420"}
            environ |= {f"{service}_SERVICE_PORT_GRPC": "7420", f"{service}_PORT": address, link: address}
            environ |= {f"{link}_PROTO": scheme, f"{link}_PORT": str(port), f"{link}_ADDR": "10.0.0.7"}
            environ |= {f"{service}_ENV_PYTHON_VERSION": "3.11"}
    settings = load_settings(environ=environ, directory=tmp_path)
    assert (settings.port, settings.http_port, settings.metrics_port, settings.console_port) == (7420, None, None, None)
    assert caplog.messages == []


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "hummock.toml").write_bytes(b"\xef\xbb\xbf# \xe6\x95\xb0\nport = 1\r\n")
    assert load_settings(environ={"HUMMOCK_DATA": "/d"}, directory=tmp_path).port == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"port = 1\n# caf\xe9\n", "is not UTF-8: byte 14 (line 2) is 0xe9; save it as UTF-8"),
        (b"\xef\xbb\xbf# caf\xe9\n", "is not UTF-8: byte 8 (line 1) is 0xe9; save it as UTF-8"),
        ("# 端口\nport = 1\n".encode("gbk"), "is not UTF-8: byte 2 (line 1) is 0xb6; save it as UTF-8"),
        ("port = 1\n".encode("utf-16"), "is not UTF-8 but UTF-16: byte 3 is 0x00; save it as UTF-8"),
        ("port = 1\n".encode("utf-16-be"), "is not UTF-8 but UTF-16: byte 0 is 0x00; save it as UTF-8"),
        (b"port = 1\xed\xa0\x80", "is not UTF-8: byte 8 (line 1) is 0xed; save it as UTF-8"),
        (b"port =", "is not valid TOML: Invalid value (at end of document)"),
    ],
)
def test_a_file_of_another_encoding_is_named_with_the_byte(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "hummock.toml"
    file.write_bytes(content)
    with pytest.raises(SettingsInvalid) as caught:
        load_settings(environ={"HUMMOCK_DATA": "/d"}, directory=tmp_path)
    assert str(caught.value) == f"{file}: {said}"


def test_variables_of_the_command_line_and_of_other_programs_are_left_alone(tmp_path: Path) -> None:
    """One environment serves the command line and the service that it starts."""
    of_clients = ("TOKEN", "TOKEN_FILE", "TLS", "TLS_CA", "CLIENT_CERTIFICATE", "CLIENT_KEY", "TARGET", "PROJECT")
    others = {"PORT": "1", "DATA_DIR": "/x", **{f"HUMMOCK_{name}": "x" for name in of_clients}}
    data = {"HUMMOCK_DATA": "/d"}
    settings = load_settings(environ=data | others, directory=tmp_path)
    assert (settings.port, settings.data_dir) == (7420, Path("/d"))
    assert settings == load_settings(environ=data, directory=tmp_path)


@pytest.mark.parametrize(
    ("flags", "environ", "origin", "key"),
    [
        ({"port": 70000}, {}, "command line", "port"),
        ({}, {"HUMMOCK_PORT": "abc"}, "environment", "port"),
        ({}, {"HUMMOCK_WORKERS": "0"}, "environment", "workers"),
        ({}, {"HUMMOCK_STORAGE_QUOTA_BYTES": "-1"}, "environment", "storage.quota_bytes"),
        ({}, {"HUMMOCK_LOG_LEVEL": "loud"}, "environment", "log_level"),
    ],
)
def test_an_impossible_value_is_named_with_its_source(
    tmp_path: Path, flags: dict[str, object], environ: dict[str, str], origin: str, key: str
) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        load_settings(flags, {"HUMMOCK_DATA": "/d", **environ}, tmp_path)
    assert (caught.value.origin, caught.value.key) == (origin, key)
    assert "; it is " in str(caught.value)


def test_a_wrong_data_directory_is_reported_as_itself(tmp_path: Path) -> None:
    write(tmp_path, "data_dir = 7")
    with pytest.raises(SettingsInvalid, match=r"data_dir: .*; it is 7"):
        load_settings(environ={}, directory=tmp_path)


def test_the_named_file_is_read_instead_of_the_working_directorys(tmp_path: Path) -> None:
    write(tmp_path, "port = 1")
    other = tmp_path / "other.toml"
    other.write_text("port = 2", encoding="utf-8")
    environ = {"HUMMOCK_CONFIG": str(other), "HUMMOCK_DATA": "/d"}
    assert load_settings(environ=environ, directory=tmp_path).port == 2


def test_without_a_home_the_message_names_the_variable_to_set(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="HUMMOCK_DATA"):
        load_settings(environ={}, directory=tmp_path)
    assert load_settings(environ={"HUMMOCK_DATA": "/d"}, directory=tmp_path).data_dir == Path("/d")


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [
        (HOME, "linux", "/home/someone/.local/share/hummock"),
        (HOME, "darwin", "/home/someone/Library/Application Support/hummock"),
        ({**HOME, "XDG_DATA_HOME": "/xdg"}, "linux", "/xdg/hummock"),
        ({**HOME, "XDG_DATA_HOME": "relative"}, "linux", "/home/someone/.local/share/hummock"),
    ],
)
def test_each_platform_has_its_place(environ: dict[str, str], platform: str, expected: str) -> None:
    assert default_data_dir(environ, platform) == Path(expected)


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    settings: Settings = load_settings(environ={"HUMMOCK_DATA": "/d"}, directory=tmp_path)
    with pytest.raises(ValidationError):
        settings.port = 1


def test_a_language_model_is_set_in_a_table_of_its_own(tmp_path: Path) -> None:
    environ = {**HOME, "HUMMOCK_LLM_API_KEY": "sk-secret", "HUMMOCK_INTENT": "llm"}
    write(tmp_path, '[llm]\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "m"\n')
    settings = load_settings(environ=environ, directory=tmp_path)
    assert (settings.intent, settings.llm.model, settings.llm.timeout_s) == ("llm", "m", 30.0)
    assert settings.llm.api_key.get_secret_value() == "sk-secret"
    assert "sk-secret" not in repr(settings)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('intent = "llm"\n[llm]\napi_key = "sk-secret"', "intent"),
        ('[llm]\nbase_url = "ftp://example"\napi_key = "sk-secret"', "llm.base_url"),
        ('[llm]\napi_key = ["sk-secret"]', "llm.api_key"),
        ('llm = "sk-secret"', "llm"),
    ],
)
def test_what_is_wrong_with_a_language_model_is_said_without_its_key(tmp_path: Path, text: str, key: str) -> None:
    write(tmp_path, text)
    with pytest.raises(SettingsInvalid) as caught:
        load_settings(environ=HOME, directory=tmp_path)
    assert caught.value.key == key
    assert "sk-secret" not in str(caught.value)


def test_a_reader_is_told_all_settings_and_the_secrets_that_are_shown_to_nobody_else(tmp_path: Path) -> None:
    environ = {"HUMMOCK_DATA": "/srv/data", "HUMMOCK_LLM_API_KEY": "a secret", "HUMMOCK_HTTP_HOSTS": "a.example"}
    environ["HUMMOCK_READERS"] = "3"
    settings = load_settings(environ=environ, directory=tmp_path)
    assert Settings.model_validate_json(settings.for_reader()) == settings
    assert "a secret" not in settings.model_dump_json()


@pytest.mark.parametrize(
    ("flags", "environ", "said"),
    [
        ({}, {"HUMMOCK_PORT": "http://x:1"}, r"^environment: port: "),
        ({}, {"HUMMOCK_CONFIG": "/d/absent.toml"}, r"^HUMMOCK_CONFIG: /d/absent\.toml does not exist$"),
        ({"readers": 2, "unix_socket": "/run/h.sock"}, {}, "readers share a port"),
        ({}, {"HUMMOCK_TLS_CERTIFICATE": "/c"}, "go together"),
        ({}, {"HUMMOCK_TLS_KEY": "/k"}, "go together"),
        ({}, {"HUMMOCK_TLS_CLIENT_CA": "/a"}, "needs tls_certificate and tls_key"),
    ],
)
def test_half_of_what_a_setting_needs_is_refused(
    tmp_path: Path, flags: dict[str, object], environ: dict[str, str], said: str
) -> None:
    with pytest.raises(SettingsInvalid, match=said):
        load_settings(flags, {"HUMMOCK_DATA": "/d", **environ}, tmp_path)


def test_names_stand_between_commas_or_in_a_list(tmp_path: Path) -> None:
    environ = {"HUMMOCK_DATA": "/d", "HUMMOCK_HTTP_HOSTS": " a.example, b.example:8443 ,"}
    assert load_settings(environ=environ, directory=tmp_path).http_hosts == ("a.example", "b.example:8443")
    write(tmp_path, 'http_hosts = ["c.example"]\n')
    assert load_settings(environ={"HUMMOCK_DATA": "/d"}, directory=tmp_path).http_hosts == ("c.example",)
