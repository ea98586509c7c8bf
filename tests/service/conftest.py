from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from bench import toy_models
from tests.service.models import install_model
from tests.service.running import Stubs, in_thread, settings


@pytest.fixture(scope="session")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def model(models_dir: Path) -> str:
    return install_model(models_dir)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory, models_dir: Path, model: str) -> Iterator[Stubs]:
    """One service for all tests of the session; each test has a project of its own."""
    with in_thread(settings(tmp_path_factory.mktemp("data"), models_dir, model)) as stubs:
        yield stubs


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Stubs]:
    """One service over the toy model, for tests in which meaning has no part."""
    tiny = toy_models.build_tiny(models_dir).name
    with in_thread(settings(tmp_path_factory.mktemp("data"), models_dir, tiny)) as stubs:
        yield stubs


_PROJECTS = count()


@pytest.fixture
def project() -> str:
    """A project that no other test has."""
    return f"project-{next(_PROJECTS)}"


@pytest.fixture
def talking(service: Stubs, project: str) -> str:
    """A project with a session, which is called s."""
    service.session.CreateSession(project=project, id="s")
    return project
