from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.token_basis import fit, save
from hummock.models import REGISTRY, ModelDescription
from hummock.models.basis import MAX_TOKEN_VECTORS, TOKEN_DIM, load_basis, random_basis
from hummock.models.description import RANDOM_BASIS
from hummock.models.encoder import Encoder
from hummock.models.errors import ModelGraphUnsupported

FITTED = [model for model in REGISTRY.values() if model.basis != RANDOM_BASIS]


@pytest.mark.parametrize("model", FITTED, ids=lambda model: model.name)
def test_fitted_bases_are_orthonormal_and_centred_within_the_unit_ball(model: ModelDescription) -> None:
    basis = load_basis(model.basis, model.dim)
    np.testing.assert_allclose(basis.projection.T @ basis.projection, np.eye(TOKEN_DIM), rtol=0, atol=2e-3)
    assert 0 < np.linalg.norm(basis.mean) < 1
    assert basis.version.startswith(f"{model.basis}:")


@pytest.mark.parametrize("dim", [8, 64, 65, 384])
def test_the_random_basis_keeps_lengths_where_it_can(dim: int) -> None:
    basis = random_basis(dim)
    product = basis.projection.T @ basis.projection if dim >= TOKEN_DIM else basis.projection @ basis.projection.T
    np.testing.assert_allclose(product, np.eye(min(dim, TOKEN_DIM)), rtol=0, atol=1e-5)
    assert not basis.mean.any()


def test_the_random_basis_is_the_same_every_time_and_for_a_row_of_any_length() -> None:
    assert random_basis(96).projection.tobytes() == load_basis(RANDOM_BASIS, 96).projection.tobytes()
    rows = np.random.default_rng(4).standard_normal((5, 96)).astype(np.float32)
    assert (random_basis(96).compress(rows) == random_basis(96).compress(rows * np.float32(8))).all()
    # Equal rows are kept from the front.
    assert random_basis(96).compress(np.ones((300, 96), dtype=np.float32)).shape == (MAX_TOKEN_VECTORS, TOKEN_DIM)


def test_compressed_rows_are_unit_vectors_times_127() -> None:
    rows = np.random.default_rng(3).standard_normal((50, 96)).astype(np.float32)
    compressed = random_basis(96).compress(rows)
    lengths = np.linalg.norm(compressed.astype(np.float32), axis=1)
    assert compressed.dtype == np.int8
    np.testing.assert_allclose(lengths, 127, rtol=0, atol=4)


def test_a_zero_row_stays_zero_and_no_rows_stay_none() -> None:
    basis = random_basis(96)
    assert not basis.compress(np.zeros((1, 96), dtype=np.float32)).any()
    assert basis.compress(np.zeros((0, 96), dtype=np.float32)).shape == (0, TOKEN_DIM)


def test_of_a_long_text_the_rows_that_say_something_new_are_kept() -> None:
    rows = np.random.default_rng(5).standard_normal((MAX_TOKEN_VECTORS, 96)).astype(np.float32)
    basis = random_basis(96)
    repeated = np.concatenate([rows[:100], np.tile(rows[:50], (4, 1)), rows[100:]])
    assert (basis.compress(repeated) == basis.compress(rows)).all()


def test_a_basis_for_another_dim_is_refused() -> None:
    with pytest.raises(ModelGraphUnsupported, match="384"):
        load_basis("all-MiniLM-L6-v2.v1", 512)


def test_a_fit_can_be_repeated(tiny: ModelDescription, tiny_files: Path, tmp_path: Path) -> None:
    encoder = Encoder(tiny, tiny_files)
    texts = [
        "", "先本后息 is a repayment method", "def parse_date(text): return text", "还款方式 " * 20, "a b c d e f g",
    ]  # fmt: skip
    mean, projection = fit(encoder, texts)
    again = fit(encoder, texts)
    assert (mean.tobytes(), projection.tobytes()) == (again[0].tobytes(), again[1].tobytes())
    save(tmp_path / "basis.npz", mean, projection)
    with np.load(tmp_path / "basis.npz", allow_pickle=False) as arrays:
        np.testing.assert_allclose(arrays["projection"], projection, rtol=0, atol=1e-3)


def test_too_few_tokens_are_refused(tiny: ModelDescription, tiny_files: Path) -> None:
    with pytest.raises(ValueError, match="4 tokens"):
        fit(Encoder(tiny, tiny_files), ["先本后息"])
