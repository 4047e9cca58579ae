"""One session: its connection, roots, options, what its server wrote to stderr; and the page about Parley."""
