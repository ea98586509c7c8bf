"""Cost of starting the service: imported modules and garbage."""

from __future__ import annotations

from pathlib import Path

import pytest

from hummock.store.lmdb.files import DirectoryLock
from tests.cli.test_failures import python

pytestmark = [pytest.mark.long, pytest.mark.timed]

UNNEEDED = ("huggingface_hub", "httpx", "mcp", "onnx", "pathspec", "pydantic_settings", "safetensors", "tree_sitter")
"""Packages that only other commands, or the setup of a model, need."""


def test_serving_imports_nothing_that_only_other_commands_need() -> None:
    program = (
        "import sys\n"
        "import hummock.cli.main, structlog, hummock.config\n"
        "from hummock_kernels.warm import warm\n"
        "warm()\n"
        "import hummock.wiring.service\n"
        f"print([name for name in {UNNEEDED!r} if name in sys.modules])"
    )
    done = python("-c", program)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_garbage_is_collected_while_serving_and_what_the_start_made_is_left_alone(tmp_path: Path) -> None:
    program = (
        "import gc, sys\n"
        "from contextlib import nullcontext\n"
        "import hummock.wiring.service\n"
        "from hummock.cli.main import main\n"
        "async def serve_calls(*arguments, **options):\n"
        "    print(gc.isenabled(), gc.get_freeze_count() > 100_000)\n"
        "hummock.wiring.service.serve_calls = serve_calls\n"
        "hummock.wiring.service.open_use_cases = lambda *arguments: nullcontext()\n"
        f"sys.argv = ['hummock', 'serve', '--data', {str(tmp_path)!r}]\n"
        "main()"
    )
    done = python("-c", program)
    assert (done.stdout, done.returncode) == ("True True\n", 0), done.stderr


def test_a_second_service_on_a_directory_fails_before_it_fetches_a_model(tmp_path: Path) -> None:
    data, nowhere = tmp_path / "data", tmp_path / "models"
    data.mkdir()
    lock = DirectoryLock(data)
    program = (
        "import sys\n"
        "from hummock.cli.main import main\n"
        f"sys.argv = ['hummock', 'serve', '--data', {str(data)!r}, '--models', {str(nowhere)!r}, '--port', '0']\n"
        "main()"
    )
    done = python("-c", program)
    lock.release()
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"error: data directory {data} is in use by process ")
    assert not nowhere.exists()
