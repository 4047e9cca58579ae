"""Who may come in, and by which way: nothing here knows what a page shows. Loaded before the port is open."""
