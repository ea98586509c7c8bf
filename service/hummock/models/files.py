"""Paths of model files, and the proof that they are the pinned ones: `<models directory>/<model name>/…`."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hummock.models.description import Model, ModelFile, PublishedModel
from hummock.models.errors import ModelFileAltered, ModelFileMissing, ModelsDirectoryUnusable

RECORD_FILE = "model.json"
_STAGING = ".hummock-staging-"
"""Prefix of directories of a `turn`, by which those of a killed process are found."""


def sha256_of(path: Path) -> str:
    """The file's SHA-256 in lower-case hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_present(model: PublishedModel, directory: Path) -> bool:
    """Whether every file of the model exists in its directory; no file is read."""
    names = [file.name for file in model.files] + ([RECORD_FILE] if model.conversion is not None else [])
    return all((directory / name).is_file() for name in names)


def is_here(model: Model, models_directory: Path) -> bool:
    """Whether every file of the model, or of both of a pair, exists in the models directory; no file is read."""
    return all(is_present(part, models_directory / part.name) for part in model.parts)


def verify(model: PublishedModel, directory: Path) -> None:
    """Hash every file of the model in its own directory and compare.

    Raises:
        ModelFileMissing: A file is not there.
        ModelFileAltered: A file's SHA-256 is not the pinned, or for a converted graph the recorded, one.
    """
    for file in model.files:
        path = directory / file.name
        if not path.is_file():
            raise ModelFileMissing(model.name, path)
        expected = expected_sha256(model, directory, file)
        actual = sha256_of(path)
        if actual != expected:
            raise ModelFileAltered(model.name, path, expected, actual)


def expected_sha256(model: PublishedModel, directory: Path, file: ModelFile) -> str:
    """The file's pinned SHA-256, or the recorded one of a graph that was converted here.

    Raises:
        ModelFileMissing: The record is needed and not there.
        ModelFileAltered: It is of something else.
    """
    if file.sha256 is not None:
        return file.sha256
    path = directory / RECORD_FILE
    if not path.is_file():
        raise ModelFileMissing(model.name, path)
    content = path.read_bytes()
    made = None if model.conversion is None else (model.conversion.weights.sha256, model.conversion.recipe_version)
    try:
        record = json.loads(content)
        is_fitting = (record["weights_sha256"], record["recipe_version"]) == (made or (None, 0))
        recorded = str(record["files"][file.name])
    except (ValueError, KeyError, TypeError):
        is_fitting = False
    if not is_fitting:
        actual = hashlib.sha256(content).hexdigest()
        raise ModelFileAltered(model.name, path, "a record of this model's conversion", actual)
    return recorded


def read_record(directory: Path) -> dict[str, object]:
    """The record in the model's directory; empty if there is none, or none that can be read."""
    try:
        record = json.loads((directory / RECORD_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def add_to_record(model: PublishedModel, directory: Path, into: Path, key: str, value: object) -> None:
    """Write the record of the model's directory with one more entry into another directory, or the same."""
    _write_record({"model": model.name} | read_record(directory) | {key: value}, into)


def write_record(model: PublishedModel, directory: Path) -> None:
    """Record the source and the SHA-256 of a converted graph, for `verify`."""
    if model.conversion is None:
        return
    made = {file.name: sha256_of(directory / file.name) for file in model.files if file.sha256 is None}
    version, weights = model.conversion.recipe_version, model.conversion.weights.sha256
    record = {"model": model.name, "recipe_version": version, "weights_sha256": weights, "files": made}
    _write_record(record, directory)


@contextmanager
def turn(models_directory: Path, progress: Callable[[str], None] = lambda line: None) -> Iterator[None]:
    """Lock the models directory, creating it if needed; other processes that add models wait.

    Leftovers of a killed process are removed.

    Raises:
        ModelsDirectoryUnusable: The directory is not writable.
    """
    try:
        models_directory.mkdir(parents=True, exist_ok=True)
        lock = (models_directory / ".lock").open("a")
    except OSError as error:
        raise ModelsDirectoryUnusable(models_directory, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("another process is adding a model; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for leftover in models_directory.glob(f"{_STAGING}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield


@contextmanager
def staging(name: str, models_directory: Path) -> Iterator[Path]:
    """Create an empty directory of that name on the models' file system, within a `turn`; removed at the end."""
    with tempfile.TemporaryDirectory(prefix=f"{_STAGING}{name}-", dir=models_directory) as scratch:
        staged = Path(scratch) / name
        staged.mkdir()
        yield staged


def publish(staged: Path, target: Path) -> None:
    """Make the staged files durable and put them in the target's place; readers see the old or the new.

    Between the two renames of a replacement the target is absent for a moment, never half there.
    """
    for path in staged.iterdir():
        _fsync(path)
    _fsync(staged)
    if target.exists():
        target.rename(staged.with_name("replaced"))
    staged.rename(target)
    _fsync(target.parent)


def put(path: Path, directory: Path) -> None:
    """Make a file durable and move it into a directory of the same file system, in the place of one of its name."""
    _fsync(path)
    path.replace(directory / path.name)
    _fsync(directory)


def _write_record(record: Mapping[str, object], directory: Path) -> None:
    (directory / RECORD_FILE).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
