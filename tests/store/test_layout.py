"""Vectors in a plane: what is near stays near, and the same vectors always stand in the same places."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hummock.store.views.places import beside, lay_out


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    of_length_1: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
    return of_length_1


def topics(count: int, of_each: int, dim: int = 48, seed: int = 7) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Vectors about some topics, and the topic of each."""
    random = np.random.default_rng(seed)
    middles = random.standard_normal((count, dim))
    topic = np.repeat(np.arange(count), of_each)
    return unit(middles[topic] + 0.5 * random.standard_normal((len(topic), dim))), topic


def of_nearest(places: NDArray[np.float32], topic: NDArray[np.int64], asked: NDArray[np.float32]) -> NDArray[np.int64]:
    """The topic of the place that is nearest to each asked one, itself left out."""
    apart = np.linalg.norm(asked[:, None] - places[None], axis=2)
    if len(asked) == len(places):
        np.fill_diagonal(apart, np.inf)
    nearest: NDArray[np.int64] = topic[apart.argmin(axis=1)]
    return nearest


def test_what_is_about_one_thing_stands_together() -> None:
    vectors, topic = topics(6, 30)
    places, _ = lay_out(vectors)
    assert (of_nearest(places, topic, places) == topic).mean() > 0.98


def test_others_stand_among_those_that_they_are_like() -> None:
    vectors, topic = topics(6, 40)
    places, sharpness = lay_out(vectors[::2])
    others = beside(vectors[1::2], vectors[::2], places, sharpness)
    assert (of_nearest(places, topic[::2], others) == topic[1::2]).mean() > 0.98


def test_texts_in_two_languages_stand_by_language_and_topic() -> None:
    """Vectors as a pair of models makes them: one half tells topics, the other one does not know the language."""
    random = np.random.default_rng(3)
    vectors, topic = topics(4, 60, dim=32)
    language = np.arange(len(topic)) % 2
    vague = unit(np.full((len(topic), 32), 1.0) + 0.3 * random.standard_normal((len(topic), 32)))
    is_first = (language == 0)[:, None]
    both = np.concatenate([np.where(is_first, vectors, vague), np.where(is_first, vague, vectors)], axis=1) / np.sqrt(2)
    places, _ = lay_out(both.astype(np.float32))
    own = topic * 2 + language
    assert (of_nearest(places, own, places) == own).mean() > 0.95


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 64])
def test_every_size_fits_the_disc_and_is_laid_out_alike_each_time(count: int) -> None:
    vectors, _ = topics(1, count)
    places, sharpness = lay_out(vectors)
    assert places.shape == (count, 2)
    assert np.isfinite(places).all()
    assert np.isfinite(sharpness)
    reach = np.linalg.norm(places, axis=1).max()
    assert reach == pytest.approx(1, abs=1e-5) if count > 1 else reach == 0
    np.testing.assert_array_equal(lay_out(vectors.copy())[0], places)


@pytest.mark.parametrize("count", [2, 9, 40])
def test_equal_vectors_have_places_too(count: int) -> None:
    vectors = np.repeat(topics(1, 1)[0], count, axis=0)
    places, sharpness = lay_out(vectors)
    assert np.isfinite(places).all()
    assert np.isfinite(beside(vectors, vectors, places, sharpness)).all()


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(st.integers(1, 24), st.integers(0, 2**32 - 1))
def test_others_stay_between_the_landmarks(count: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    landmarks, vectors = unit(random.standard_normal((count, 5))), unit(random.standard_normal((9, 5)))
    places, sharpness = lay_out(landmarks)
    others = beside(vectors, landmarks, places, sharpness)
    assert (others >= places.min(axis=0) - 1e-5).all()
    assert (others <= places.max(axis=0) + 1e-5).all()
