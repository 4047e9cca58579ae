"""An entry of the catalogue as somebody types it: the fields of its form, both ways."""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any, Final

from app import team_bounds as bounds
from app.core.catalogue import NEW, ROLES, Entry, Variable
from app.core.errors import Invalid
from app.core.targets import typed_line
from app.web.door.denied import Fields
from app.web.kit.request_bodies import COMMAND_LINE_LONGEST, Body

_NUMBERS: Final = ("memory_mib", "processes", "cpu_seconds", "open_files", "file_mib")
_OF_A_CHILD: Final = (*_NUMBERS, "cwd", "path")


@dataclass(slots=True)
class TypedVariable:
    """One row."""

    name: str = ""
    description: str = ""
    values: str = ""
    given: str = "person"
    saved: bool = False
    """An admin's value is kept already."""


@dataclass(slots=True)
class Editor:
    """What the form shows."""

    id: str
    fixed: bool
    enabled: bool
    typed: dict[str, str]
    roles: tuple[str, ...]
    network: bool
    variables: list[TypedVariable]
    errors: Fields = field(default_factory=dict)

    def wrong(self, *places: str) -> str:
        """What is wrong there, as a sentence."""
        return " ".join(words for place in places for words in self.errors.get(place, []))

    @property
    def elsewhere(self) -> str:
        """What is wrong with all of it, or with what has no field."""
        shown = {"/name", "/description", "/command_line", "/url", "/roles", "/env", "/reads", "/cwd", "/path"}
        rest = [
            words
            for place, texts in self.errors.items()
            for words in texts
            if place not in shown and place.lstrip("/") not in _NUMBERS and not place.startswith("/variables/")
        ]
        return " ".join(text[:1].upper() + text[1:] + ("" if text.endswith((".", "!")) else ".") for text in rest)

    def wrong_in_row(self, at: int) -> str:
        """What is wrong with a variable, whichever part of it."""
        prefix = f"/variables/{at}"
        found = (texts for place, texts in self.errors.items() if place == prefix or place.startswith(prefix + "/"))
        return " ".join(words for texts in found for words in texts)


def blank() -> Editor:
    """An entry that nobody has written yet."""
    room = Entry.model_fields
    numbers = {name: str(room[name].default) for name in _NUMBERS}
    texts = dict.fromkeys(("name", "description", "command_line", "url", "cwd", "path", "reads", "env"), "")
    return Editor(
        NEW, False, True, {**texts, **numbers, "transport": "stdio"}, ("user", "admin"), False, [TypedVariable()]
    )


def editor_of(entry: Entry, *, fixed: bool) -> Editor:
    """An entry as its form has it."""
    typed = {
        "name": entry.name,
        "description": entry.description,
        "transport": entry.transport,
        "command_line": typed_line((entry.command, *entry.args)) if entry.command else "",
        "url": entry.url,
        "cwd": entry.cwd,
        "path": entry.path,
        "reads": "\n".join(entry.reads),
        "env": "\n".join(f"{name}={value}" for name, value in entry.env.items()),
        **{name: str(getattr(entry, name)) for name in _NUMBERS},
    }
    rows = [_row(one) for one in entry.variables] or ([] if fixed else [TypedVariable()])
    return Editor(entry.id, fixed, entry.enabled, typed, entry.roles, entry.network, rows)


def _row(one: Variable) -> TypedVariable:
    given = (
        "admin" if one.by_admin else "-".join(filter(None, ("secret" * one.secret, "optional" * (not one.required))))
    )
    values = one.file or ", ".join(one.values)
    return TypedVariable(one.name, one.description, values, given or "person", one.by_admin)


def typed_again(form: Body, before: Entry | None, errors: Fields | None = None) -> Editor:
    """The form with what was typed, but for secrets; a row longer, or without one, when a button for that was
    pressed."""
    act, _, which = form.text("then").partition(".")
    editor = blank() if before is None else editor_of(before, fixed=False)
    editor.typed |= {name: form.text(name) for name in editor.typed if name in form.data}
    editor.roles = tuple(role for role in ROLES if form.text(f"role.{role}"))
    editor.network = bool(form.text("network"))
    kept = {one.name for one in (before.variables if before else ()) if one.kept}
    editor.variables = [
        TypedVariable(row["name"], row["description"], row["values"], row["given"], row["name"] in kept)
        for row in _rows(form)
        if (act, which) != ("drop", row["at"])
    ]
    if act == "row" or not editor.variables:
        editor.variables.append(TypedVariable())
    editor.errors = errors or {}
    return editor


