"""JSON as text and as values: one strict reader, what is too large for it, and how two values differ."""

from typing import Any

Json = Any
"""Any JSON value, as received."""
