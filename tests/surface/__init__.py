"""The promised surface: what scripts and pages may rely on, walked over a real process and kept in `surface.json`."""

from pathlib import Path

GOLDEN = Path(__file__).with_name("surface.json")
