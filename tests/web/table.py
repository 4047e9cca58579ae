"""The route table as tests see it: every address, filled in."""

import pytest

from app.web.app import routes
from app.web.guard import Access, Doorway

TABLE = routes()
_FILL = {
    "{cid}": "c1",
    "{seq}": "1",
    "{name:path}": "echo",
    "{path:path}": "app.css",
}


def address(route: Doorway, sid: str = "s-unknown") -> str:
    path = route.path.replace("{sid}", sid)
    for name, value in _FILL.items():
        path = path.replace(name, value)
    assert "{" not in path, f"say in tests/web/table.py what stands for the parameters of {route.path}"
    return path


def method(route: Doorway) -> str:
    (found,) = (route.methods or set()) - {"HEAD"}
    return found


def each(*levels: Access, of: str | None = None) -> pytest.MarkDecorator:
    """A parameter `route`: every route of these levels (all when none is named), and of this method."""
    chosen = [
        route for route in TABLE if (not levels or route.access in levels) and (of is None or method(route) == of)
    ]
    return pytest.mark.parametrize("route", chosen, ids=[f"{method(route)} {route.path}" for route in chosen])
