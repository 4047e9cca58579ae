"""The identities of local mode. Apart from `auth`, because sessions are loaded only after the port is open."""

from __future__ import annotations

from app.sessions import Identity

LOCAL = Identity(id="local", name="you", kind="person")
"""There is one: every browser that came in by a launch code, and every script, is the same person."""
SCRIPT = Identity(id="local", name="a script", kind="script")
"""The same person, by a program of theirs."""
