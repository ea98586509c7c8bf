"""Packages that are built: the wheel alone is a client, and the source distribution builds it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

from tests.conformance.certificates import Authority

pytestmark = pytest.mark.long

_ROOT = Path(__file__).parents[2]
_LIGHT = {"googleapis-common-protos", "grpcio", "grpcio-status", "protobuf", "rich", "typer"}
_HEAVY = (
    *("numpy", "numba", "lmdb", "msgspec", "onnxruntime", "protovalidate", "pydantic", "tokenizers", "mcp", "buf"),
    *("langchain_core", "llama_index", "agents", "cryptography", "hummock.rpc", "hummock.store", "hummock_kernels"),
)
_USE = f"""
import sys
wheel = sys.argv[1]
sys.path.insert(0, wheel)
for name in {_HEAVY!r}:
    sys.modules[name] = None
import hummock_client
from hummock_client.adapters.tools import MemoryTools
assert hummock_client.__file__.startswith(wheel), hummock_client.__file__
authority = open(sys.argv[2], "rb").read()
messages = [{{"role": "user", "content": "?"}}]
with hummock_client.Client("127.0.0.1:1", token="secret", root_certificates=authority) as client:
    assert client.with_memory("p", messages, budget_s=0.1) is messages
    assert MemoryTools("p").call(client, "read_memory", {{"id": "m"}}).startswith("error: ")
import hummock.cli.main
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    build(_ROOT, folder)
    return folder


def build(sources: Path, folder: Path, *targets: str) -> None:
    chosen = [argument for target in targets for argument in ("-t", target)]
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), *chosen]
    run = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def wheel_of(folder: Path) -> zipfile.ZipFile:
    (wheel,) = folder.glob("*.whl")
    return zipfile.ZipFile(wheel)


def contents(wheel: zipfile.ZipFile) -> dict[str, int]:
    return {one.filename: one.CRC for one in wheel.infolist()}


def test_the_wheel_asks_for_little_unless_an_extra_is_named(built: Path) -> None:
    with wheel_of(built) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = HeaderParser().parsestr(wheel.read(name).decode())
    wanted = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert {re.split(r"[^\w-]", each, maxsplit=1)[0].lower() for each in wanted} == _LIGHT
    extras = set(metadata.get_all("Provides-Extra", []))
    assert {"server", "code", "mcp", "langchain", "llama-index", "openai-agents"} <= extras


def test_the_wheel_alone_is_a_client_with_tokens_and_tls(built: Path, tmp_path: Path) -> None:
    with wheel_of(built) as wheel:
        wheel.extractall(tmp_path / "wheel")  # noqa: S202 # made by this test
    (tmp_path / "ca.pem").write_bytes(Authority().certificate)
    command = [sys.executable, "-c", _USE, str(tmp_path / "wheel"), str(tmp_path / "ca.pem")]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_the_wheel_brings_types_protos_without_rules_and_what_setup_copies(built: Path) -> None:
    with wheel_of(built) as wheel:
        names = set(wheel.namelist())
        protos = [name for name in names if name.startswith("hummock_client/proto/") and name.endswith(".proto")]
        assert not any(b"buf/validate" in wheel.read(name) for name in protos)
    assert "hummock_client/py.typed" in names
    assert "hummock_client/proto/hummock/v1/context_service.proto" in protos
    assert not any(name.startswith(("tests/", "bench/", "clients/")) for name in names)
    room = _ROOT / "clients/python/hummock_tools/setup"
    files = [path for path in room.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}]
    assert room / "plugin/.claude-plugin/plugin.json" in files
    with wheel_of(built) as wheel:
        for path in files:
            assert wheel.read(f"hummock_tools/setup/{path.relative_to(room)}") == path.read_bytes()


def test_the_wheel_alone_sets_agents_up(built: Path, tmp_path: Path) -> None:
    with wheel_of(built) as wheel:
        wheel.extractall(tmp_path / "wheel")  # noqa: S202 # made by this test
    words = ["hummock", "setup", "--agent", "claude-code", "--agent", "codex", "--yes"]
    program = f"import sys; sys.path.insert(0, {str(tmp_path / 'wheel')!r}); sys.argv = {words!r}\n"
    program += "from hummock.cli.main import main; main()"
    environ = {"HOME": str(tmp_path / "home"), "PATH": os.defpath}
    command = [sys.executable, "-P", "-c", program]
    run = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "home/.claude/skills/hummock/SKILL.md").is_file()
    assert "hummock" in (tmp_path / "home/.codex/config.toml").read_text(encoding="utf-8")


def test_the_source_distribution_builds_the_same_wheel(built: Path, tmp_path: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (sources,) = tmp_path.iterdir()
    build(sources, tmp_path / "again", "wheel")
    with wheel_of(built) as first, wheel_of(tmp_path / "again") as again:
        assert {one.filename: one.CRC for one in first.infolist()} == {
            one.filename: one.CRC for one in again.infolist()
        }
