"""Jupyter notebooks as people read them: what was written into the cells, without what came out of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

NOTEBOOK_SUFFIX: Final = ".ipynb"


def cells_as_text(data: bytes) -> bytes:
    """The sources of a notebook's cells, each below a line `# %%` with its kind; the bytes themselves if it is none.

    That line is what editors take for the beginning of a cell in a plain file.
    """
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError):
        return data
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        return data
    return "\n".join(_lines(cells)).encode(errors="replace")


def _lines(cells: list[object]) -> Iterator[str]:
    for cell in cells:
        if not isinstance(cell, dict):
            continue
        source = cell.get("source")
        parts = source if isinstance(source, list) else [source]
        text = "".join(part for part in parts if isinstance(part, str))
        if text.strip():
            kind = cell.get("cell_type")
            yield "# %%" if kind == "code" else f"# %% [{kind}]"
            yield f"{text.rstrip()}\n"
