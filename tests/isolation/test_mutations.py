"""The mutations that `make mutants` tries are mutations of the service as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutations import MUTATIONS, Mutation, mutated

pytestmark = pytest.mark.long

_SERVICE = Path(__file__).parents[2] / "service" / "hummock"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.name)
def test_a_mutation_fits_the_file_that_it_changes(mutation: Mutation) -> None:
    """X1."""
    source = (_SERVICE / mutation.file).read_text(encoding="utf-8")
    changed = mutated(source, mutation)
    assert changed != source
    compile(changed, mutation.file, "exec")
