"""The image, made and run as its Dockerfile says: size, start, health, stop, a kill, rights."""

from __future__ import annotations

import gzip
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from bench import toy_models
from hummock_client import Client
from tests.deploy.engine import DEPLOY, Dockerfile, Engine, build_root, instructions_of, read_dockerfile, require_tools
from tests.shared import MINILM, install_minilm

pytestmark = [pytest.mark.long, pytest.mark.storeless]

_MOST_UNPACKED_MB = 442
"""Without models. LLVM is 154 MB of it, NumPy 45, ONNX Runtime 31; Python and Debian are 75."""
_MOST_PACKED_MB = 160
_LONGEST_STOP_S = 10.0
"""What container engines wait before they kill, unless they are told otherwise."""
_MIB = 1 << 20

Note = Callable[[str, str], None]


@pytest.fixture(scope="module")
def note() -> Iterator[Note]:
    """Takes a figure, by its name; all of them are printed at the end."""
    figures: dict[str, str] = {}
    yield figures.__setitem__
    print("\nimage: " + "; ".join(f"{name} {value}" for name, value in figures.items()))


@pytest.fixture(scope="module")
def dockerfile() -> Dockerfile:
    return read_dockerfile()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that is removed: a root has half a gigabyte."""
    with tempfile.TemporaryDirectory(prefix="hummock-image-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def root(dockerfile: Dockerfile, folder: Path) -> Path:
    """The root without models."""
    require_tools()
    return build_root(dockerfile, folder)


@pytest.fixture(scope="module")
def model(root: Path) -> str:
    """The name of the one model in the image's folder of models: a real one, or the toy."""
    models = root / "usr" / "lib" / "hummock" / "models"
    models.mkdir()
    if install_minilm(models):
        return MINILM
    toy_models.build_tiny(models)
    return toy_models.TINY


@pytest.fixture(scope="module")
def engine(dockerfile: Dockerfile, root: Path, model: str, folder: Path) -> Engine:
    subprocess.run(["chmod", "--recursive", "go+rX", root / "usr" / "lib" / "hummock" / "models"], check=True)
    engine = Engine(dockerfile, root, folder / "data", folder / "log")
    engine.dockerfile.environ["HUMMOCK_MODEL"] = model
    return engine


@pytest.fixture(scope="module")
def token(engine: Engine) -> str:
    """A token that was made before the first start, as the documents say."""
    made = engine.run("tokens", "create", "app", "--scope", "*:admin")
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


TRUSTED = {"HUMMOCK_ALLOW_REMOTE_PLAINTEXT": "true"}


def test_the_dockerfile_runs_one_script_and_copies_what_the_test_does() -> None:
    given = [(name, text) for name, text in instructions_of((DEPLOY / "Dockerfile").read_text(encoding="utf-8"))]
    assert [text for name, text in given if name == "RUN"] == ["sh /build/build-root.sh /build && rm -rf /build"]
    assert [text for name, text in given if name == "COPY"] == [
        "dist/hummock-*-none-any.whl service/locks/image.txt service/deploy/build-root.sh /build/",
        "dist/models /usr/lib/hummock/models",
        "--from=root / /",
    ]


def test_the_context_holds_what_the_dockerfile_copies() -> None:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    kept = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = next(
        text for name, text in instructions_of((DEPLOY / "Dockerfile").read_text(encoding="utf-8")) if name == "COPY"
    )
    assert "*" in lines
    assert kept == {*copied.split()[:-1], "dist/models"}


def test_an_image_has_no_more_than_it_had(root: Path, note: Note) -> None:
    counted = subprocess.run(["du", "-s", "--block-size=1M", root], check=True, capture_output=True, text=True)
    unpacked = int(counted.stdout.split()[0])
    with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as packing:
        assert packing.stdout is not None
        packed = 0
        while block := packing.stdout.read(16 * _MIB):
            packed += len(gzip.compress(block, 6))
    packed //= _MIB
    note("without models", f"{unpacked} MB, {packed} MB as it is pulled")
    assert unpacked <= _MOST_UNPACKED_MB
    assert packed <= _MOST_PACKED_MB


def test_nothing_that_installs_is_left(root: Path) -> None:
    left = [
        tool
        for tool in ("apt-get", "pip", "pip3", "perl", "mount", "su", "login", "strip")
        if (root / "usr/bin" / tool).exists()
    ]
    assert left == []
    assert "Package: libc6" in (root / "var/lib/dpkg/status").read_text(encoding="utf-8")


def test_other_machines_are_let_in_by_word_alone(engine: Engine, token: str) -> None:
    refused = engine.run(*engine.dockerfile.command)
    assert refused.returncode == 1
    assert "allow_remote_plaintext" in refused.stderr


def test_a_service_starts_answers_and_stops(engine: Engine, token: str, note: Note) -> None:
    for start in ("first start", "second start"):
        began_s = time.monotonic()
        with engine.started(**TRUSTED) as container:
            note(f"{start}: serves after", f"{time.monotonic() - began_s:.1f} s")
            began_s = time.monotonic()
            healthy = engine.run_program(engine.dockerfile.health)
            assert (healthy.returncode, healthy.stdout) == (0, "SERVING\n"), healthy.stderr
            note("health check", f"{time.monotonic() - began_s:.1f} s")
            with Client(container.target, token=token) as client:
                client.note("shop", "parse_date takes ISO 8601 and nothing else")
                assert [hit.memory.text for hit in client.recall("shop", "what does parse_date take?").hits]
            began_s = time.monotonic()
            status = container.signal(signal.SIGTERM)
            took_s = time.monotonic() - began_s
        note("SIGTERM: ends after", f"{took_s:.1f} s")
        assert status == 0
        assert took_s <= _LONGEST_STOP_S
    assert engine.run_program(engine.dockerfile.health).returncode == 1


def test_what_was_acknowledged_outlives_a_kill(engine: Engine, token: str) -> None:
    text = f"the pond heron nests in the old boathouse {uuid4()}"
    with engine.started(**TRUSTED) as container, Client(container.target, token=token) as client:
        client.note("birds", text)
        container.signal(signal.SIGKILL)
    with engine.started(**TRUSTED) as container, Client(container.target, token=token) as client:
        hits = client.recall("birds", "where does the pond heron nest?").hits
        assert text in [hit.memory.text for hit in hits]


def test_a_container_is_nobody_and_writes_to_data_and_tmp_alone(engine: Engine, token: str) -> None:
    with engine.started(**TRUSTED) as container:
        status = Path(f"/proc/{container.pid}/status").read_text(encoding="utf-8")
        fields = dict(line.split(":\t", 1) for line in status.splitlines())
        mounts = Path(f"/proc/{container.pid}/mounts").read_text(encoding="utf-8").splitlines()
    uid = engine.dockerfile.user.partition(":")[0]
    assert fields["Uid"].split() == [uid] * 4
    assert (fields["CapEff"].strip("0"), fields["NoNewPrivs"]) == ("", "1")
    written = {at for _, at, kind, how, *_ in map(str.split, mounts) if "rw" in how.split(",") and kind != "proc"}
    assert {at for at in written if not at.startswith("/dev")} == {"/data", "/tmp"}  # noqa: S108 - the container's own
    tried = engine.run_program(["sh", "-c", "touch /usr/x || touch /etc/x || touch /var/x"])
    assert tried.returncode != 0
