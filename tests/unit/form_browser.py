"""What a browser would make of the HTML of a form: the controls it would submit, and whether it is fit for people.

Follows the HTML standard as far as our forms go: value sanitisation of inputs, the first option of a select, the
newline after `<textarea>`, labels. `entries` says the same of a tree, without its HTML. Knows no schema.
"""

import re
from dataclasses import dataclass, field
from datetime import date, datetime, time
from html.parser import HTMLParser

from app.core import forms
from app.core.forms.tree import GROUPS
from app.web.kit.templates import jinja

VOID = frozenset({"input", "br", "hr", "img", "use", "path"})
_PAGE = '{% import "macros/form.html" as F %}{{ F.form_fields(tree, prefix, live) }}'
_TEMPLATE = jinja.from_string(_PAGE)  # the one environment, with its escaping and its filters


def draw(tree: forms.Field, prefix: str = "f-", live: dict[str, str] | None = None) -> str:
    """The HTML of a form."""
    return _TEMPLATE.render(tree=tree, prefix=prefix, live=live or {})


@dataclass
class Control:
    """One element that may be submitted or pressed."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    options: list[tuple[str, bool]] = field(default_factory=list)
    label: str = ""


class Page(HTMLParser):
    """The controls of a page, and what is wrong with the page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.controls: list[Control] = []
        self.ids: list[str] = []
        self.labels: dict[str, str] = {}
        self.faults: list[str] = []
        self.described: list[str] = []
        self._open: list[str] = []
        self._label: tuple[str, list[str]] | None = None
        self._inside: list[Control] = []
        self.feed(html)
        self.close()
        if self._open:
            self.faults.append(f"not closed: {self._open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if len(attributes) != len(attrs):
            self.faults.append(f"an attribute twice: {attrs}")
        for name in attributes:
            if name == "style" or name.startswith(("on", "hx-on")):
                self.faults.append(f"{name} on {tag}")
        if tag in ("script", "style"):
            self.faults.append(tag)
        if tag not in VOID:
            self._open.append(tag)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        self.described += attributes.get("aria-describedby", "").split()
        if tag == "label":
            self._label = (attributes.get("for", ""), [])
        if tag in ("input", "select", "textarea", "button") and "noscript" not in self._open:
            control = Control(tag, attributes)
            self.controls.append(control)
            if self._label is not None:
                self._inside.append(control)
        if tag == "option" and self.controls:
            self.controls[-1].options.append((attributes.get("value", ""), "selected" in attributes))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> out of place")
        if tag == "label" and self._label is not None:
            name, words = self._label
            self.labels[name] = " ".join("".join(words).split())
            for control in self._inside:
                control.label = self.labels[name]
            self._label, self._inside = None, []

    def handle_data(self, data: str) -> None:
        if self._label is not None:
            self._label[1].append(data)
        if "textarea" in self._open or "button" in self._open:
            self.controls[-1].text += data

    def submitted(self) -> list[tuple[str, str]]:
        """The names and values of the successful controls, in their order."""
        found: list[tuple[str, str]] = []
        for one in self.controls:
            name, kind = one.attributes.get("name", ""), one.attributes.get("type", "text")
            if not name or "disabled" in one.attributes or one.tag == "button":
                continue
            if one.tag == "select":
                chosen = [value for value, selected in one.options if selected] or [one.options[0][0]]
                found.append((name, chosen[-1]))
            elif one.tag == "textarea":
                found.append((name, one.text.removeprefix("\n")))
            elif kind in ("checkbox", "radio"):
                if "checked" in one.attributes:
                    found.append((name, one.attributes.get("value", "on")))
            elif kind != "file":
                found.append((name, _sanitised(kind, one.attributes.get("value", ""))))
        return found

    def problems(self) -> list[str]:
        """What is wrong with the page for people and for our content security policy."""
        found = list(self.faults)
        found += [f"id {each} twice" for each in {each for each in self.ids if self.ids.count(each) > 1}]
        found += [f"no element {each}" for each in self.described if each not in self.ids]
        for one in self.controls:
            if one.attributes.get("type") == "hidden" or "hidden" in one.attributes:
                continue
            own = one.attributes.get("id", "")
            named = one.text.strip() if one.tag == "button" else one.label or self.labels.get(own)
            if not named and not one.attributes.get("aria-label"):
                found.append(f"no name: {one}")
            if not own:
                found.append(f"no id: {one}")
        return found


def _sanitised(kind: str, value: str) -> str:
    if kind == "hidden":
        return value
    value = re.sub("[\r\n]", "", value)
    try:
        match kind:
            case "date":
                return date.fromisoformat(value).isoformat()
            case "time":
                time.fromisoformat(value)
            case "datetime-local":
                datetime.fromisoformat(value)
                return value.removesuffix(":00") if value.count(":") == 2 else value
    except ValueError:
        return ""
    return value


def entries(tree: forms.Field) -> list[tuple[str, str]]:
    """What a browser submits for a tree that nobody has touched: names and texts of its controls, in their order."""
    found: list[tuple[str, str]] = []
    _enter(tree, found)
    return found


def _enter(one: forms.Field, found: list[tuple[str, str]]) -> None:
    name = one.name
    if one.removable:
        found.append((f"{name}#use", "1" if one.present else "0"))
    match one.kind:
        case "const" | "object" | "tuple":
            pass
        case "array" | "map":
            if one.kind == "array" and one.present:
                found.append((f"{name}#list", "1"))
        case "multi":
            found += [(name, str(at)) for at in one.chosen_many]
        case "choice":
            found.append((name, "" if one.chosen is None else str(one.chosen)))
        case "oneof":
            found.append((f"{name}#alt", "null" if one.is_null else "" if one.chosen is None else str(one.chosen)))
            if one.chosen is not None:
                found.append((f"{name}#was", str(one.chosen)))
            found += one.kept
        case "checkbox" | "threeway":
            unset = one.kind == "threeway" and not one.required and one.state != "null"
            found += [(name, one.text)] if one.text or unset else []
        case "json":
            found += [(name, one.text), (f"{name}#json", "1")]
        case _:
            found.append((name, one.text))
    if one.plainer:
        found.append((f"{name}#kind", one.kind))
    if one.is_null and one.kind in GROUPS and one.kind != "oneof":
        found.append((f"{name}#as", "null"))
    for child in [*one.shown, *one.folded]:
        if one.kind in ("array", "map"):
            found.append((f"{name}#item", child.name.rpartition("/")[2]))
        if one.kind == "map":
            found.append((f"{child.name}#key", child.key))
        _enter(child, found)
    if one.states and one.state in one.states:
        found.append((f"{name}#as", one.state))
