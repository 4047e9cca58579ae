"""Moments as the wire and the page write them: UTC, never outside the calendar."""

from __future__ import annotations

from datetime import UTC, datetime

LAST_MOMENT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def moment(at: float) -> datetime:
    """A time in UTC. What no calendar has (before 1970, after 9999, not a number) is the nearest that one has."""
    return datetime.fromtimestamp(min(max(0.0, at), LAST_MOMENT), UTC)  # of 0 and no number, `max` takes 0


def wire_time(at: float) -> str:
    """RFC 3339, UTC, milliseconds."""
    return moment(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")
