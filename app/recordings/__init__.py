"""Recordings: sessions that are over, read like live ones. Knows sessions; no session knows it."""
