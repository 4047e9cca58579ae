"""Whether a session is recorded, and how far that is, for scripts."""

from __future__ import annotations

from typing import Any

from app.core.times import wire_time
from app.sessions import Workspace


def record_json(session: Workspace) -> dict[str, Any]:
    """How far the recording of a session is, for scripts; of one that is not recorded, the last one."""
    recorder = session.recorder
    if recorder is None:
        return {"on": False, "rid": None, "url": None, "began_at": None, "size": None, "trouble": None}
    return {
        "on": recorder.live,
        "rid": recorder.rid,
        "url": f"/r/{recorder.rid}",
        "began_at": wire_time(recorder.began),
        "size": recorder.size,
        "trouble": recorder.trouble or None,
    }
