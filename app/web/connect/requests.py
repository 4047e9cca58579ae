"""Saved requests of a server: listed, saved, changed, deleted, as JSON and on a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app import bounds
from app.core.strict import Strict
from app.core.times import wire_time
from app.sessions import SessionRegistry, Workspace
from app.store import Kept, SavedRequest
from app.web.connect.targets import kept_of, on_disk
from app.web.door.denied import unknown
from app.web.kit import request_bodies
from app.web.kit.request_bodies import Body
from app.web.kit.responses import back, in_json, show
from app.web.kit.templates import Context


class RequestBody(Strict):
    name: str = Field(min_length=1, max_length=bounds.REQUEST_NAME)
    method: str = Field(min_length=1, max_length=1000)
    params: dict[str, Any] | None = None


class ChangeBody(Strict):
    name: str | None = Field(default=None, min_length=1, max_length=bounds.REQUEST_NAME)
    method: str | None = Field(default=None, min_length=1, max_length=1000)
    params: dict[str, Any] | None = None


@dataclass(slots=True)
class Requests(Context):
    """The saved requests of one server."""

    template: ClassVar[str] = "connect/requests.html"

    kept: Kept
    requests: list[SavedRequest]
    sessions: list[Workspace]
    """The open sessions of this server, in which they can be used."""


def request_json(one: SavedRequest) -> dict[str, Any]:
    """A saved request for scripts; `missing` points to the secrets that were not kept."""
    return {
        "id": one.id,
        "url": f"/targets/{one.target}/requests/{one.id}",
        "name": one.name,
        "method": one.method,
        "params": one.params,
        "missing": list(one.missing),
        "changed_at": wire_time(one.changed),
    }


async def requests(request: Request) -> Response:
    """All of a server, by name."""
    registry: SessionRegistry = request.app.state.registry
    await registry.store.loaded()
    kept = kept_of(request)
    saved = registry.store.requests.of(kept.owner, kept.id)
    here = [one for one in registry.of(request.state.identity) if one.target_key == kept.key]
    return await show(
        request, lambda: Requests(kept, saved, here), lambda: {"requests": [request_json(one) for one in saved]}
    )


async def save(request: Request) -> Response:
    """Save one. The same name for the same thing takes the place of the old one."""
    registry: SessionRegistry = request.app.state.registry
    kept = kept_of(request)
    body = await request_bodies.read(request)
    wanted = body.read(RequestBody, _of_form)
    saved = registry.store.requests.save
    made, is_new = await saved(kept.owner, kept.id, wanted.name, wanted.method, wanted.params)
    if not kept.saved:
        await registry.store.rename(kept.owner, kept.id, kept.target.label)
    trouble = registry.store.trouble
    return await back(
        request, _page(kept), lambda: on_disk(made.id, trouble, request_json(made)), 201 if is_new else 200
    )


async def one(request: Request) -> Response:
    """One of them."""
    saved = _saved(request, kept_of(request))
    return await in_json(lambda: request_json(saved))


async def change(request: Request) -> Response:
    """Give it another name, or other parameters."""
    registry: SessionRegistry = request.app.state.registry
    kept = kept_of(request)
    saved = _saved(request, kept)
    body = await request_bodies.read(request)
    wanted = body.read(ChangeBody, lambda form: {"name": form.text("name")})
    made = await registry.store.requests.change(
        saved,
        name=wanted.name,
        method=wanted.method,
        params=wanted.params,
        has_params="params" in wanted.model_fields_set,
    )
    trouble = registry.store.trouble
    return await back(request, _page(kept), lambda: on_disk(made.id, trouble, request_json(made)))


async def delete(request: Request) -> Response:
    """Forget it."""
    registry: SessionRegistry = request.app.state.registry
    kept = kept_of(request)
    saved = _saved(request, kept)
    await request_bodies.nothing(request)
    await registry.store.requests.delete(saved)
    trouble = registry.store.trouble
    return await back(request, _page(kept), lambda: on_disk(saved.id, trouble, {"id": saved.id, "deleted": True}))


def _of_form(form: Body) -> dict[str, Any]:
    said: dict[str, Any] = {"name": form.text("name"), "method": form.text("method").strip()}
    if form.text("params").strip():
        said["params"] = request_bodies.call_of_form(form)["params"]
    return said


def _page(kept: Kept) -> str:
    return f"/targets/{kept.id}/requests"


def _saved(request: Request, kept: Kept) -> SavedRequest:
    registry: SessionRegistry = request.app.state.registry
    found = registry.store.requests.find(kept.owner, kept.id, request.path_params["request"])
    if found is None:
        raise unknown("There is no such saved request. It may have been deleted.")
    return found
