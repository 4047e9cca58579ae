"""The page of the catalogue: admins list, change, order and switch off the servers that people may use.

What the settings file lists is shown and cannot be changed here. A change holds for the next connection at once. What
runs keeps what it was started with; a server that is taken away, switched off or no longer for somebody ends where it
runs, and its sessions stay to be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from app.core.catalogue import NEW, Entry
from app.core.errors import Invalid, NotAllowed
from app.core.strict import Closed
from app.store.sealed import HOUSE
from app.team_settings import too_much_read
from app.web.door.denied import Fields, unknown
from app.web.kit import request_bodies
from app.web.kit.errors import field_errors, pointers
from app.web.kit.responses import back, show, show_page
from app.web.team.house import House
from app.web.team.offers import for_whom
from app.web.team.pages import house_of
from app.web.team.people import Admin
from app.web.team.typed_entry import Editor, blank, editor_of, free_id, of_form, said_of_numbers, typed_again
from app.web.team.withdrawn import end_withdrawn


@dataclass(slots=True)
class Row:
    """One line of the list."""

    entry: Entry
    fixed: bool
    whom: str
    open: int
    """Sessions that are connected to it."""


@dataclass(slots=True)
class CataloguePage(Admin):
    template: ClassVar[str] = "team/catalogue.html"

    rows: list[Row]
    editor: Editor | None
    chosen: str
    open: int
    """Sessions of the chosen one."""
    off: int


def _page(request: Request, editor: Editor | None, chosen: str = "") -> CataloguePage:
    house = house_of(request)
    counted = _open(request)
    entries = house.catalogue().entries
    rows = [
        Row(one, house.is_fixed(one), for_whom(one).removeprefix("for "), counted.get(one.id, 0)) for one in entries
    ]
    off = sum(not one.enabled for one in entries)
    return CataloguePage(*Admin.around(house, "catalogue"), rows, editor, chosen, counted.get(chosen, 0), off)


def _open(request: Request) -> dict[str, int]:
    """How many sessions are connected to each entry."""
    catalogue, found = house_of(request).catalogue(), dict[str, int]()
    for session in request.app.state.registry.everybodys():
        if session.target is not None and session.info.state in ("connecting", "ready"):
            entry = catalogue.entry_of(session.target)
            if entry is not None:
                found[entry.id] = found.get(entry.id, 0) + 1
    return found


def full_json(house: House, entry: Entry) -> dict[str, Any]:
    """All of an entry but its secrets, which are kept and not shown."""
    return {**entry.model_dump(mode="json"), "fixed": house.is_fixed(entry)}


async def catalogue(request: Request) -> Response:
    """Every entry."""
    house = house_of(request)
    said = [full_json(house, one) for one in house.catalogue().entries]
    return await show(request, lambda: _page(request, None), lambda: {"catalogue": said})


async def new(request: Request) -> Response:
    """An entry that is being written."""
    return await show_page(request, _page(request, blank(), NEW))


async def one(request: Request) -> Response:
    """An entry, to be read or changed."""
    house, entry = house_of(request), _found(request)
    editor = editor_of(entry, fixed=house.is_fixed(entry))
    return await show(request, lambda: _page(request, editor, entry.id), lambda: full_json(house, entry))


# -------------------------------------------------------------------------------------------------------------- saving


async def add(request: Request) -> Response:
    """One more entry. Its id is made of its name."""
    return await _saved(request, None)


async def change(request: Request) -> Response:
    """Put an entry in the place of the one with its id. An admin's value that is left blank stays as it is."""
    return await _saved(request, _changeable(request))


async def _saved(request: Request, before: Entry | None) -> Response:
    house, identity = house_of(request), request.state.identity
    body = await request_bodies.read(request)
    if body.is_form and body.text("then"):  # a row more or less, before anything is saved
        return await show_page(request, _page(request, typed_again(body, before), before.id if before else NEW))
    try:
        data, secrets = of_form(body) if body.is_form else _of_json(body.data)
        entry = _checked(house, data, secrets, before)
    except Invalid as fault:
        if not body.is_form:
            raise
        editor = typed_again(body, before, pointers(fault.fields))
        return await show_page(request, _page(request, editor, before.id if before else NEW), 422)
    await house.entries.put(entry, identity.id)
    kept = {one.name for one in entry.variables if one.kept}
    await house.sealed.put(HOUSE, entry.id, {name: value for name, value in secrets.items() if name in kept})
    await house.sealed.forget(HOUSE, entry.id, house.sealed.names(HOUSE, entry.id) - kept)
    house.note(identity, "changed the catalogue", f"{'changed' if before else 'added'} {entry.name}")
    await end_withdrawn(request)
    where = f"/catalogue/{entry.id}"
    return await back(request, where, lambda: full_json(house, entry), 200 if before else 201)


