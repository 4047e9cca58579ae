"""One protected server for all tests of signing in; each finds it as if it had just been started."""

from collections.abc import Iterator

import pytest

from tests.drive_oauth import Harbour, protected


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    with protected(tmp_path_factory.mktemp("tls")) as harbour:
        yield harbour


@pytest.fixture
def harbour(running: Harbour) -> Harbour:
    running.set(fault=None, now="anew")
    return running
