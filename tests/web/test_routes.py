"""Deny by default, over the whole route table."""

import re
from importlib import import_module
from inspect import ismethod

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.sessions import Session
from app.web.door.guard import Access, GuardedRoute
from app.web.live.page import Page
from tests.web.asgi import Visitor
from tests.web.table import TABLE, address, each, method


@pytest.mark.requirement("S01", "S08")
def test_the_public_set_is_these_five():
    public = {re.sub(r":path}", "}", route.path) for route in TABLE if route.access is Access.PUBLIC}
    assert public == {"/login", "/healthz", "/static/{path}", "/favicon.ico", "/oauth/callback"}


async def test_every_route_of_the_application_is_in_the_table(app: Starlette):
    served = [route for route in app.routes if isinstance(route, GuardedRoute)]
    assert len(served) == len(app.routes)
    assert [(route.path, route.methods) for route in served] == [(route.path, route.methods) for route in TABLE]


@pytest.mark.requirement("S04")
def test_only_get_and_post_exist():
    assert {method(route) for route in TABLE} == {"GET", "POST"}


@pytest.mark.requirement("S15")
def test_a_path_that_names_a_session_belongs_to_its_owner():
    for route in TABLE:
        assert ("{sid}" in route.path) is (route.access in {Access.SESSION, Access.CLOSED}), route.path

    async def handler(request: Request) -> Response:
        return PlainTextResponse("reached")

    with pytest.raises(ValueError, match="SESSION"):
        GuardedRoute("/s/{sid}/secret", handler, access=Access.IDENTITY, method="GET")
    with pytest.raises(ValueError, match="RECORDING"):
        GuardedRoute("/r/{rid}/secret", handler, access=Access.IDENTITY, method="GET")
    with pytest.raises(ValueError, match="SESSION"):
        GuardedRoute("/secret", handler, access=Access.SESSION, method="GET")


@pytest.mark.requirement("S01")
async def test_a_route_that_declares_no_access_level_cannot_be_reached(app: Starlette, client: Visitor):
    async def handler(request: Request) -> Response:
        return PlainTextResponse("reached")

    app.router.routes.append(Route("/forgotten", handler))
    answer = await client.get("/forgotten")
    assert answer.status == 404
    assert "reached" not in answer.text


def test_every_handler_of_the_table_exists():
    for route in TABLE:
        page = route.endpoint if isinstance(route.endpoint, Page) else None
        handler = route.endpoint if page is None else page.handler
        home = handler.__self__ if ismethod(handler) else import_module(handler.__module__)
        assert getattr(home, route.name) in (route.endpoint, handler), route.path


@each(of="GET")
@pytest.mark.requirement("S01")
async def test_everybody_who_may_gets_an_answer(route: GuardedRoute, client: Visitor, victim: Session):
    if route.name in {"events", "login", "oauth_callback"}:
        return  # the first does not end, the others need a code; all have tests of their own
    answer = await client.get(address(route, victim.id))
    if route.path.startswith("/r/{rid}"):
        assert answer.status == 404  # a session is no recording; `tests/web/recorded` has some
        return
    if route.path.endswith("/moments"):
        assert answer.status == 422  # of what?
        return
    assert answer.status in ({303} if route.path in {"/s", "/s/{sid}/room"} else {200, 404}), answer.text[:300]
    if answer.status == 404:
        one_thing = {"tool", "call", "message", "ask", "task", "resource", "template", "prompt", "comparison", "pair"}
        part = {"shown", "branch", "search", "result", "blob", "markdown", "frame", "snippet", "table"}
        part |= {"link", "answer_page"}
        assert route.name in one_thing | part | {"requests", "one", "open_saved", "rule", "offer", "choices"}
