"""The command that adds an extra to this installation, in the words of the tool that made it."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path


def command_for(*extras: str) -> str:
    """A line for the user's shell that installs extras beside those that are there: for uv, pipx or pip.

    The file or folder that Hummock was installed from is named again, because the registry may not have that version.
    """
    prefix = Path(sys.prefix)
    receipt, metadata = prefix / "uv-receipt.toml", prefix / "pipx_metadata.json"
    if receipt.is_file():
        return f"uv tool install {_requirement({*_extras_of_uv(receipt), *extras})}"
    if metadata.is_file():
        return f"pipx install --force {_requirement({*_extras_of_pipx(metadata), *extras})}"
    return f"pip install {_requirement({*extras})}"


def _requirement(extras: set[str]) -> str:
    """Hummock with extras as one word of the shell."""
    # cmd.exe knows no other quotes.
    quote = '"' if sys.platform == "win32" else "'"
    return f"{quote}hummock[{','.join(sorted(extras))}]{_source()}{quote}"


def _source() -> str:
    """The package's file or folder as a direct reference; empty for a registry's package or a clone in development."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = json.loads(distribution("hummock").read_text("direct_url.json") or "{}")
        is_editable = origin.get("dir_info", {}).get("editable", False)
        return f" @ {origin['url']}" if "url" in origin and not is_editable else ""
    except (PackageNotFoundError, ValueError):
        return ""


def _extras_of_uv(receipt: Path) -> list[str]:
    import tomllib

    try:
        wanted = tomllib.loads(receipt.read_text(encoding="utf-8"))["tool"]["requirements"]
        return [extra for each in wanted if each["name"] == "hummock" for extra in each.get("extras", ())]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _extras_of_pipx(metadata: Path) -> list[str]:
    try:
        package = json.loads(metadata.read_text(encoding="utf-8"))["main_package"]["package_or_url"]
        found = re.search(r"\[([^\]]*)\]", package)
        return found[1].replace(" ", "").split(",") if found else []
    except (OSError, ValueError, KeyError, TypeError):
        return []
