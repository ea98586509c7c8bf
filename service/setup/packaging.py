"""What packages hold besides sources: the contract as clients take it, and compiled kernels where they are given."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Generated(BuildHookInterface):  # type: ignore[type-arg] # the hook reads no configuration
    """Adds what is made when a package is built, and not committed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write clients/proto, also for an editable installation: the other clients are built of these files.

        HUMMOCK_COMPILED names a folder with kernels that were compiled on Linux for x86-64-v3 by this Python. The wheel
        then holds them, and is for that Python on such machines.
        """
        del version
        command = [sys.executable, "without_rules.py", "protos", "../clients/proto"]
        subprocess.run(command, cwd=Path(self.root) / "proto", check=True)
        compiled = os.environ.get("HUMMOCK_COMPILED")
        if compiled and self.target_name == "wheel":
            python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
            build_data["pure_python"] = False
            # The oldest glibc that Numba's own wheels run on.
            build_data["tag"] = f"{python}-{python}-manylinux_2_28_x86_64"
            build_data["force_include"][compiled] = "hummock_kernels/compiled"
