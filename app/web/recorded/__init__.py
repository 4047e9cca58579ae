"""Recordings that are read: their banner, how they are opened, and a moment of one to share."""
