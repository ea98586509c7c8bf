"""`hummock models`: model files on this machine; no service is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hummock_tools.cli.connection import CommandFailed, packages_of
from hummock_tools.cli.options import ModelsOption
from hummock_tools.cli.output import new_table, note, print_line, print_table

if TYPE_CHECKING:
    from rich.table import Table

    from hummock.models import EmbeddingModel, Measured, Model, PublishedModel


app = typer.Typer(no_args_is_help=True, help="List, fetch, verify and calibrate models.")

_MB = 1_000_000


@app.command("ls")
def ls(models: ModelsOption = None) -> None:
    """List the models that Hummock knows, and which of them are here."""
    with packages_of("server"):
        from hummock.models import PAIRS, REGISTRY, RERANKERS, is_here, is_present, served
    directory = _directory(models)
    table = new_table(dict.fromkeys(("model", "dim", "tokens", "scripts", "size", "licence", "here"), "left"))
    known: Sequence[EmbeddingModel] = (*REGISTRY.values(), *PAIRS.values())
    for model in known:
        scripts = " ".join(sorted(model.scripts))
        here = "yes" if is_here(model, directory) else ""
        table.add_row(model.name, str(model.dim), str(model.max_tokens), scripts, _size(model), model.licence, here)
    for reranker in RERANKERS.values():
        here = "yes" if is_here(reranker, directory) else ""
        tokens = str(reranker.max_tokens)
        table.add_row(reranker.name, "", tokens, "cross-encoder", _size(reranker), reranker.licence, here)
    print_table(table)
    note(f"in {directory}")
    for model in REGISTRY.values():
        if is_present(model, directory / model.name) and (lack := served(model, directory / model.name).lack):
            note(lack)


@app.command("pull")
def pull(
    name: Annotated[str, typer.Argument(metavar="[MODEL]", help='Its name, or "auto": the best to be had.')] = "auto",
    models: ModelsOption = None,
) -> None:
    """Fetch a model, or both of a pair, from the first of its sources that gives it, and verify it."""
    with packages_of("server"):
        from hummock.models import AUTO, candidates, find_any, pull_first
    directory = _directory(models)
    wanted: Sequence[Model] = candidates(name, directory) if name == AUTO else (find_any(name, directory),)
    for part in pull_first(wanted, directory, note).parts:
        print_line(str(directory / part.name))


@app.command("verify")
def verify(
    name: Annotated[str, typer.Argument(metavar="[MODEL]", help="Its name; all that are here if unset.")] = "",
    models: ModelsOption = None,
) -> None:
    """Compare a model's files with their pinned SHA-256."""
    with packages_of("server"):
        from hummock.models import served
        from hummock.models import verify as verify_files
    directory = _directory(models)
    for model in _chosen(name, directory):
        verify_files(model, directory / model.name)
        print_line(f"{model.name}: verified")
        if lack := served(model, directory / model.name).lack:
            note(lack)


@app.command("calibrate")
def calibrate(
    name: Annotated[str, typer.Argument(metavar="MODEL", help="Its name.")],
    pairs: Annotated[
        Path,
        typer.Argument(metavar="PAIRS", help='JSON lines: {"query": …, "document": …}, each answered by its document.'),
    ],
    models: ModelsOption = None,
) -> None:
    """Measure what a model's cosines mean, by script, and keep that for every later start with it."""
    with packages_of("server"):
        from hummock import models as engine
    directory = _directory(models)
    texts = engine.read_pairs(_lines(pairs))
    with closing(engine.open_embedder(engine.find(name, directory), directory)) as embedder:
        measured = engine.measure_scripts(embedder, texts)
        space = embedder.space
    print_table(_figures(measured))
    calibration = engine.calibrated(space.calibration, measured)
    print_line(
        f"unrelated: latin {calibration.unrelated_latin:.3f}, han {calibration.unrelated_han:.3f}; "
        f"near twins from {calibration.near_twin_bar:.3f}"
    )
    note(f"in {engine.write_calibration(directory, space, calibration)}")


def _figures(measured: Mapping[str, Measured]) -> Table:
    headings = ("script", "pairs", "unrelated", "95 %", "answering", "5 %", "different 99.9 %", "versions 5 %")
    table = new_table(dict.fromkeys(headings, "left"))
    for script, its in measured.items():
        cosines = (
            *(its.unrelated, its.unrelated_ceiling, its.answering, its.answering_floor),
            *(its.related_ceiling, its.twin_floor),
        )
        table.add_row(script, str(its.pairs), *(f"{cosine:.3f}" for cosine in cosines))
    return table


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{path} cannot be read: {error}") from error


def _size(model: Model) -> str:
    size_bytes = sum(file.size_bytes or 0 for part in model.parts for file in part.downloads)
    return f"{size_bytes / _MB:.0f} MB"


def _chosen(name: str, directory: Path) -> Sequence[PublishedModel]:
    from hummock.models import REGISTRY, RERANKERS, find_any, is_present

    if name:
        return find_any(name, directory).parts
    known: tuple[PublishedModel, ...] = (*REGISTRY.values(), *RERANKERS.values())
    here = [model for model in known if is_present(model, directory / model.name)]
    if not here:
        raise CommandFailed(f"there is no model in {directory}; fetch one with `hummock models pull`")
    return here


def _directory(models: Path | None) -> Path:
    with packages_of("server"):
        from hummock.config import load_settings
    return load_settings({"models_dir": models}).models_dir
