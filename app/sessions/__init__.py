"""Sessions: one workspace each, with its log, its calls and at most one live connection; and the registry of them all.

State lives here, never in a tab. `workspace.py` is what every session keeps and shows; `session.py` fills it by a live
connection. By noun: `calls.py` what the person asks of the server, `tasks/` which of
that runs there as a task, `rounds.py` what it asks back by its results, `asks.py` and `answerers/` what the server asks
and who answers, `lists.py` what the server says it has, `subscriptions.py` and `resources.py` what it tells of,
`compare.py` two calls side by side, `registry.py` all sessions of the process. Knows the protocol; knows nothing of the
web.
"""

from app.sessions.identity import PARLEY, Identity
from app.sessions.registry import SessionRegistry
from app.sessions.session import Session
from app.sessions.workspace import Workspace

__all__ = ["PARLEY", "Identity", "Session", "SessionRegistry", "Workspace"]