def _rows(form: Body) -> list[dict[str, str]]:
    """The variables that were typed; a row without a name is none."""
    columns = ("name", "description", "values", "given", "value")
    found = [
        {"at": str(at)} | {column: form.text(f"var.{at}.{column}").strip(" \t\r\n") for column in columns}
        for at in range(bounds.ENTRY_VARIABLES + 1)
    ]
    return [row for row in found if row["name"]]


def of_form(form: Body) -> tuple[dict[str, Any], dict[str, str]]:
    """The entry that was typed, as a script would send it, and the values that admins give. Raises Invalid."""
    transport = form.text("transport") or "stdio"
    data: dict[str, Any] = {
        "name": " ".join(form.text("name").split()),
        "description": form.text("description").strip(),
        "transport": transport,
        "roles": tuple(role for role in ROLES if form.text(f"role.{role}")),
        "enabled": form.text("enabled") != "no",
    }
    rows = _rows(form)
    if transport != "demo":
        data["variables"] = tuple(_variable(row) for row in rows)
    if transport == "stdio":
        data |= _child(form)
    elif transport != "demo":
        data["url"] = form.text("url").strip()
    return data, {row["name"]: row["value"] for row in rows if row["given"] == "admin" and row["value"]}


def _variable(row: dict[str, str]) -> dict[str, Any]:
    kept = row["given"] == "admin"
    values = tuple(filter(None, (one.strip() for one in row["values"].split(",")))) if not kept else ()
    said = {"name": row["name"], "description": row["description"], "values": values}
    return {
        **said,
        "required": "optional" not in row["given"],
        "secret": kept or "secret" in row["given"],
        "kept": kept,
    }


def _child(form: Body) -> dict[str, Any]:
    line = form.text("command_line").strip()
    try:
        argv = shlex.split(line) if len(line) <= COMMAND_LINE_LONGEST else []
    except ValueError as fault:
        words = f"This cannot be split into arguments: {fault}."
        raise Invalid("Some values cannot be used.", {"/command_line": [words]}) from None
    if not argv:
        words = "Type the command that starts the server." if not line else "This is too long for a command line."
        raise Invalid("Some values cannot be used.", {"/command_line": [words]})
    found: dict[str, Any] = {"command": argv[0], "args": tuple(argv[1:])}
    found |= {name: form.text(name).strip() for name in _OF_A_CHILD if form.text(name).strip()}
    found["network"] = bool(form.text("network"))
    found["reads"] = tuple(filter(None, (one.strip() for one in form.text("reads").splitlines())))
    lines = [one for one in form.text("env").splitlines() if one.strip()]
    if bare := [one for one in lines if "=" not in one]:
        words = f"Each line is NAME=value, and this one is not: {bare[0][:60]}"
        raise Invalid("Some values cannot be used.", {"/env": [words]})
    found["env"] = {name.strip(): value for name, _, value in (one.partition("=") for one in lines)}
    return found


def said_of_numbers(errors: Fields) -> Fields:
    """The same, with what a number may be where one does not fit."""
    found = dict(errors)
    for name in _NUMBERS:
        if f"/{name}" in found:
            bounds_of = {kind: getattr(one, kind) for one in Entry.model_fields[name].metadata for kind in ("ge", "le")
                         if hasattr(one, kind)}  # fmt: skip
            found[f"/{name}"] = [f"A whole number from {bounds_of['ge']:,} to {bounds_of['le']:,}."]
    return found


def free_id(name: str, taken: Set[str]) -> str:
    """An id made of a name that nobody has."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    words = "".join(char if char.isalnum() else " " for char in plain).split()
    found = "-".join(words)[: bounds.ENTRY_ID - 5].strip("-") or "server"
    numbered = (found if number == 1 else f"{found}-{number}" for number in range(1, bounds.ENTRIES + 100))
    return next(one for one in numbered if one not in taken and one != NEW)
