"""Text to markup: every byte that a server sent passes through `esc` here or through Jinja's autoescape.

What hides or reorders other text is written out as a mark. Knows no session.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable
from inspect import cleandoc
from pathlib import Path
from typing import Final
from urllib.parse import quote

from markupsafe import Markup

from app.core import hidden
from app.core.figures import grouped
from app.core.times import moment
from app.web.door import modules

MAX_NAME: Final = 1_000
MAX_TEXT: Final = 100_000
"""What a page holds of one text of a server, whatever it is: a description, an instruction, an address."""
Html = Markup
"""Text that is markup already; other modules name the type and never make one."""
NOTHING: Final = Markup()

_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;", "\r": "&#13;"})
_MARKUP_EXACT = _MARKUP | {0xFDD0: "&#xfdd0;"}


def directory(name: str) -> Path:
    """`templates/` and `static/` stand beside `app/` in the source tree, and inside it in the wheel."""
    inside = Path(__file__).parents[2] / name
    return inside if inside.is_dir() else Path(__file__).parents[3] / name


@functools.cache
def asset(path: str) -> str:
    """The address of a static file; it changes with the content, so that browsers may keep it for good."""
    file = directory("static") / path
    if path.startswith("js/"):
        # Modules import each other by relative addresses: what changes is the folder, for all of them at once.
        files = sorted(file.parent.glob("*.js"))
        return f"/static/js-{_digest(b''.join(one.read_bytes() for one in files))}/{file.name}"
    # A style comes with what it imports, so its address changes with that too.
    files = [file, *sorted((file.parent / "css").glob("*.css"))] if file.suffix == ".css" else [file]
    return f"/static/{path}?v={_digest(b''.join(one.read_bytes() for one in files))}"


@functools.cache
def script(name: str) -> Markup:
    """The elements by which a page brings a script of ours: it, and what it needs, all fetched in one round."""
    *before, last = (asset(f"js/{one}.js") for one in modules.needed(directory("static") / "js", name))
    always = asset(f"js/{modules.ALWAYS}.js")
    preload = Markup('<link rel="modulepreload" href="{}">')
    preloads = Markup("").join(preload.format(each) for each in before if each != always)
    return preloads + Markup('<script src="{}" type="module"></script>').format(last)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]


ICONS: Final = asset("icons.svg")


@functools.cache
def inline(path: str) -> str:
    """A small picture as an address that nobody has to fetch."""
    text = (directory("static") / path).read_text(encoding="utf-8").strip()
    return "data:image/svg+xml," + quote(text, safe=" /:=.,")


# ------------------------------------------------------------------------------------------------------------- marks
#
# What is hidden in a text is written out where the text enters a page, and there nobody knows whether it will stand in
# an element or in an attribute. So a mark first stands between two noncharacters, which no text of a server keeps, and
# is drawn when the page is complete: as an element with a title, or as plain text where no element can be.

_OPEN, _ABOUT, _CLOSE = "\ufdd0", "\ufdd1", "\ufdd2"
_INSIDE = f"([^{_OPEN}{_ABOUT}{_CLOSE}]*)"
_MARK = f"{_OPEN}{_INSIDE}{_ABOUT}{_INSIDE}{_CLOSE}"
_MARK_ALONE = re.compile(_MARK)
_CODE = re.compile(
    f"`((?:[^`{_OPEN}{_ABOUT}{_CLOSE}]|{_OPEN}[^`{_OPEN}{_ABOUT}{_CLOSE}]*+{_ABOUT}[^`{_OPEN}{_CLOSE}]*+{_CLOSE}){{1,400}})`"
)
"""What stands between backticks, with whole marks in it; a backtick that a mark writes out is none."""
_TAG_OR_MARK = re.compile(
    r"<(?:(textarea|title|option|svg|script|style)\b|[a-zA-Z/!])"
    + r"""(?:[^"'<>]++|"[^"]*+"|'[^']*+')*+>"""
    + f"|{_MARK}"
)
"""A tag with all its attributes, the first group naming an element that holds only text; or a mark outside of tags."""


def visible(text: str, *, strict: bool = False) -> str:
    """The text with what hides or reorders other text written out; plain text, for what is no page."""
    return hidden.visible(text, strict=strict)


def marked(text: str, *, strict: bool = False) -> str:
    """The same for a page: what was hidden stands in marks, which `drawn` draws."""
    return hidden.visible(text, lambda words, about: f"{_OPEN}{words}{_ABOUT}{about}{_CLOSE}", strict=strict)


def cut(text: str, most: int = MAX_TEXT) -> str:
    """The beginning of a text that is longer than a page bears, and how much of it follows."""
    return text if len(text) <= most else f"{text[:most]} … {grouped(len(text) - most)} more characters"


def esc(text: str) -> str:
    """Text for HTML, in an element or in a quoted attribute; nothing in it can hide."""
    text = cut(text)
    return (text if text.isascii() and text.isprintable() else marked(text)).translate(_MARKUP)


def esc_exact(text: str) -> str:
    """Text that comes back to us as it is, in a form field or in an attribute: nothing in it is written out."""
    return text.translate(_MARKUP_EXACT)


def exact(text: str) -> Markup:
    """The same for a template."""
    return Markup(esc_exact(text))


def drawn(html: str) -> str:
    """A page, or a part of one, with its marks drawn."""
    html = str(html)
    if _OPEN not in html:
        return html
    out: list[str] = []
    done, only_text = 0, ""
    for found in _TAG_OR_MARK.finditer(html):
        out.append(html[done : found.start()])
        done = found.end()
        if found[0][0] == "<":
            if found[1] or found[0][2:-1] == only_text:
                only_text = found[1] or ""
            out.append(_MARK_ALONE.sub(r"\1", found[0]))
        elif only_text:
            out.append(found[2])
        else:
            words, about = Markup(found[2]), Markup(found[3])  # escaped with the text they stand in
            out.append(f'<span class="mark" title="{about}">{words}</span>')
    return "".join([*out, html[done:]])


def page_bytes(html: str) -> bytes:
    """A page, or a part of one, as it leaves: the one place where HTML becomes bytes."""
    return drawn(html).encode("utf-8", "backslashreplace")


def prose(text: str) -> Markup:
    """One of our own sentences: escaped, with `wire names` in mono."""
    return Markup(_CODE.sub(r"<code>\1</code>", esc(text)))


def told(text: str) -> Markup:
    """What a server describes: text, less the indentation of a docstring, `names` in mono, no other markup."""
    return Markup(_CODE.sub(r"<code>\1</code>", esc(cleandoc(cut(text)))))


def shown(text: str) -> Markup:
    """Text of the server, exactly, with nothing invisible in it."""
    return Markup(esc(text))


def markup(parts: Iterable[Html]) -> Markup:
    """Parts that are markup, joined."""
    return Markup("".join(parts))


def stamp(at: float, until: int = 23) -> Markup:
    """A moment as an element: what it says is UTC, and the script of the page may say it in local time."""
    iso = moment(at).isoformat(timespec="milliseconds")[:23]
    return Markup(f'<time datetime="{esc(iso)}Z">{esc(iso[11:until])}</time>')


def time_of_day(at: float) -> Markup:
    """The same to the second."""
    return stamp(at, 19)


def rendered(text: str) -> Markup:
    """What a template gave: Jinja escaped everything that went into it."""
    return Markup(text)
