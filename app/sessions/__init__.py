"""Sessions: one workspace each, with its log, its calls and at most one live connection; and the registry of them all.

State lives here, never in a tab. `session.py` holds a workspace and its connection, `calling.py` what the person asks
of the server, `asking.py` what the server asks of the person, `listing.py` what the server says it has, `registry.py`
all sessions of the process. Knows the protocol layer, which it loads on first use because the SDK is slow to import;
knows nothing of the web.
"""

from app.sessions.identity import PARLEY, Identity
from app.sessions.registry import SessionRegistry
from app.sessions.session import Session

__all__ = ["PARLEY", "Identity", "Session", "SessionRegistry"]