def _of_json(data: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    given = data.get("secrets", {})
    if not isinstance(given, dict) or not all(isinstance(one, str) for pair in given.items() for one in pair):
        raise Invalid("Some values cannot be used.", {"/secrets": ["Names with their values, each a text."]})
    return {key: value for key, value in data.items() if key not in ("secrets", "fixed")}, given


def _checked(house: House, data: dict[str, Any], secrets: dict[str, str], before: Entry | None) -> Entry:
    """The entry that was typed. Raises Invalid with the place of each fault."""
    wrong: Fields = {}
    taken = {one.id for one in house.catalogue().entries}
    key = before.id if before else data.get("id") or free_id(str(data.get("name", "")), taken)
    if before is None and key in taken:
        raise Invalid("Some values cannot be used.", {"/id": ["There is an entry with this id already."]})
    try:
        entry = Entry.model_validate({**data, "id": key})
    except ValidationError as fault:
        raise Invalid("Some values cannot be used.", said_of_numbers(field_errors(fault))) from None
    if any(one.name.casefold() == entry.name.casefold() and one.id != key for one in house.catalogue().entries):
        wrong["/name"] = ["There is an entry with this name already: people pick by name."]
    for at, variable in enumerate(entry.variables):
        value = secrets.get(variable.name, "")
        if variable.file:
            words = "A value from a file is for the settings file, whose author knows this machine. Type it here."
            wrong[f"/variables/{at}/file"] = [words]
        elif variable.kept and not value and variable.name not in house.sealed.names(HOUSE, key):
            wrong[f"/variables/{at}/value"] = ["Type the value that the server gets."]
        elif value and (why := variable.model_copy(update={"values": ()}).misfit(value)):
            wrong[f"/variables/{at}/value"] = [why]
    for place in too_much_read(house.settings, entry):
        wrong["/reads"] = [f"Parley keeps its people in {place}. Give the server another directory."]
    if wrong:
        raise Invalid("Some values cannot be used.", wrong)
    return entry


# ---------------------------------------------------------------------------------------------------------- other acts


class SwitchBody(Closed):
    on: bool = False


async def switch(request: Request) -> Response:
    """Let people use it, or not for now."""
    house, entry = house_of(request), _changeable(request)
    body = await request_bodies.read(request)
    wanted = body.read(SwitchBody, lambda form: {"on": bool(form.text("on"))})
    changed = entry.model_copy(update={"enabled": wanted.on})
    await house.entries.put(Entry.model_validate(changed.model_dump(include=entry.model_fields_set | {"enabled"})),
                            request.state.identity.id)  # fmt: skip
    words = f"switched {entry.name} {'on' if wanted.on else 'off'}"
    house.note(request.state.identity, "changed the catalogue", words)
    await end_withdrawn(request)
    return await back(request, f"/catalogue/{entry.id}", lambda: full_json(house, changed))


class MoveBody(Closed):
    by: int


async def move(request: Request) -> Response:
    """Let it stand further up or down in the list that people see."""
    house, entry = house_of(request), _changeable(request)
    body = await request_bodies.read(request)
    wanted = body.read(MoveBody, lambda form: {"by": form.text("by")})
    if await house.entries.move(entry.id, max(-1000, min(1000, wanted.by))):
        house.note(request.state.identity, "changed the catalogue", f"moved {entry.name}")
    order = [one.id for one in house.catalogue().entries]
    return await back(request, f"/catalogue/{entry.id}", lambda: {"order": order})


async def delete(request: Request) -> Response:
    """Take it out: what runs of it ends, and what people gave for it is forgotten."""
    house, entry = house_of(request), _changeable(request)
    await request_bodies.nothing(request)
    await house.entries.delete(entry.id)
    await house.sealed.forget(None, entry.id)
    house.note(request.state.identity, "changed the catalogue", f"removed {entry.name}")
    ended = await end_withdrawn(request)
    return await back(request, "/catalogue", lambda: {"removed": entry.id, "ended": ended})


async def forget(request: Request) -> Response:
    """Let go of what I gave to a server: I am asked again."""
    house, identity, key = house_of(request), request.state.identity, request.path_params["entry"]
    await request_bodies.nothing(request)
    many = await house.sealed.forget(identity.id, key)
    if not many:
        raise unknown("Nothing of yours is kept for that server.")
    return await back(request, f"/#entry-{key}", lambda: {"forgotten": many})


def _found(request: Request) -> Entry:
    key = request.path_params["entry"]
    found = next((one for one in house_of(request).catalogue().entries if one.id == key), None)
    if found is None:
        raise unknown("There is no such server in the catalogue.")
    return found


def _changeable(request: Request) -> Entry:
    entry = _found(request)
    if house_of(request).is_fixed(entry):
        raise NotAllowed(
            "The settings file of this Parley lists this server. It is changed there, and Parley restarted."
        )
    return entry
