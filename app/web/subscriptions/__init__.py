"""Streams of notifications that a session has asked for (2026-07-28)."""
