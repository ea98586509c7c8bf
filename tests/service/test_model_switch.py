"""A service whose setting names another model than its directory was made with."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from bench import toy_models
from hummock_client.v1 import admin_service_pb2 as admin
from tests.service.calls import ask, learn
from tests.service.inputs import note
from tests.service.running import Stubs, in_thread, settings

pytestmark = [pytest.mark.timed, pytest.mark.storeless]  # databases keep their model

_LOOKS = 1000


def model_of(service: Stubs) -> admin.ModelStatus:
    return service.admin.GetStatus().model


def await_all(service: Stubs) -> None:
    """Until the advice says that all memories have vectors of the next model."""
    for _ in range(_LOOKS):
        if "restart the service to use it" in model_of(service).advice:
            return
        Event().wait(0.02)
    raise AssertionError(model_of(service).advice)


def test_memories_are_embedded_anew_while_the_service_answers_and_the_next_start_switches(tmp_path: Path) -> None:
    """And back, when the setting names the former model again; one that is learnt last waits for its vectors."""
    models = tmp_path / "models"
    first, second = (toy_models.build_tiny(models, is_int8=is_int8).name for is_int8 in (True, False))
    texts = ["the harbour lamp burns oil", "red kites over the bay", "先本后息的还款方式"]

    def answers(service: Stubs) -> list[str]:
        return [ask(service, "p", text).hits[0].memory.id for text in texts]

    with in_thread(settings(tmp_path / "data", models, first)) as service:
        learn(service, "p", *(note(text, id=f"m{number}") for number, text in enumerate(texts)))
        space = model_of(service).emb_space

    with in_thread(settings(tmp_path / "data", models, second)) as service:
        assert (model_of(service).name, model_of(service).emb_space) == (first, space)
        assert answers(service) == ["m0", "m1", "m2"]
        await_all(service)
        assert answers(service) == ["m0", "m1", "m2"]

    with in_thread(settings(tmp_path / "data", models, second)) as service:
        assert model_of(service).name == second
        assert model_of(service).advice == ""
        assert answers(service) == ["m0", "m1", "m2"]
        learn(service, "p", note("blue tide at noon", id="m3"))

    with in_thread(settings(tmp_path / "data", models, first)) as service:
        assert (model_of(service).name, model_of(service).emb_space) == (first, space)
        assert answers(service) == ["m0", "m1", "m2"]
        assert ask(service, "p", "blue tide at noon").hits[0].memory.id == "m3"
