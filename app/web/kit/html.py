"""Values to text and markup: sizes, times, the folding JSON view, log rows.

The only module that may build `Markup`, so every byte a server sent passes through `esc` here or through Jinja's
autoescape, and nowhere else. Everything is capped: depth, nodes and lengths are the peer's choice. Knows no session.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from app.core import hidden, links
from app.core.figures import grouped, measured
from app.core.json import pointer as pointers
from app.core.times import moment
from app.core.wire import Finding, Message
from app.web.door.root import at

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_NODES: Final = 2_000
MAX_STRING: Final = 4_000
MAX_DEPTH: Final = 60
MAX_KEY: Final = 500
"""A longer key is shown by its beginning, and addressed by its place."""
MAX_NAME: Final = 1_000
MAX_TEXT: Final = 100_000
"""What a page holds of one text of a server, whatever it is: a description, an instruction, an address."""
Html = Markup
"""Text that is markup already; other modules name the type and never make one."""
NOTHING: Final = Markup()

_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;", "\r": "&#13;"})
_MARKUP_EXACT = _MARKUP | {0xFDD0: "&#xfdd0;"}
_SHORT = 72
_ENDS: Final = 2_048
_CODE = re.compile(r"`([^`]{1,400})`")


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
    return f"/static/{path}?v={_digest(file.read_bytes())}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]


ICONS: Final = asset("icons.svg")


# ------------------------------------------------------------------------------------------------------------- marks
#
# What is hidden in a text is written out where the text enters a page, and there nobody knows whether it will stand in
# an element or in an attribute. So a mark first stands between two noncharacters, which no text of a server keeps, and
# is drawn when the page is complete: as an element with a title, or as plain text where no element can be.

_OPEN, _ABOUT, _CLOSE = "\ufdd0", "\ufdd1", "\ufdd2"
_INSIDE = f"([^{_OPEN}{_ABOUT}{_CLOSE}]*)"
_MARK = f"{_OPEN}{_INSIDE}{_ABOUT}{_INSIDE}{_CLOSE}"
_MARK_ALONE = re.compile(_MARK)
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


# ------------------------------------------------------------------------------------------------ numbers and times


def size(n: int) -> str:
    """284 B, 1.1 kB, 3.2 MB."""
    if n < 1_000:
        return f"{n} B"
    return f"{n / 1_000:.1f} kB" if n < 999_950 else f"{n / 1_000_000:.1f} MB"


def clock(at: float) -> str:
    """14:02:07.118, UTC."""
    when = moment(at)
    return f"{when.hour:02}:{when.minute:02}:{when.second:02}.{when.microsecond // 1000:03}"


def time_of_day(at: float) -> str:
    """14:02:07, UTC."""
    return f"{moment(at):%H:%M:%S}"


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
        return f"{minutes} min {seconds} s"
    return f"{minutes // 60} h {minutes % 60} min"


def plural(n: int, one: str, many: str | None = None) -> str:
    """1 tool, 14 tools."""
    return f"{grouped(n)} {one if n == 1 else many or one + 's'}"


def gist(value: Any, limit: int = 120) -> str:
    """A JSON value on one line, cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    flat = " ".join(text[: limit * 2].split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def prose(text: str) -> Markup:
    """One of our own sentences: escaped, with `wire names` in mono."""
    return Markup(_CODE.sub(r"<code>\1</code>", esc(text)))


def shown(text: str) -> Markup:
    """Text of the server, exactly, with nothing invisible in it."""
    return Markup(esc(text))


# --------------------------------------------------------------------------------------------------------- JSON view


def _scalar(value: Any, max_string: int) -> str:
    if isinstance(value, str):
        more = ""
        if len(value) > max_string:
            more = f'<span class="jc"> … {grouped(len(value) - max_string)} more characters</span>'
            value = value[:max_string]
        return f'<span class="js">{esc(json.dumps(value, ensure_ascii=False))}</span>{more}'
    if value is None or isinstance(value, bool):
        return f'<span class="jb">{esc(json.dumps(value))}</span>'
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    return f'<span class="jn">{esc(str(value)[:max_string])}</span>'


def _on_one_line(value: list[Any]) -> bool:
    width = 0
    for item in value:
        if isinstance(item, dict | list):
            return False
        width += len(item) + 4 if isinstance(item, str) else 8
        if width > _SHORT:
            return False
    return True


def step(name: str, place: int | None = None) -> str:
    """One part of a JSON Pointer. With its `place` among its siblings, a very long name is `~@` and that number: no
    name is written so, and `at_pointer` knows it."""
    if place is not None and len(name) > MAX_KEY:
        return f"~@{place}"
    return pointers.escape(name)


def _key(name: str) -> str:
    more = f'<span class="jc"> … {grouped(len(name) - MAX_KEY)} more characters</span>' if len(name) > MAX_KEY else ""
    return f'<span class="jk">{esc(name[:MAX_KEY])}{more}</span>: '


class _Tree:
    """Writes one value as nested `<details>`; stops at the caps and says so.

    A lazy one can be asked for the rest: every line says the last part of its pointer, a branch beyond the caps is
    empty until it is opened, and a button stands for the members that follow.
    """

    def __init__(
        self, open_depth: int, max_nodes: int, max_string: int, marks: frozenset[str], lazy: bool = False
    ) -> None:
        self.open_depth, self.left, self.max_string, self.marks = open_depth, max_nodes, max_string, marks
        self.lazy = lazy
        self.cut = 0
        self.out: list[str] = []

    @property
    def html(self) -> Markup:
        """What was written so far."""
        return Markup("".join(self.out))

    def write(self, key: str | None, value: Any, depth: int, pointer: str, part: str = "") -> None:
        self.left -= 1
        label = _key(key) if key is not None else ""
        marked = " jh" if pointer in self.marks else ""
        at = f' data-k="{esc_exact(part)}"' if self.lazy and depth else ""
        if isinstance(value, list) and value and _on_one_line(value):
            self.left -= len(value)
            inside = ", ".join(_scalar(item, self.max_string) for item in value)
            self.out.append(f'<div class="l{marked}"{at}>{label}[{inside}]</div>')
        elif isinstance(value, dict | list) and value:
            self._branch(Markup(label), value, depth, pointer, Markup(marked), Markup(at))
        else:
            self.out.append(f'<div class="l{marked}"{at}>{label}{_scalar(value, self.max_string)}</div>')

    def _branch(
        self, label: Html, value: dict[str, Any] | list[Any], depth: int, pointer: str, marked: Html, at: Html
    ) -> None:
        begin, end, word = ("{", "}", "member") if isinstance(value, dict) else ("[", "]", "item")
        beyond = depth >= MAX_DEPTH or self.left <= 0
        if beyond:
            self.cut += 1
        if beyond and not self.lazy:
            self.out.append(
                f'<div class="l{marked}">{label}{begin}<span class="jc"> {plural(len(value), word)}, not shown '
                f"</span>{end}</div>"
            )
            return
        opened = " data-lazy" if beyond else " open" if depth < self.open_depth else ""
        self.out.append(
            f'<details{opened}{at}><summary class="{marked}">{label}{begin}<span class="jc"> '
            f"{plural(len(value), word)} {end}</span></summary><div>"
        )
        if not beyond:
            self.members(value, depth, pointer)
        self.out.append(f'</div><div class="l jz">{end}</div></details>')

    def members(self, value: dict[str, Any] | list[Any], depth: int, pointer: str, offset: int = 0) -> None:
        """The members of a branch, from one of them on."""
        word = "member" if isinstance(value, dict) else "item"
        pairs: Iterable[tuple[str, Any]] = (
            islice(value.items(), offset, None)
            if isinstance(value, dict)
            else ((str(offset + index), item) for index, item in enumerate(islice(value, offset, None)))
        )
        for written, (name, item) in enumerate(pairs):
            if self.left <= 0 and written >= 3:
                rest = len(value) - offset - written
                self.cut += rest
                said = f"… {plural(rest, 'more ' + word, 'more ' + word + 's')}"
                following = offset + written
                button = f'<button type="button" class="l jc" data-more="{following:d}">{said}, show the next</button>'
                self.out.append(button if self.lazy else f'<div class="l jc">{said}</div>')
                break
            part = step(name, offset + written)
            self.write(name if isinstance(value, dict) else None, item, depth + 1, f"{pointer}/{part}", part)


def tree(
    value: Any,
    *,
    open_depth: int = 2,
    max_nodes: int = MAX_NODES,
    max_string: int = MAX_STRING,
    marks: Iterable[str] = (),
    label: str = "JSON",
    source: str = "",
) -> Markup:
    """A JSON value as a folding view: classes only, so it passes a strict style-src; `marks` are pointers.

    `source` is the address that gives the branches which are not written here.
    """
    writer = _Tree(open_depth, max_nodes, max_string, frozenset(marks), lazy=bool(source))
    writer.write(None, value, 0, "")
    cut = ""
    if writer.cut and not source:
        cut = '<p class="s dim">Too large to show whole; the raw text has the rest.</p>'
    inside = writer.html
    asks = f' data-tree="{esc(at(source))}"' if source else ""
    return Markup(
        f'<div class="json" role="group" aria-label="{esc(label)}" tabindex="0"{asks} hx-ignore>{inside}</div>{cut}'
    )


def branch(value: Any, offset: int, *, max_nodes: int = 1_000, max_string: int = MAX_STRING) -> Markup:
    """The members of one branch of a lazy tree, from `offset` on."""
    writer = _Tree(2, max_nodes, max_string, frozenset(), lazy=True)
    if isinstance(value, dict | list):
        writer.members(value, 0, "", offset)
    return writer.html


def hits(found: Iterable[tuple[str, Any]], source: str) -> Markup:
    """What a search found, each with its pointer, as a lazy tree of its own."""
    writer = _Tree(0, 0, 200, frozenset(), lazy=True)
    for pointer, value in found:
        writer.write(pointer or "(the whole)", value, 1, pointer, pointer[1:])
    inside = writer.html
    return Markup(
        f'<div class="json" role="group" aria-label="Found" tabindex="0" data-tree="{esc(at(source))}" hx-ignore>'
        f"{inside}</div>"
    )


def at_pointer(value: Any, pointer: str) -> Any:
    """The value at a JSON Pointer. KeyError when there is none."""
    for part in pointer.split("/")[1:]:
        if isinstance(value, dict) and part.startswith("~@"):
            value = _at_place(value, part[2:])
        else:
            value = pointers.child(value, pointers.unescape(part))
    return value


def _at_place(value: dict[str, Any], place: str) -> Any:
    if (found := pointers.index(place, len(value))) is None:
        raise KeyError(place)
    return next(islice(value.values(), found, None))


def find(value: Any, text: str, limit: int = 50) -> list[tuple[str, Any]]:
    """Where a text stands in a value, as a key or inside a scalar; in the order of the value, the first `limit`."""
    wanted = text.lower()
    if not isinstance(value, dict | list):
        return [("", value)] if wanted in _words(value) else []
    found: list[tuple[str, Any]] = []
    open_at: list[Iterator[tuple[int, str | None, Any]]] = [_children(value)]
    path = [""]
    """The steps to where we are; pointers are put together for what is found only, as they can be long."""
    while open_at and len(found) < limit:
        for place, name, child in open_at[-1]:
            part = str(place) if name is None else step(name, place)
            inside = isinstance(child, dict | list)
            if (name is not None and wanted in name.lower()) or (not inside and wanted in _words(child)):
                found.append(("/".join([*path, part]), child))
            if inside:
                open_at.append(_children(child))
                path.append(part)
            if inside or len(found) == limit:
                break
        else:
            open_at.pop()
            path.pop()
    return found


def _children(value: dict[str, Any] | list[Any]) -> Iterator[tuple[int, str | None, Any]]:
    """The children of a container, each with its place, and in an object with its name."""
    if isinstance(value, list):
        return ((place, None, child) for place, child in enumerate(value))
    return ((place, name, child) for place, (name, child) in enumerate(value.items()))


def _words(scalar: Any) -> str:
    return scalar.lower() if isinstance(scalar, str) else json.dumps(scalar)


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


# ---------------------------------------------------------------------------------------------------------- Markdown

MARKDOWN_CHARACTERS: Final = 64 * 1024
MARKDOWN_SECONDS: Final = 2.0
MARKED: Final = re.compile(r"[*_`#\[\]|~<>]|\n\s*(?:[-+]|\d{1,9}[.)])\s|\n\s*\n|^\s*(?:[-+]|\d{1,9}[.)])\s")
"""Where this is not found, Markdown would look like the text itself."""
_MAIL = re.compile(r"mailto:[^\s<>\"'\\]{1,500}", re.IGNORECASE)
_TAGS: Final = {
    *("p", "br", "hr", "blockquote", "ul", "ol", "li", "pre", "code", "em", "strong", "s", "a"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}
_HEADS: Final = {"h1": "mh1", "h2": "mh2"}


class TooMuch(Exception):
    """More than is rendered: too long, or too slow. Its text is a sentence for the page."""


def markdown(text: str, seconds: float = MARKDOWN_SECONDS) -> Markup:
    """A server's Markdown, made harmless: no HTML of its own, no images, links that leave nothing behind (S29, S32).

    Slow for hostile texts, so call it in a thread. TooMuch when it is too long or does not end in time. The result
    belongs inside an element with `hx-ignore`.
    """
    if len(text) > MARKDOWN_CHARACTERS:
        raise TooMuch(f"Longer than {grouped(MARKDOWN_CHARACTERS)} characters, so it is shown as text only.")
    import nh3

    html = nh3.clean(
        _parser(seconds).render(visible(text)),
        tags=_TAGS,
        attributes={"a": {"href", "title"}, "ol": {"start"}},
        attribute_filter=lambda tag, name, value: value if name != "href" else _opened(value),
        tag_attribute_values={"p": {"class": set(_HEADS.values()) | {"mh3"}}},
        set_tag_attribute_values={"a": {"target": "_blank"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    # A table can be wider than the page, and is scrolled by keyboard too. A head without words is no head.
    html = html.replace("<th></th>", "<td></td>")
    html = html.replace("<table>", '<div class="wide" role="group" aria-label="Table" tabindex="0"><table>')
    return Markup(html.replace("</table>", "</table></div>"))


def _opened(address: str) -> str | None:
    """The address that a link of Markdown may have; None when it may have none."""
    link = links.read(address)
    return link.href if link is not None else address if _MAIL.fullmatch(address) else None


def _parser(seconds: float) -> MarkdownIt:
    """A parser that gives up at its deadline: both of its loops ask the first rule about every step."""
    from markdown_it import MarkdownIt

    end = time.monotonic() + seconds

    def in_time(*_: object) -> bool:
        if time.monotonic() > end:
            raise TooMuch("It takes too long to lay out as Markdown, so it is shown as text only.")
        return False

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.block.ruler.before("table", "in_time", in_time, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    parser.inline.ruler.before("text", "in_time", in_time)
    parser.core.ruler.push("plain_parts", lambda state: _plain_parts(state.tokens))
    return parser


def _plain_parts(tokens: list[Token]) -> None:
    """Headings as paragraphs (they are not of our outline), images as links, and the host after each link."""
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            if token.nesting == 1:
                token.attrSet("class", _HEADS.get(token.tag, "mh3"))
            token.tag = "p"
        elif token.children:
            token.children = list(_with_hosts(token.children))


def _with_hosts(children: Sequence[Token]) -> Iterator[Token]:
    from markdown_it.token import Token

    href, said = "", ""
    for token in children:
        if token.type == "image":
            source = str(token.attrGet("src") or "")
            words = Token("text", "", 0, content=f"image: {token.content or 'without a name'}")
            link = links.read(source)
            if href or link is None:
                yield words
                continue
            yield Token("link_open", "a", 1, attrs={"href": link.href})
            yield words
            yield Token("link_close", "a", -1)
            yield Token("text", "", 0, content=f" ({link.host})")
            continue
        if token.type == "link_open":
            href, said = str(token.attrGet("href") or ""), ""
        elif href and token.type != "link_close":
            said += token.content
        yield token
        if token.type == "link_close":
            link = links.read(href)
            if link is not None and said != link.href:
                yield Token("text", "", 0, content=f" ({link.host})")
            href = ""


# ---------------------------------------------------------------------------------------------------------- log rows

_KIND = {kind: kind for kind in ("request", "response", "error", "notification", "invalid")}
_GLYPH = {"request": "req", "response": "res", "error": "res", "notification": "not", "invalid": "not"}


def finding_json(finding: Finding) -> dict[str, Any]:
    """A finding, by the names that scripts rely on."""
    return {
        "id": finding.id,
        "level": finding.level,
        "text": finding.text,
        "advice": finding.advice,
        "message_seq": finding.message_seq,
    }


def _chip(findings: tuple[Finding, ...]) -> str:
    if not findings:
        return ""
    worst = next((one for one in findings if one.level == "must"), findings[0])
    icon = "must" if worst.level == "must" else "should"
    more = f" +{len(findings) - 1:d}" if len(findings) > 1 else ""
    return (
        f'<span class="chip mk"><svg class="i" aria-hidden="true"><use href="{ICONS}#{icon}"/></svg>'
        f'<span class="sr">finding </span>{esc(worst.id)}{more}</span>'
    )


def _gist(message: Message, findings: tuple[Finding, ...]) -> str:
    peek = f'<span class="peek">{esc(message.gist)}</span>'
    return f'<span class="gist">{peek}{_chip(findings)}</span>' if findings else peek


POLLS: Final = frozenset({"tasks/get", "ping", "completion/complete"})
"""Methods that repeat: a run of them is folded into one line of the log, with a count."""


def _poll(message: Message, findings: tuple[Finding, ...]) -> str:
    """Marks a row that may be folded with others like it. What is remarkable never is."""
    if findings or message.kind not in {"request", "response"} or message.method is None:
        return ""
    return f' data-poll="{esc(message.method[:200])}"' if message.quiet or message.method in POLLS else ""


def log_row(message: Message, findings: tuple[Finding, ...], base: str, *, found: bool = False) -> Markup:
    """One row of the log. Hand-made and not a template: a burst renders thousands of them."""
    out = message.direction == "out"
    glyph = ("o-" if out else "i-") + _GLYPH[message.kind]
    seq = message.seq
    reply = message.kind in {"response", "error"}
    bad = " bad2" if message.kind in {"error", "invalid"} else ""
    method = message.method or ("reply" if reply else "not a message")
    side, word = ("o", "sent") if out else ("t", "received")
    return Markup(
        f'<li id="{"f" if found else "m"}{seq:d}" data-d="{"out" if out else "in"}" data-k="{_KIND[message.kind]}"'
        f"{' data-f' if findings else ''}{' data-quiet' if message.quiet else ''}{_poll(message, findings)}>"
        f'<a class="m{bad}" href="{esc_exact(at(base))}/log/{seq:d}"><span class="q">{seq:d}</span>'
        f"<time>{clock(message.at)}</time>"
        f'<span class="lane {glyph} {side}" role="img" aria-label="{word}"></span>'
        f'<span class="meth{" re" if reply else ""}">{esc(method[:200])}</span>'
        f"{_gist(message, findings)}"
        f'<span class="z">{duration(message.latency_ms)}</span><span class="z sz">{size(message.size)}</span></a></li>'
    )


def markup(parts: Iterable[Html]) -> Markup:
    """Parts that are markup, joined."""
    return Markup("".join(parts))


def rendered(text: str) -> Markup:
    """What a template gave: Jinja escaped everything that went into it."""
    return Markup(text)


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
