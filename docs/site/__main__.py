"""`make docs`: build the site of the documentation into a folder, without a warning or not at all.

    python -m docs.site OUT --tool ZENSICAL

OUT gets `site/`, what is published, and `en/` and `zh/`, what it was built from. The reference is made here, from the
contract, the command line and the service's settings; nothing of it is committed. SITE_URL in the environment is the
address that the site will have, for its sitemap.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from docs.site.command_reference import commands_page
from docs.site.contract_reference import contract_pages
from docs.site.llms import write_llms
from docs.site.pages import ROOT, Site, write, write_documents
from docs.site.setting_reference import settings_page

HERE = Path(__file__).parent
LANGUAGES = ("en", "zh")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class _Loader(yaml.SafeLoader):  # type: ignore[misc] # yaml ships no types
    """Reads the configuration without what only the tool understands."""


_Loader.add_multi_constructor("", lambda _loader, _tag, _node: None)


class BuildFailed(Exception):
    """The tool found something to warn of; the message is what it said."""


def build(out: Path, tool: Path) -> Path:
    """Build both languages; the same sources give the same files.

    Args:
        out: Folder of the build; what an earlier build left there is replaced.
        tool: The program `zensical`.

    Returns:
        The folder to publish.

    Raises:
        BuildFailed: A link leads nowhere, or the tool warned of something else.
    """
    published = out / "site"
    shutil.rmtree(published, ignore_errors=True)
    for language in LANGUAGES:
        folder = out / language
        shutil.rmtree(folder, ignore_errors=True)
        site = Site(language=language, folder=folder / "pages")
        write_documents(site)
        if language == "en":
            _write_reference(site.folder / "reference")
        shutil.copytree(HERE / "assets", site.folder / "assets")
        shutil.copyfile(HERE / f"{language}.yml", folder / "mkdocs.yml")
        _run(tool, folder)
        target = published if language == "en" else published / language
        shutil.copytree(folder / "site", target)
    write_llms(navigation("en"), out / "en" / "pages", published)
    return published


def navigation(language: str) -> list[Any]:
    """The navigation of a site, as its configuration has it."""
    found = yaml.load((HERE / f"{language}.yml").read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - below SafeLoader
    return list(found["nav"])


def _write_reference(folder: Path) -> None:
    for name, text in contract_pages(ROOT / "proto").items():
        write(folder / "api" / name, text)
    write(folder / "commands.md", commands_page())
    write(folder / "settings.md", settings_page())


def _run(tool: Path, folder: Path) -> None:
    address = os.environ.get("SITE_URL", "")
    addresses = {"SITE_URL": address, "SITE_URL_ZH": f"{address.rstrip('/')}/zh/" if address else ""}
    command = [str(tool), "build", "--strict", "--clean", "--config-file", "mkdocs.yml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, **addresses})
    if done.returncode:
        raise BuildFailed(_COLOUR.sub("", done.stdout + done.stderr).partition("Traceback")[0])


def main() -> int:
    """Build as the arguments say; 1 with the reason on stderr if that failed."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description="Build the site of the documentation.")
    parser.add_argument("out", type=Path, help="folder of the build")
    parser.add_argument("--tool", type=Path, required=True, help="the program zensical")
    given = parser.parse_args()
    try:
        published = build(given.out.resolve(), given.tool.resolve())
    except BuildFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    print(f"{published}/index.html: open it with `python -m http.server --directory {published}`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
