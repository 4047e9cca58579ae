"""The invented world of the Nordwind Travel Desk: its places, its ferries, a picture and a sound of them.

Owns what never changes and what is computed from it. Knows no MCP. All places, ferries and people are invented.
"""

import math
import struct
import wave
import zlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Literal, TypeAlias

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Destination:
    """One place the ferries go to."""

    name: str
    summary: str
    sky: tuple[int, int, int]
    fare: int
    days: tuple[str, ...]


DESTINATIONS = {
    "brackenhus": Destination(
        "Brackenhus", "a lake hut with a stove, a boat and no clock", (120, 160, 110), 64, ("monday", "thursday")
    ),
    "hollowfjord": Destination(
        "Hollowfjord", "steep water, echoing walls and one very good bakery", (90, 120, 170), 88, ("tuesday", "friday")
    ),
    "kestrelholm": Destination(
        "Kestrelholm", "red boathouses and a lighthouse that hums", (225, 130, 95), 42, ("monday", "friday", "sunday")
    ),
    "saltmere": Destination(
        "Saltmere", "flat marshes, loud birds, long evenings", (235, 180, 110), 35, ("wednesday", "saturday")
    ),
    "tindra": Destination("Tindra", "an island for looking at stars", (60, 60, 120), 120, ("saturday",)),
}
Slug: TypeAlias = Literal["brackenhus", "hollowfjord", "kestrelholm", "saltmere", "tindra"]
MOODS = ("festive", "quiet", "windswept")
FERRIES = ("Aurelia", "Bluebell", "Corvina", "Dorothea")
STATUSES = ("on time", "boarding", "departed", "back at the quay")


class Departure(BaseModel):
    """One line of a timetable."""

    number: str
    ferry: str
    destination: str
    leaves_at: str
    fare: float
    seats: dict[str, int]
    aboard: list[str]


def departures(count: int) -> Iterator[Departure]:
    """The first `count` departures, the same ones every time."""
    places = list(DESTINATIONS.values())
    for index in range(count):
        place = places[index % len(places)]
        yield Departure(
            number=f"NW{1000 + index}",
            ferry=FERRIES[index % len(FERRIES)],
            destination=place.name,
            leaves_at=f"{5 + index % 18:02}:{index * 7 % 60:02}",
            fare=place.fare + index % 10 / 2,
            seats={"inside": 120 - index % 90, "deck": index % 40},
            aboard=["bicycles", "dogs", "soup"][: 1 + index % 3],
        )


def describe(slug: str) -> str:
    """A Markdown page about one destination."""
    place = DESTINATIONS[slug]
    return (
        f"# {place.name}\n\n*{place.summary.capitalize()}.*\n\n| | |\n|---|---|\n"
        f"| fare from | {place.fare} EUR |\n| sails on | {', '.join(place.days)} |\n\n"
        f"Ask the desk for `desk://departures/{slug}/{place.days[0]}`.\n"
    )


@cache
def picture(slug: str, width: int = 240, height: int = 150) -> bytes:
    """A PNG of the view: a sky with one palette entry per row, a sun, two ranges of hills and the sea."""
    sky = DESTINATIONS[slug].sky
    sun, far, near, sea = height, height + 1, height + 2, height + 3
    palette = bytearray()
    for y in range(height):
        palette += bytes(min(255, part + (255 - part) * y // (height + height // 3)) for part in sky)
    palette += bytes((255, 240, 200)) + bytes(part * 3 // 5 for part in sky) + bytes(part * 2 // 5 for part in sky)
    palette += bytes((40, 70, 100))
    shift = sum(slug.encode())
    far_edge = [height * 0.55 - height * 0.16 * math.sin((x * 3 + shift) * math.tau / width) for x in range(width)]
    near_edge = [height * 0.70 - height * 0.10 * math.sin((x * 5 - shift) * math.tau / width) for x in range(width)]
    rows = bytearray()
    for y in range(height):
        row = bytearray([y]) * width
        for x in range(width):
            if math.hypot(x - width * 0.72, y - height * 0.30) < height * 0.13:
                row[x] = sun
            if y > far_edge[x]:
                row[x] = far
            if y > near_edge[x]:
                row[x] = near
            if y > height * 0.82:
                row[x] = sea
        rows += b"\0" + row

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"PLTE", bytes(palette)) + chunk(b"IDAT", zlib.compress(bytes(rows), 9))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")


@cache
def chime() -> bytes:
    """A WAV of the three notes that call for boarding: 0.6 seconds, 8 kHz, 16 bit, mono."""
    rate, samples = 8000, bytearray()
    for frequency in (523.25, 659.25, 783.99):
        for tick in range(rate // 5):
            loudness = 12000 * math.exp(-tick / 700)
            samples += struct.pack("<h", int(loudness * math.sin(math.tau * frequency * tick / rate)))
    target = BytesIO()
    with wave.open(target, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(bytes(samples))
    return target.getvalue()


def base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
