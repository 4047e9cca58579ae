"""Recordings: made of sessions, listed, masked, sent as files, deleted."""
