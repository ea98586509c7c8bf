"""Reference page of the service's settings: key, environment variable, default and meaning of each."""

from __future__ import annotations

import ast
import inspect
import typing
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from docs.site.tables import WITHOUT_CONTENTS, cell, table
from hummock import config
from hummock.config import Settings


def settings_page() -> str:
    """Markdown of the page, the settings in the order in which the service declares them."""
    rows, tables = [], []
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            said = _documented(Settings).get(name) or inspect.getdoc(field.annotation) or ""
            tables.append((name, field.annotation, said))
        else:
            rows.append(_row((name,), field, _documented(Settings)))
    parts = [
        WITHOUT_CONTENTS + "# Settings",
        "Every setting of `hummock serve`, made from the table that the service itself reads. A flag of the command "
        "wins over the environment, the environment over the file `hummock.toml`, and the file over the default. The "
        "file is that of the working directory, or the one that `HUMMOCK_CONFIG` names. What a *project* sets is in "
        "[the contract](api/settings.md).",
        _table(rows),
    ]
    for name, model, said in tables:
        documented = _documented(model)
        below = [_row((name, key), field, documented) for key, field in model.model_fields.items()]
        parts += [f"## [{name}] {{ #{name} }}".replace("[", "\\[").replace("]", "\\]"), cell(said), _table(below)]
    return "\n\n".join(parts) + "\n"


def _table(rows: list[tuple[str, ...]]) -> str:
    return table(("key", "environment", "default", "meaning"), rows)


def _row(path: tuple[str, ...], field: FieldInfo, documented: dict[str, str]) -> tuple[str, ...]:
    variable = dict(config.variables())[path]
    return f"`{path[-1]}`", f"`{variable}`", _default(field), cell(documented.get(path[-1], ""))


def _default(field: FieldInfo) -> str:
    value = field.default
    if field.is_required() or field.default_factory is not None or value is None or value == ():
        return "–"
    if isinstance(value, SecretStr) or value == "":
        return "empty"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    choices = typing.get_args(field.annotation) if typing.get_origin(field.annotation) is typing.Literal else ()
    others = [str(each) for each in choices if each != value]
    return f"`{text}`" + (f" (or {', '.join(f'`{each}`' for each in others)})" if others else "")


def _documented(model: type[Any]) -> dict[str, str]:
    """The text below each field in the source, by the field's name."""
    tree = ast.parse(Path(inspect.getfile(model)).read_text(encoding="utf-8"))
    (found,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == model.__name__)
    texts: dict[str, str] = {}
    for field, below in zip(found.body, found.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            texts[field.target.id] = str(below.value.value)
    return texts
