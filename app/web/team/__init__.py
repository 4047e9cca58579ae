"""Parley for a team: its door, its gate, its pages. Imported by team mode alone."""
