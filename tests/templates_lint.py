"""What no template may contain, because our content security policy blocks it, because it would let a server's text
become script, or because nobody could read it: `python -m tests.templates_lint` prints one line per remark and fails
when there is one.

It reads templates as text and knows nothing of the application.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

TEMPLATES = Path(__file__).parents[1] / "templates"

JINJA = re.compile(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
# In Jinja's own blocks: what switches escaping off, and attributes that are written as a mapping for `xmlattr`.
JINJA_BANS = (
    (re.compile(r"\|\s*safe\b"), "`|safe` lets a server's text become markup"),
    (re.compile(r"\bMarkup\b"), "markup is made in app/web/kit only"),
    (re.compile(r"\bautoescape\s+false\b", re.IGNORECASE), "escaping stays on"),
    (re.compile(r"""["'](?:style|on[a-z]+|(?:data-)?hx-on[^"']*)["']\s*:"""), "an attribute that the policy blocks"),
    (re.compile(r"""(?:\s|["'])(?:style|on[a-z]+|hx-on\S*)=["']"""), "an attribute that the policy blocks"),
)
# Attributes whose value the browser or htmx fetches.
LOADS = frozenset(
    {"src", "srcset", "href", "xlink:href", "action", "formaction", "poster", "data", "background", "ping"}
    | {"hx-get", "hx-post", "hx-put", "hx-patch", "hx-delete", "hx-sse:connect", "sse-connect"}
    | {"hx-push-url", "hx-replace-url"}
)
LONGEST = 160
"""No tool formats Jinja and HTML without changing what a page says, so people break lines: between attributes, at a
space, right after `%}`, or before `{%-`. `kit/templates.py` takes the indentation away."""
RAW = re.compile(r"<(pre|textarea)\b[^>]*>\n?+[^<\n]*\n", re.IGNORECASE)
"""With a break that a browser shows; the first one, right behind the tag, it does not."""
ABROAD = re.compile(r"(?:https?:)?//", re.IGNORECASE)
SCRIPT_URL = re.compile(r"\s*(?:js|javascript|vbscript):", re.IGNORECASE)


class Remark(NamedTuple):
    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def lint(text: str, path: Path = Path("template")) -> list[Remark]:
    """The remarks about one template, in the order of its lines."""
    remarks = [Remark(path, line, remark) for line, remark in _jinja_remarks(text)]
    reader = _Reader()
    reader.feed(JINJA.sub(_blank, text))
    reader.close()
    remarks += [Remark(path, line, remark) for line, remark in reader.remarks]
    remarks += [Remark(path, line, remark) for line, remark in _layout_remarks(text)]
    return sorted(remarks)


def lint_folder(folder: Path = TEMPLATES) -> list[Remark]:
    """The remarks about every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return [remark for path in files for remark in lint(path.read_text(encoding="utf-8"), path)]


def _blank(block: re.Match[str]) -> str:
    """What stands for one of Jinja's blocks, on the same lines, so that what remains is HTML."""
    is_value = block.string[: block.start()].endswith("=")  # unquoted, as in `value={{ x }}`
    return re.sub(r"[^\n]", "x" if is_value else " ", block[0])


def _jinja_remarks(text: str) -> Iterator[tuple[int, str]]:
    for block in JINJA.finditer(text):
        if block[0].startswith("{#"):
            continue
        for pattern, reason in JINJA_BANS:
            if found := pattern.search(block[0]):
                yield text.count("\n", 0, block.start() + found.start()) + 1, f"{found[0].strip()}: {reason}"


def _layout_remarks(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LONGEST:
            yield number, f"{len(line)} characters: break it where a break means nothing, at most {LONGEST}"
        if line != line.rstrip() or "\t" in line:
            yield number, "a tab, or a space at the end of a line"
    for found in RAW.finditer(JINJA.sub(_blank, text)):
        yield text.count("\n", 0, found.start()) + 1, f"<{found[1]}>: a line break in it would be shown"


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.remarks: list[tuple[int, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "style":
            self._remark("<style>: inline styles are blocked; write a class in static/app.css")
        if tag == "script" and "src" not in attributes:
            self._remark("<script> without src: inline scripts are blocked; put it into static/js")
        for name, value in attributes.items():
            for reason in _attribute_remarks(tag, name, value, attributes):
                self._remark(f"{name}: {reason}")

    def _remark(self, text: str) -> None:
        self.remarks.append((self.getpos()[0], text))


def _attribute_remarks(tag: str, name: str, value: str, attributes: dict[str, str]) -> Iterator[str]:
    plain = name.removeprefix("data-")
    if name == "style":
        yield "inline styles are blocked; write a class in static/app.css"
    if name.startswith("on"):
        yield "inline handlers are blocked; listen in static/js"
    if plain.startswith("hx-on"):
        yield "htmx handlers are inline script; listen in static/js"
    if plain.startswith("hx-trigger") and "[" in value:
        yield "a filter in [ ] is evaluated as script"
    if SCRIPT_URL.match(value) or (plain.startswith("hx-") and re.search(r"\bjs:", value)):
        yield "script in an attribute"
    if plain in LOADS and ABROAD.search(value):
        is_link = tag == "a" and name == "href" and {"noopener", "noreferrer"} <= set(attributes.get("rel", "").split())
        if not is_link:
            yield 'nothing is loaded from elsewhere (a link in text needs rel="noopener noreferrer")'


def main() -> int:
    remarks = lint_folder()
    for remark in remarks:
        print(remark)
    return 1 if remarks else 0


if __name__ == "__main__":
    sys.exit(main())
