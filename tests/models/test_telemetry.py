"""The runtime of the models tells nobody of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench import toy_models


def test_loading_a_model_leaves_no_id_of_the_machine(tmp_path: Path) -> None:
    toy_models.build_tiny(tmp_path / "models")
    (graph,) = (tmp_path / "models" / toy_models.TINY).glob("model.onnx")
    (tmp_path / "home").mkdir()
    # Neither a CI's variable nor one of our own may be what keeps it quiet.
    environ = {"PATH": os.defpath, "HOME": str(tmp_path / "home")}
    program = "import sys, hummock.models, onnxruntime; onnxruntime.InferenceSession(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", program, graph], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "home").rglob("*") if "numba" not in path.parts] == []
