"""`hummock models` from outside: what it lists, verifies and measures. Nothing is fetched."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bench.toy_models import TINY, TINY_RERANKER, build_tiny, build_tiny_reranker
from hummock.models import open_embedder, read_calibration
from hummock.models.fusion import FUSED_FILE
from tests.cli.conftest import Run

pytestmark = pytest.mark.long


QUESTIONS = [("先本后息", "还款方式"), ("等额本金", "利息逐月减少"), ("提前还款", "违约金按剩余本金计算")]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("models")
    build_tiny(directory)
    build_tiny_reranker(directory)
    return directory


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    lines = [
        {"query": f"{query}{number}", "document": f"{document}{number}"}
        for number in range(10)
        for query, document in QUESTIONS
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path


def test_ls_lists_models_pairs_and_cross_encoders(run: Run, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    done = run("models", "ls", "--models", str(models))
    assert done.exit_code == 0
    for name in ("bge-small-zh-v1.5 ", "bge-small-zh-v1.5+all-MiniLM-L6-v2", "bge-reranker-v2-m3"):
        assert name in done.output


@pytest.mark.parametrize("name", [TINY, TINY_RERANKER])
def test_verify_knows_embedding_models_and_cross_encoders(run: Run, models: Path, name: str) -> None:
    done = run("models", "verify", name, "--models", str(models))
    assert (done.exit_code, done.stdout) == (0, f"{name}: verified\n")


def test_pull_adds_the_fused_graph_that_an_earlier_version_did_not_make(run: Run, models: Path, tmp_path: Path) -> None:
    shutil.copytree(models / TINY, tmp_path / TINY)
    (tmp_path / TINY / FUSED_FILE).unlink()
    done = run("models", "verify", TINY, "--models", str(tmp_path))
    assert (done.exit_code, done.stdout) == (0, f"{TINY}: verified\n")
    assert "`hummock models pull tiny` mends that" in " ".join(done.stderr.split())
    assert run("models", "pull", TINY, "--models", str(tmp_path)).exit_code == 0
    assert run("models", "verify", TINY, "--models", str(tmp_path)).stderr == ""


def test_verify_of_a_pair_names_the_part_that_is_missing(run: Run, models: Path) -> None:
    done = run("models", "verify", "bge-small-zh-v1.5+all-MiniLM-L6-v2", "--models", str(models))
    assert done.exit_code != 0
    assert "hummock models pull bge-small-zh-v1.5" in str(done.exception) + done.output


def test_calibrate_is_used_by_the_next_start(run: Run, models: Path, pairs: Path) -> None:
    done = run("models", "calibrate", TINY, str(pairs), "--models", str(models))
    assert done.exit_code == 0
    embedder = open_embedder(build_tiny(models), models, slots=1)
    calibration = embedder.space.calibration
    assert calibration == read_calibration(models, embedder.space.id)
    assert f"han {calibration.unrelated_han:.3f}" in done.stdout
    assert f"near twins from {calibration.near_twin_bar:.3f}" in done.stdout
    embedder.close()


def test_calibrate_wants_pairs(run: Run, models: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text("")
    for path, said in ((tmp_path / "pairs.jsonl", "20 are needed"), (tmp_path / "none.jsonl", "cannot be read")):
        done = run("models", "calibrate", TINY, str(path), "--models", str(models))
        assert done.exit_code != 0
        assert said in str(done.exception) + done.output
