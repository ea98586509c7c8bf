"""The TypeScript SDK's own client calls the server, where Node.js and npm are; else it is said that it was skipped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mcp.test_http import server, url

pytestmark = pytest.mark.long

__all__ = ["server", "url"]
HERE = Path(__file__).with_name("typescript")


@pytest.fixture(scope="module")
def node() -> str:
    """Node.js, with the SDK in the versions of package-lock.json; fetches them when they are not there."""
    program, npm = shutil.which("node"), shutil.which("npm")
    if program is None or npm is None:
        missing = "node" if program is None else "npm"
        # Where everything is required nothing may be passed over.
        if os.environ.get("REQUIRE_SHARED") == "1":
            pytest.fail(f"{missing} is not installed")
        pytest.skip(f"needs {missing}, for the TypeScript SDK's client")
    installed, locked = HERE / "node_modules/.package-lock.json", HERE / "package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < locked.stat().st_mtime:
        subprocess.run([npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=HERE, check=True)
    return program


def test_the_typescript_client_uses_every_tool_either_way(node: str, url: str, target: str, project: str) -> None:
    environ = {
        **os.environ,
        "HUMMOCK_TARGET": target,
        "HUMMOCK_PROJECT": project,
        "MCP_COMMAND": json.dumps([sys.executable, "-m", "hummock", "mcp", "--no-serve"]),
        "MCP_URL": url,
    }
    done = subprocess.run(
        [node, "--test", "tools.test.mjs"], cwd=HERE, env=environ, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 2" in done.stdout
