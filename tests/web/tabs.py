"""Tabs as a stream makes them, without one."""

from functools import cache

from app.sessions import Workspace
from app.sessions.identity import ALL_RIGHTS, Right
from app.settings import Limits
from app.web import routes
from app.web.live.page import Pages
from app.web.live.parts import Drawings, View
from app.web.live.tab import Tab


@cache
def pages() -> Pages:
    """The pages of Parley."""
    return routes.pages(routes.routes())


def tab_of(
    session: Workspace,
    page: str,
    of: str = "",
    since: int | None = 0,
    limits: Limits | None = None,
    *,
    rights: frozenset[Right] = ALL_RIGHTS,
    drawings: Drawings | None = None,
) -> Tab:
    """A tab of this page that knows everything up to `since`."""
    view = View(session, page, of, rights, limits or session.limits, drawings or Drawings())
    return Tab(view, pages().shown(page), since)
