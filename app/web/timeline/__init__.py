"""Where the time of a session went: the page, its rows and its JSON."""
