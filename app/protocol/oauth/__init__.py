"""Signing in to a server by OAuth, step by step, over the guarded client; imported with the SDK on the first 401.

`flow.py` takes the steps in order and alone; `discovery.py`, `registration.py`, `authorization.py` and `tokens.py` have
what each of them does and checks; `asking.py` makes their requests, each an exchange in the log; `words.py` says why
one failed. What the SDK of MCP does well it does here (`sdk.py`, which names what it leaves out). Knows no session.
"""
