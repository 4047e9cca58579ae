"""Values in words: sizes, times, durations, JSON on one line. Plain text, no markup; knows no session."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final

from app.core.figures import grouped, measured
from app.core.times import moment

_ENDS: Final = 2_048


# ------------------------------------------------------------------------------------------------ numbers and times


def size(n: int) -> str:
    """284 B, 1.1 kB, 3.2 MB, 4.3 GB."""
    if n < 1_000:
        return f"{n} B"
    if n < 999_950:
        return f"{n / 1_000:.1f} kB"
    return f"{n / 1_000_000:.1f} MB" if n < 999_950_000 else f"{n / 1_000_000_000:.1f} GB"


def clock(at: float) -> str:
    """14:02:07.118, UTC."""
    when = moment(at)
    return f"{when.hour:02}:{when.minute:02}:{when.second:02}.{when.microsecond // 1000:03}"


def duration(ms: float | None) -> str:
    """<1 ms, 22 ms, 14.4 s, 3 min 5 s."""
    if ms is None:
        return ""
    if ms < 1:
        return "<1 ms"
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 90_000:
        return f"{ms / 1_000:.1f}".removesuffix(".0") + " s"
    minutes, seconds = divmod(round(ms / 1_000), 60)
    if minutes < 90:
        return f"{minutes} min {seconds} s".removesuffix(" 0 s")
    return f"{minutes // 60} h {minutes % 60} min".removesuffix(" 0 min")


def stopwatch(seconds: float) -> str:
    """0:05, 12:40, 1:00:00."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def ago(seconds: float) -> str:
    """3 days ago, 1 minute ago, just now."""
    for span, word in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= span:
            return f"{plural(int(seconds // span), word)} ago"
    return "just now"


def span(seconds: float) -> str:
    """12 min, 3 h, 2 days."""
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{max(1, minutes)} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // 1440} days"


_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def day(at: float, now: float) -> str:
    """When something was, as people say it, by the clock of this machine: 12 min ago, yesterday, Friday, 12 Nov."""
    when, today = moment(at).astimezone(), moment(now).astimezone()
    days = (today.date() - when.date()).days
    if now - at < 60:
        return "just now"
    if days <= 0 or now - at < 3600:
        return f"{span(now - at)} ago"
    if days == 1:
        return "yesterday"
    if days < 7:
        return _DAYS[when.weekday()]
    date = f"{when.day} {_MONTHS[when.month - 1]}"
    return date if when.year == today.year else f"{date} {when.year}"


def plural(n: int, one: str, many: str | None = None) -> str:
    """1 tool, 14 tools."""
    return f"{grouped(n)} {one if n == 1 else many or one + 's'}"


def gist(value: Any, limit: int = 120) -> str:
    """A JSON value on one line, cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    flat = " ".join(text[: limit * 2].split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def raw_text(raw: bytes, limit: int) -> tuple[str, int]:
    """The bytes as text to look at, and how many bytes were left out. What is not UTF-8 shows as \\xNN."""
    return raw[:limit].decode(errors="backslashreplace"), max(0, len(raw) - limit)


def base64_bytes(data: Any) -> int | None:
    """How many bytes a base64 text holds; None when it is none. Counted, and of a long one only the ends are read."""
    if not isinstance(data, str) or len(data) % 4:
        return None
    skipped = max(0, len(data) - 2 * _ENDS) if "=" not in data[:_ENDS] else 0
    try:
        read = base64.b64decode(data[:_ENDS] + data[_ENDS + skipped :], validate=True)
    except (binascii.Error, ValueError):
        return None
    return len(read) + skipped // 4 * 3


def brief_json(value: Any) -> str:
    """JSON to read, in which long texts, pictures for example, are cut."""
    return json.dumps(_cut(value), ensure_ascii=False, indent=2)


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut(item) for item in value]
    if isinstance(value, str) and len(value) > _ENDS:
        return f"{value[:200]}… {grouped(len(value) - 200)} more characters"
    return value


# -------------------------------------------------------------------------------------------------- schemas in words


def type_words(schema: Any) -> str:
    """The type of a JSON Schema in a few words: `integer, 5 to 60`, `one of 3`, `array of string`."""
    if not isinstance(schema, dict):
        return "anything" if schema is True else "nothing" if schema is False else "not a schema"
    for key in ("enum", "oneOf", "anyOf"):
        if isinstance(schema.get(key), list):
            return f"one of {len(schema[key])}"
    if "const" in schema:
        return f"always {gist(schema['const'], 40)}"
    kind = schema.get("type")
    words = " or ".join(str(one)[:20] for one in kind[:6]) if isinstance(kind, list) else str(kind or "any value")[:60]
    if kind == "array" and isinstance(schema.get("items"), dict):
        words = f"array of {str(schema['items'].get('type', 'any value'))[:20]}"
    low, high = schema.get("minimum"), schema.get("maximum")
    if isinstance(low, int | float) and isinstance(high, int | float):
        words += f", {measured(low)} to {measured(high)}"
    elif isinstance(low, int | float):
        words += f", from {measured(low)}"
    elif isinstance(high, int | float):
        words += f", up to {measured(high)}"
    return f"{words}, {schema['format'][:30]}" if isinstance(schema.get("format"), str) else words


def pretty(value: Any) -> str:
    """JSON to read and to edit."""
    return json.dumps(value, ensure_ascii=False, indent=2)
