"""Every Python snippet of the documents does what it shows, against a service; those of one document in turn."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.frameworks.installed import require_frameworks

pytestmark = pytest.mark.long

_ROOT = Path(__file__).parents[2]
_SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DEFAULT_TARGET = "127.0.0.1:7420"
_OF_FRAMEWORKS = "docs/clients/python-frameworks.md"

_DOCUMENTS = [
    str(path.relative_to(_ROOT))
    for path in [_ROOT / "README.md", *sorted((_ROOT / "docs").rglob("*.md")), *sorted(_ROOT.glob("clients/*/*.md"))]
    if _SNIPPET.search(path.read_text(encoding="utf-8"))
]


def test_the_documents_that_show_python_are_found() -> None:
    assert {
        "README.md",
        "docs/turn.md",
        "docs/system-prompt.md",
        "docs/clients/python.md",
        "docs/start/application.md",
        "docs/zh/start/application.md",
        _OF_FRAMEWORKS,
    } <= set(_DOCUMENTS)


@pytest.mark.parametrize("document", _DOCUMENTS)
def test_the_snippets_of_a_document_run(document: str, target: str, tmp_path: Path) -> None:
    python = require_frameworks() if document == _OF_FRAMEWORKS else Path(sys.executable)
    snippets = _SNIPPET.findall((_ROOT / document).read_text(encoding="utf-8"))
    program = tmp_path / "snippets.py"
    program.write_text("\n".join(snippets).replace(_DEFAULT_TARGET, target), encoding="utf-8")
    paths = os.pathsep.join(str(_ROOT / folder) for folder in ("clients/python", "service", "kernels"))
    env = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "HUMMOCK_TARGET": target}
    run = subprocess.run([python, program], env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
