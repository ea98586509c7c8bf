"""`hummock models pull`: fetch a model from the first source that gives it, and prove it before it is used."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hummock.models.convert import convert, require_converter
from hummock.models.description import GRAPH_FILE, Model, ModelDescription, PublishedModel, Source
from hummock.models.directory import publish, staging, turn, verify, write_record
from hummock.models.errors import (
    CheckpointUnsupported,
    ConverterMissing,
    ModelFileAltered,
    ModelFileMissing,
    ModelPullFailed,
)
from hummock.models.sources import SourceFailed, describe, fetch

__all__ = ["Progress", "PulledModel", "pull", "pull_first"]

AnyModel = TypeVar("AnyModel", bound=Model)

Progress = Callable[[str], None]
"""Takes one line for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PulledModel:
    """A model whose files are there and are the pinned ones."""

    description: PublishedModel
    directory: Path
    source: Source | None
    """Who gave it; None when it was there already."""
    attempts: tuple[str, ...]
    """What the sources before that one answered."""


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
        return PulledModel(description=model, directory=target, source=None, attempts=())
    if model.conversion is not None:
        require_converter()
    with turn(models_directory, progress):
        if _intact(model, target, lambda line: None):  # Another process may have been first.
            return PulledModel(description=model, directory=target, source=None, attempts=())
        return _from_first_source(model, target, progress)


def pull_first(models: Sequence[AnyModel], models_directory: Path, progress: Progress = lambda line: None) -> AnyModel:
    """The first of several models that is there already or can be had with all its parts, in their order.

    Raises:
        ModelPullFailed: None of them can be had.
        ConverterMissing: There is only one, it is converted here, and a package for that is missing.
        ModelsDirectoryUnusable: Nothing can be written there.
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


def _from_first_source(model: PublishedModel, target: Path, progress: Progress) -> PulledModel:
    attempts: list[str] = []
    for source in model.sources:
        progress(f"{model.name}: trying {describe(source)}")
        try:
            with staging(model.name, target.parent) as staged:
                _stage(model, source, staged, progress)
                publish(staged, target)
        except (SourceFailed, CheckpointUnsupported) as error:
            attempts.append(f"{describe(source)}: {error}")
            progress(f"{model.name}: {attempts[-1]}")
            continue
        progress(f"{model.name}: verified, in {target}")
        return PulledModel(description=model, directory=target, source=source, attempts=tuple(attempts))
    raise ModelPullFailed(model.name, attempts or ["it has no source"])


def _stage(model: PublishedModel, source: Source, staged: Path, progress: Progress) -> None:
    scratch = staged.with_name("arrived")
    scratch.mkdir()
    fetch(source, model.downloads, staged, scratch)
    shutil.rmtree(scratch)
    if isinstance(model, ModelDescription) and model.conversion is not None:
        progress(f"{model.name}: converting")
        config, weights = staged / model.conversion.config.name, staged / model.conversion.weights.name
        convert(config, weights, staged / GRAPH_FILE, model.pooling)
        config.unlink()
        weights.unlink()
        write_record(model, staged)
    verify(model, staged)


def _intact(model: PublishedModel, directory: Path, progress: Progress) -> bool:
    try:
        verify(model, directory)
    except ModelFileMissing:
        return False
    except ModelFileAltered as error:
        progress(str(error))
        return False
    return True
