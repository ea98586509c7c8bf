"""The files of the models that a start would load."""

from __future__ import annotations

import shlex

from hummock import models
from hummock.core.errors import StartError
from hummock.doctor.finding import Case, Check, Finding, error, fine, warning
from hummock.store import recorded_model


def has_its_model(case: Case) -> Finding:
    """Whether the embedding model is that of the directory, and here as it was published."""
    recorded = _recorded(case)
    name = case.settings.model if case.settings.model != models.AUTO else recorded or models.AUTO
    if recorded is not None and name != recorded:
        return error(
            f"{case.data} has vectors of model {recorded}, and the settings name {name}: a start would be refused",
            f"hummock serve {case.its_data} --model {shlex.quote(recorded)}",
        )
    directory = case.settings.models_dir
    try:
        wanted = models.candidates(name, directory)
    except StartError as failure:
        return error(str(failure), "hummock models ls")
    here = models.that_will_do(wanted, directory)
    return _verified(case, wanted[0] if here is None else here)


def has_its_cross_encoder(case: Case) -> Finding | None:
    """Check that the cross-encoder is installed and undamaged, unless it is switched off."""
    if case.settings.cross_encoder == "off":
        return None
    try:
        model = models.find_reranker(case.settings.cross_encoder_model, case.settings.models_dir)
    except StartError as failure:
        return error(str(failure), "hummock models ls")
    return _verified(case, model)


CHECKS: tuple[Check, ...] = (has_its_model, has_its_cross_encoder)


def _verified(case: Case, model: models.Model) -> Finding:
    directory = case.settings.models_dir
    pull = f"hummock models pull {model.name} --models {shlex.quote(str(directory))}"
    if not models.is_here(model, directory):
        return warning(f"model {model.name} is not in {directory}; a start fetches it", pull)
    try:
        for part in model.parts:
            models.verify(part, directory / part.name)
    except StartError as failure:
        return error(str(failure), pull)
    return fine(f"model {model.name} is as it was published")


def _recorded(case: Case) -> str | None:
    """Name of the model whose vectors the directory holds; None if it holds none, or does not say."""
    try:
        return recorded_model(case.data, is_in_use=bool(case.holder))
    except StartError:
        return None
