"""Sessions: one workspace each, with its log, its calls and at most one live connection; and the registry of them all.

State lives here, never in a tab. `session.py` holds a workspace and its connection, `calling.py` what the person asks
of the server, `client_tasks.py` (with `polling.py` and `task_list.py`) which of that runs there as a task, `asking.py`
what the server asks of the person, `rounds.py` and `task_inputs.py` what it asks by its results in 2026-07-28,
`listing.py` what the server says it has, `listening.py` what it was asked to tell of, `comparing.py` one call in both
eras, `registry.py` all sessions of the process. Knows the protocol layer, which it loads on first use because the SDK
is slow to import; knows nothing of the web.
"""

from app.sessions.identity import PARLEY, Identity
from app.sessions.registry import SessionRegistry
from app.sessions.session import Session

__all__ = ["PARLEY", "Identity", "Session", "SessionRegistry"]
