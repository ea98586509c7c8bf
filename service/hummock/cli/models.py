"""`hummock models`: model files on this machine; no service is asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hummock.cli.failure import CommandFailed, packages_of
from hummock.cli.options import ModelsOption
from hummock.cli.output import new_table, note, print_line, print_table

if TYPE_CHECKING:
    from hummock.models import ModelDescription

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="List, fetch and verify embedding models.")

_MB = 1_000_000


@app.command("ls")
def ls(models: ModelsOption = None) -> None:
    """List the models that Hummock knows, and which of them are here."""
    with packages_of("server"):
        from hummock.models import REGISTRY, is_present
    directory = _directory(models)
    table = new_table()
    for heading in ("model", "dim", "tokens", "scripts", "size", "licence", "here"):
        table.add_column(heading, no_wrap=True)
    for model in REGISTRY.values():
        size_bytes = sum(file.size_bytes or 0 for file in model.downloads)
        here = "yes" if is_present(model, directory / model.name) else ""
        scripts = " ".join(sorted(model.scripts))
        size = f"{size_bytes / _MB:.0f} MB"
        table.add_row(model.name, str(model.dim), str(model.max_tokens), scripts, size, model.licence, here)
    print_table(table)
    note(f"in {directory}")


@app.command("pull")
def pull(
    name: Annotated[str, typer.Argument(metavar="[MODEL]", help='Its name, or "auto": the best to be had.')] = "auto",
    models: ModelsOption = None,
) -> None:
    """Fetch a model from the first of its sources that gives it, and verify it."""
    with packages_of("server"):
        from hummock.models import candidates, pull_first
    directory = _directory(models)
    pulled = pull_first(candidates(name, directory), directory, note)
    print_line(str(pulled.directory))


@app.command("verify")
def verify(
    name: Annotated[str, typer.Argument(metavar="[MODEL]", help="Its name; all that are here if unset.")] = "",
    models: ModelsOption = None,
) -> None:
    """Compare a model's files with their pinned SHA-256."""
    with packages_of("server"):
        from hummock.models import verify as verify_files
    directory = _directory(models)
    for model in _chosen(name, directory):
        verify_files(model, directory / model.name)
        print_line(f"{model.name}: verified")


def _chosen(name: str, directory: Path) -> list[ModelDescription]:
    from hummock.models import REGISTRY, find, is_present

    if name:
        return [find(name, directory)]
    here = [model for model in REGISTRY.values() if is_present(model, directory / model.name)]
    if not here:
        raise CommandFailed(f"there is no model in {directory}; fetch one with `hummock models pull`")
    return here


def _directory(models: Path | None) -> Path:
    with packages_of("server"):
        from hummock.config import load_settings
    return load_settings({"models_dir": models}).models_dir
