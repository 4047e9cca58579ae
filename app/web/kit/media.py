"""Binary content that a server sent: strict base64, what it really is, and whether a page may show it (S33).

A page shows only what is on the list and begins as its kind does. SVG and everything else is a download. Knows bytes;
knows no session.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_ALIASES: Final = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/mp3": "audio/mpeg",
    "audio/x-mp3": "audio/mpeg",
    "audio/x-flac": "audio/flac",
    "audio/opus": "audio/ogg",
    "audio/vorbis": "audio/ogg",
    "audio/x-m4a": "audio/mp4",
    "audio/m4a": "audio/mp4",
}
ENDINGS: Final = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "audio/aac": "aac",
}
"""What a page may show, and how such a file's name ends."""
PAGE_BYTES: Final = 1024 * 1024
"""The largest page of a server that a frame shows."""


def decoded(data: Any) -> bytes | None:
    """The bytes of a base64 text; None when it is none. Strict: no line breaks, no missing padding."""
    if not isinstance(data, str):
        return None
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def sniffed(raw: bytes) -> str:
    """What the bytes are, by how they begin; "" when they are nothing that a page shows."""
    head = raw[:16]
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if head[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(head[8:12], "")
    if head.startswith(b"OggS"):
        return "audio/ogg"
    if head.startswith(b"fLaC"):
        return "audio/flac"
    if head[4:8] == b"ftyp" and head[8:12] in (b"M4A ", b"M4B ", b"mp42", b"isom", b"iso2"):
        return "audio/mp4"
    if head[:2] in (b"\xff\xf1", b"\xff\xf9"):
        return "audio/aac"
    if head.startswith(b"ID3") or (len(head) > 1 and head[0] == 0xFF and head[1] & 0xE6 in (0xE2, 0xE4, 0xE6)):
        return "audio/mpeg"
    return ""


@dataclass(slots=True, frozen=True)
class Blob:
    """One binary content: what it is, whatever the server says that it is."""

    size: int
    sha: str
    kind: str
    """The type under which it may be shown; "" when it may not."""
    why: str
    """Why it is not shown."""


def _type_of(mime: Any) -> str:
    """A type by its common name, without its parameters."""
    plain = (mime if isinstance(mime, str) else "").partition(";")[0].strip().lower()
    return _ALIASES.get(plain, plain)


def examine(data: Any, mime: Any) -> Blob | None:
    """A base64 text with the type that the server gave it; None when it is not base64."""
    raw = decoded(data)
    if raw is None:
        return None
    said, kind, why = _type_of(mime), sniffed(raw), ""
    if kind != said:
        kind = ""
    if not kind and said in ENDINGS:
        why = "Not shown: the bytes are not of that type."
    elif not kind and said.startswith(("image/", "audio/")):
        why = "Not shown: pages show only PNG, JPEG, GIF and WebP, and common audio."
    return Blob(len(raw), hashlib.sha256(raw).hexdigest(), kind, why)


def is_html(mime: Any) -> bool:
    """Whether a text of this type is a page, which a sandboxed frame may show."""
    return _type_of(mime) in {"text/html", "application/xhtml+xml"}


def _held(result: Any, most: int) -> Iterator[dict[str, Any]]:
    """The contents of a result: of a tool, of a resource, and of the messages of a prompt."""
    if not isinstance(result, dict):
        return
    for key in ("content", "contents", "messages"):
        items = result.get(key)
        for item in items[:most] if isinstance(items, list) else ():
            said = item.get("content") if key == "messages" and isinstance(item, dict) else item
            for one in said[:most] if isinstance(said, list) else (said,):
                if isinstance(one, dict):
                    yield one["resource"] if isinstance(one.get("resource"), dict) else one
                    # A message of a sampling request has what a tool answered, one level further down.
                    within = one.get("content") if one.get("type") == "tool_result" else None
                    below = within[:most] if isinstance(within, list) else ()
                    yield from (two for two in below if isinstance(two, dict))


def contents(result: Any, most: int = 5_000) -> Iterator[tuple[bytes, str]]:
    """The binary contents of a result (image, audio, embedded resources, contents of a resource), each with the type
    under which it may be shown; "" when it may not."""
    for held in _held(result, most):
        for name in ("data", "blob"):
            if (raw := decoded(held.get(name))) is not None:
                yield raw, kind if (kind := sniffed(raw)) == _type_of(held.get("mimeType")) else ""


def pages(result: Any, most: int = 5_000) -> Iterator[tuple[bytes, str]]:
    """The texts of a result that are pages for a frame."""
    for held in _held(result, most):
        if isinstance(held.get("text"), str) and (page := page_of(held["text"], held.get("mimeType"))) is not None:
            yield page, "text/html"


def page_of(text: str, mime: Any) -> bytes | None:
    """A text that says it is HTML, as a page for a frame; None for any other, and for one that is too large for that:
    all of a page is looked at at once before it is shown."""
    page = text.encode(errors="replace") if is_html(mime) and len(text) <= PAGE_BYTES else None
    return page if page is not None and len(page) <= PAGE_BYTES else None


_SPACE = rb"[\t\n\f\r ]*+"
_REACHING: Final = re.compile(
    # an address, unless it is a place in the same page
    rb"(?P<name>href(?=" + _SPACE + rb"=" + _SPACE + rb"(?![\"']?#)))"
    # what sets an attribute without a script, unless it is plainly another than `href`
    rb"|(?P<sets>attributename(?!" + _SPACE + rb"=" + _SPACE + rb"(?:\"(?!href\")[a-z-]++\"|'(?!href')[a-z-]++')))"
    rb"|(?P<says>http-equiv)|(?P<frame></?iframe\b|<frame\b)",
    re.IGNORECASE,
)
_TWINS: Final = {b"<iframe": b"<noframes", b"</iframe": b"</noframes", b"<frame": b"<basefont"}
"""Elements that a parser reads like those, and that show and load nothing."""


def still(page: bytes) -> bytes:
    """A page of a server that reaches for nobody, neither by itself nor when somebody clicks in it (M02).

    A content security policy does not stop `<link rel=preconnect>`, and a browser connects before it finds that a frame
    may not go there. So nothing in the page is an address that leads away. No parser is asked, for it could see another
    page than the browser does: a letter of the name is written as a reference, which is the same text wherever there
    is text or a value, and no longer the name of an attribute where there is one.
    """

    def harmless(found: re.Match[bytes]) -> bytes:
        if found["frame"] is not None:
            return _TWINS[found[0].lower()]
        return b"&#%d;" % found[0][0] + found[0][1:]

    return _REACHING.sub(harmless, page)
