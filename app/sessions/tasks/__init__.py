"""Tasks that the server of a session executes: started, polled, listed, and asked for more."""
