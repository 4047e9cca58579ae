"""A server's Markdown, made harmless. Slow for hostile texts, so it has a deadline and belongs in a thread."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from app.core import links
from app.core.figures import grouped

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
from app.web.kit.html import visible

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
