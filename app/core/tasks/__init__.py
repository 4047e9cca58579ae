"""Tasks of both kinds: those that a server executes for us, and those that we execute for a server."""
