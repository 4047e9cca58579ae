"""Tasks of both kinds: those we execute for the server, and those it executes for us."""
