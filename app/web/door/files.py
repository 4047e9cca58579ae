"""The files of the page itself: as they lie here, or packed for a browser that will keep them.

A packed script or style has lost its indentation and the comments that have lines of their own, as templates lose
theirs, and is compressed once, as well as it can be. A style brings along what it imports, and a script what only it
needs, so that a page asks once.
Loaded before the port is open, so it imports little.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

from app.web.door.modules import bundled, bundles

TYPES: Final = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
"""What can be packed. A picture stays as it is: an SVG is a document where it is opened alone."""
_IMPORT: Final = re.compile(r'^@import "([a-z/_-]{1,80}\.css)" layer\(([a-z-]{1,40})\);$', re.MULTILINE)
"""How one style of ours imports another: a browser that reads the files as they lie understands the same."""
_PROPERTY: Final = re.compile(r"^([a-z-]{1,60}): ")
_WORTH_IT: Final = 400
"""Below this, what compressing saves is less than what saying so costs."""


class PackedFiles(StaticFiles):
    """Scripts and styles packed, and no other file."""

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        full, found = super().lookup_path(path) if Path(path).suffix in TYPES else ("", None)
        file = Path(full)
        if found and is_module(file) and file.stem not in bundles(file.parent):
            return "", None  # it comes with another one, and alone it would run a second time
        return full, found

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        file = Path(full_path)
        found, asked = _packed(file), Headers(scope=scope)
        headers = {"content-type": TYPES[file.suffix], "etag": found.tag}
        if self.is_not_modified(Headers(headers), asked):
            return NotModifiedResponse(Headers(headers))
        if len(found.plain) < _WORTH_IT or "gzip" not in asked.get("accept-encoding", ""):
            return Response(found.plain, status_code, headers)
        return Response(
            found.compressed, status_code, {**headers, "content-encoding": "gzip", "vary": "Accept-Encoding"}
        )


class _Packed(NamedTuple):
    plain: bytes
    compressed: bytes
    tag: str


@cache
def _packed(file: Path) -> _Packed:
    content = file.read_bytes()
    if "vendor" not in file.parts:  # what others wrote is sent as they published it
        content = bare(whole(file), is_script=file.suffix == ".js").encode()
    tag = hashlib.sha256(content).hexdigest()[:8]
    return _Packed(content, zlib.compress(content, 9, wbits=16 + zlib.MAX_WBITS), f'"{tag}"')


def is_module(file: Path) -> bool:
    return file.suffix == ".js" and file.parent.name == "js"


def whole(file: Path) -> str:
    """The text of a file, and what it brings along: the styles that it imports, the modules that only it needs."""
    if is_module(file):
        return bundled(file.parent, file.stem)

    def brought(found: re.Match[str]) -> str:
        return f"@layer {found[2]} {{\n{(file.parent / found[1]).read_text(encoding='utf-8')}}}"

    text = file.read_text(encoding="utf-8")
    return _IMPORT.sub(brought, text) if file.suffix == ".css" else text


def bare(text: str, *, is_script: bool) -> str:
    """The text without indentation and without comments that begin a line, and a style without the ends of lines that
    say nothing. No literal of ours goes over several lines in a way that this could touch:
    `tests/web/door/test_files.py` sees to that."""
    lines = _bare_lines(text, is_script)
    return "\n".join(lines) if is_script else "".join(_joined(line) for line in lines if line)


def _joined(line: str) -> str:
    """A line of a style, as short as it can be without looking into a value or a selector."""
    if line.endswith(" {"):
        return f"{line[:-2]}{{"
    if line.endswith((";", "{", "}", ",")):
        return _PROPERTY.sub(r"\1:", line)
    return f"{line}\n"


def _bare_lines(text: str, is_script: bool) -> Iterator[str]:
    is_inside = False
    for indented in text.split("\n"):
        line = indented.lstrip(" ")
        if is_inside or line.startswith("/*"):
            _, end, rest = line.partition("*/")
            is_inside = not end
            yield rest.lstrip(" ")
        else:
            yield "" if is_script and line.startswith("//") else line
