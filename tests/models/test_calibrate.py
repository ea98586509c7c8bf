"""Measurements of `hummock models calibrate`, which are kept and found again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hummock.core.embedding import Calibration, EmbeddingSpace
from hummock.models import (
    Measured,
    ModelDescription,
    OnnxEmbedder,
    TextPair,
    calibrated,
    measure_scripts,
    open_embedder,
    read_calibration,
    read_pairs,
    write_calibration,
)
from hummock.models.errors import CalibrationInvalid, ModelsDirectoryUnusable, PairsInvalid

BEFORE = Calibration(unrelated_latin=0.4, unrelated_han=0.6, near_twin_bar=0.9)
WORDS = ["apple", "river", "stone", "cloud", "paper", "train", "music", "garden", "winter", "engine"]
CHARACTERS = "山水风云日月金木火土"


def pairs_of(pieces: list[str], join: str) -> list[TextPair]:
    """Each document holds its query's two words and one of its own."""
    doubles = [(left, right) for left in pieces for right in pieces if left != right][:30]
    return [TextPair(query=join.join(both), document=join.join([*both, pieces[0]])) for both in doubles]


LATIN, HAN = pairs_of(WORDS, " "), pairs_of(list(CHARACTERS), "")


def figures(*, unrelated: float, related_ceiling: float = 0.5, twin_floor: float = 0.9) -> Measured:
    return Measured(
        pairs=30, unrelated=unrelated, unrelated_ceiling=0.5, answering=0.7, answering_floor=0.4,
        related_ceiling=related_ceiling, twin_floor=twin_floor,
    )  # fmt: skip


def test_each_script_is_measured_by_its_own_pairs_of_which_answers_are_nearer(embedder: OnnxEmbedder) -> None:
    by_script = measure_scripts(embedder, [*HAN, *LATIN])
    assert by_script == {**measure_scripts(embedder, HAN), **measure_scripts(embedder, LATIN)}
    assert set(by_script) == {"han", "latin"}
    for measured in by_script.values():
        assert measured.pairs == 30
        assert measured.unrelated < measured.answering
        assert measured.unrelated <= measured.unrelated_ceiling
        assert measured.answering_floor <= measured.answering
    with pytest.raises(PairsInvalid, match="19 pairs in Chinese and 0 others; 20 are needed"):
        measure_scripts(embedder, HAN[:19])


def test_unrelated_texts_get_a_similarity_of_nought_in_their_script() -> None:
    calibration = calibrated(BEFORE, {"han": figures(unrelated=0.3), "latin": figures(unrelated=0.1)})
    for han, unrelated in ((True, 0.3), (False, 0.1)):
        similarity = calibration.similarity(np.array([unrelated, 1.0], np.float32), han=han)
        np.testing.assert_allclose(similarity, [0, 1], atol=1e-6)


def test_a_script_without_pairs_keeps_its_calibration_and_cosines_below_nought_calibrate_to_nought() -> None:
    calibration = calibrated(BEFORE, {"han": figures(unrelated=0.3)})
    assert (calibration.unrelated_han, calibration.unrelated_latin) == (0.3, BEFORE.unrelated_latin)
    assert calibrated(BEFORE, {"latin": figures(unrelated=-0.02)}).unrelated_latin == 0.0
    measured = {"han": figures(unrelated=0.3, related_ceiling=0.8), "latin": figures(unrelated=0.1)}
    assert calibrated(BEFORE, measured).near_twin_bar == pytest.approx(0.85)  # the highest of the scripts


@pytest.mark.long
def test_what_was_measured_is_used_at_a_start(tiny: ModelDescription, models_directory: Path, tmp_path: Path) -> None:
    (tmp_path / tiny.name).symlink_to(models_directory / tiny.name)
    built_in = open_embedder(tiny, tmp_path, slots=1)
    write_calibration(tmp_path, built_in.space, BEFORE)
    measured = open_embedder(tiny, tmp_path, slots=1)
    assert (built_in.space.calibration, measured.space.calibration) == (tiny.calibration, BEFORE)
    assert built_in.space.id == measured.space.id
    built_in.close()
    measured.close()


def test_a_calibration_is_of_one_space(embedder: OnnxEmbedder, tmp_path: Path) -> None:
    path = write_calibration(tmp_path, embedder.space, BEFORE)
    assert read_calibration(tmp_path, embedder.space.id) == BEFORE
    assert read_calibration(tmp_path, "0" * 32) is None
    path.rename(path.with_name(f"{'0' * 32}.json"))
    with pytest.raises(CalibrationInvalid, match="models calibrate"):
        read_calibration(tmp_path, "0" * 32)


@pytest.mark.parametrize("unrelated", [1.0, -0.5, "high", None])
def test_an_impossible_calibration_is_refused(space: EmbeddingSpace, tmp_path: Path, unrelated: object) -> None:
    path = write_calibration(tmp_path, space, BEFORE)
    path.write_text(json.dumps({**json.loads(path.read_text()), "unrelated_han": unrelated}))
    with pytest.raises(CalibrationInvalid, match=space.id):
        read_calibration(tmp_path, space.id)


def test_a_directory_that_cannot_be_written_is_named(space: EmbeddingSpace, tmp_path: Path) -> None:
    (tmp_path / "calibrations").write_text("in the way")
    with pytest.raises(ModelsDirectoryUnusable, match=str(tmp_path)):
        write_calibration(tmp_path, space, BEFORE)


def test_pairs_are_read_from_json_lines() -> None:
    lines = ['{"query": "先本后息", "document": "还款方式"}', "", '{"query": "a", "document": "b", "source": 1}']
    assert read_pairs(lines) == [TextPair(query="先本后息", document="还款方式"), TextPair(query="a", document="b")]


@pytest.mark.parametrize(
    "line",
    ["rubbish", "[]", '"text"', '{"query": "a"}', '{"query": "a", "document": 1}', '{"query": "c", "document": "b"}'],
)
def test_what_is_no_pair_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(PairsInvalid, match="line 2"):
        read_pairs(['{"query": "a", "document": "b"}', line])


@pytest.fixture
def space(embedder: OnnxEmbedder) -> EmbeddingSpace:
    return embedder.space
