"""The tour through the demo server: a strip above the pages of a session, and the list of its steps."""
