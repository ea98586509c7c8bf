"""Which model a start uses, and which one its memories are embedded for meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from hummock import models
from hummock.config import Settings
from hummock.models.space import space_of
from hummock.wiring.parts import Say


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedModel:
    """What a store says of its vectors.

    Attributes:
        name: Name of the model in use.
        ready: Ids of the spaces that a start can switch to.
        switches: Whether the store can hold vectors of another space beside those in use.
    """

    name: str
    ready: frozenset[str] = frozenset()
    switches: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """The model of a start; `successor` is the one that memories are embedded for, None for none."""

    model: models.EmbeddingModel
    successor: models.EmbeddingModel | None = None


def choose_model(settings: Settings, recorded: RecordedModel | None, say: Say) -> ModelChoice:
    """Choose the model that the store was made with, else the configured one; downloads it if missing.

    A store that was made with another model than the configured one is embedded anew in the background, and switched
    to it by the first start that finds all its vectors. For "auto" that is a better model whose files are here.

    Existing files are never replaced silently: loading them reports when they were altered.
    """
    is_auto = settings.model == models.AUTO
    if recorded is None or not recorded.switches or settings.model == recorded.name:
        return ModelChoice(model=_fetched(settings, recorded.name if recorded and is_auto else settings.model, say))
    wanted = _better(settings, recorded.name) if is_auto else _fetched(settings, settings.model, say)
    if wanted is None:
        return ModelChoice(model=_fetched(settings, recorded.name, say))
    if space_of(wanted).id in recorded.ready:
        return ModelChoice(model=wanted)
    return ModelChoice(model=_fetched(settings, recorded.name, say), successor=wanted)


def advice(model: models.EmbeddingModel) -> str:
    """What could be better about the model; empty when there is nothing."""
    better, pair, *_ = models.AUTO_ORDER
    if "han" not in model.scripts:
        lack = "knows no Chinese; Chinese memories are found by their words alone"
    elif model == pair.parts[0]:
        lack = "knows little English and code"
    elif model == pair:
        lack = "finds less of what is told in another language than the question's"
    else:
        return ""
    return (
        f"{model.name} {lack}. `hummock models pull {better.name}` and a restart: memories are embedded anew while the "
        "service answers, and the start after that finds both, code and 14 more languages"
    )


def _fetched(settings: Settings, name: str, say: Say) -> models.EmbeddingModel:
    wanted = models.candidates(name, settings.models_dir)
    here = models.that_will_do(wanted, settings.models_dir)
    return here or models.pull_first(wanted, settings.models_dir, say)


def _better(settings: Settings, name: str) -> models.EmbeddingModel | None:
    """The best model of "auto" that is here and better than this one of them; None for none."""
    names = [model.name for model in models.AUTO_ORDER]
    better = models.AUTO_ORDER[: names.index(name)] if name in names else ()
    return next((model for model in better if models.is_here(model, settings.models_dir)), None)
