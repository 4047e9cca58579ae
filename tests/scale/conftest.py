"""What these tests may use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres
from tests.scale.drive import PROXIES, Team, program


@pytest.fixture(scope="module", params=PROXIES)
def team(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """Two replicas behind a proxy."""
    postgres.needed()
    program(request.param)
    folder: Path = tmp_path_factory.mktemp(request.param)
    with Team(folder, request.param) as made:
        yield made
