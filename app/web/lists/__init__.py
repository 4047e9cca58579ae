"""Lists of the server, whatever they hold: their window, their lines, their keys, and reading them again."""
