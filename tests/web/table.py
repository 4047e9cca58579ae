"""The route table as tests see it: every address, filled in."""

import pytest

from app.web.door.guard import Access, GuardedRoute
from app.web.routes import routes

TABLE = routes()
_FILL = {
    "{cid}": "c1",
    "{seq}": "1",
    "{target}": "t1",
    "{request}": "q1",
    "{aid}": "a1",
    "{rid}": "r1",
    "{lid}": "l1",
    "{lost}": "r9-x",
    "{owner}": "r9",
    "{offer}": "c1",
    "{tid}": "t1",
    "{step}": "token",
    "{rest:path}": "x",
    "{share}": "h1",
    "{guest}": "no-such-code",
    "{sha}": "0" * 64,
    "{name:path}": "echo",
    "{name}": "echo",
    "{path:path}": "app.css",
}


def address(route: GuardedRoute, sid: str = "s-unknown") -> str:
    path = route.path.replace("{sid}", sid)
    for name, value in _FILL.items():
        path = path.replace(name, value)
    assert "{" not in path, f"say in tests/web/table.py what stands for the parameters of {route.path}"
    return path


def method(route: GuardedRoute) -> str:
    (found,) = (route.methods or set()) - {"HEAD"}
    return found


def each(*levels: Access, of: str | None = None, handlers: tuple[str, ...] = ("app.web.",)) -> pytest.MarkDecorator:
    """A parameter `route`: every route of these levels (all when none is named), of this method, with one of these
    handlers, which are named by how their full names begin."""
    chosen = [
        route
        for route in TABLE
        if (not levels or route.access in levels)
        and (of is None or method(route) == of)
        and f"{route.endpoint.__module__}.{route.name}".startswith(handlers)
    ]
    return pytest.mark.parametrize("route", chosen, ids=[f"{method(route)} {route.path}" for route in chosen])
