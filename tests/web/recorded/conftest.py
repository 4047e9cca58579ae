"""A Parley that keeps recordings, and a session of the demo that was recorded."""

from pathlib import Path

import pytest
from starlette.applications import Starlette

from app.core.targets import DemoTarget
from app.recordings.recorders import Recorders
from app.sessions import Session
from app.settings import Limits, Settings, local
from app.store.recordings import Recording
from tests.drive import call_tool, connected
from tests.web.asgi import PORT, TOKEN


@pytest.fixture
def settings(limits: Limits, tmp_path: Path) -> Settings:
    return local(port=PORT, token=TOKEN, limits=limits, data_dir=tmp_path)


@pytest.fixture
async def recorded(app: Starlette, victim: Session) -> Recording:
    """Two calls of the demo; the session is over."""
    recorders = Recorders(app.state.registry)
    recorders.start(victim)
    await connected(victim, DemoTarget(), era="legacy")
    await call_tool(victim, "add", {"a": 2, "b": 3})
    await call_tool(victim, "echo", {"text": "a needle in the hay", "password": "canary-of-the-harbour"})
    await victim.disconnect()
    return await recorders.stop(victim)
