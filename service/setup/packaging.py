"""Brings the contract as clients take it into packages: made of proto/ when one is built, and not committed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ClientProtos(BuildHookInterface):  # type: ignore[type-arg] # the hook reads no configuration
    """Writes clients/proto before anything is packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Also for an editable installation: the other clients are built of these files."""
        del version, build_data
        command = [sys.executable, "without_rules.py", "protos", "../clients/proto"]
        subprocess.run(command, cwd=Path(self.root) / "proto", check=True)
