"""What is served where phones come in: the pages of rooms, the files that these need, and nothing else of Parley.

An application of its own, with its own table: no route of the rest is in it, so none can be reached. It has its own
names, and looks at no cookie of a person.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app import guest_bounds as bounds
from app.web.door import public
from app.web.door.addresses import FromAddress, Network
from app.web.door.guard import BodyLimit, HostCheck, OriginCheck, SecurityHeaders
from app.web.guests import phones

if TYPE_CHECKING:
    from collections.abc import Sequence

_FILES = re.compile(r"app\.css|phone\.css|icons\.svg|js-[0-9a-f]{8}/phone\.js")
"""What the page of a phone consists of."""


def create_room_app(
    of: Starlette, hosts: Sequence[str], origin: str = "", proxies: tuple[Network, ...] = ()
) -> Starlette:
    """The application for phones of the rooms of another one. `proxies` may say for whom they ask."""
    app = Starlette(
        routes=[
            Route("/", phones.room_door, methods=["GET"]),
            Route("/j/{guest}", phones.phone, methods=["GET"]),
            Route("/j/{guest}", phones.send, methods=["POST"]),
            Route("/j/{guest}/now", phones.now, methods=["GET"]),
            Route("/static/{path:path}", file, methods=["GET"]),
        ],
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(GZipMiddleware, minimum_size=1000, compresslevel=1),
            Middleware(HostCheck, hosts=hosts, what="the address of its room"),
            Middleware(FromAddress, proxies=proxies),
            Middleware(OriginCheck, visitors=_Nobody(), origin=origin),
            Middleware(BodyLimit, most=bounds.GUEST_BYTES, most_upload=bounds.GUEST_BYTES),
        ],
        exception_handlers={HTTPException: _lost, 404: _lost, 405: _lost},
    )
    app.router.redirect_slashes = False
    # What the pages need of the rest: which rooms there are, and limits. Sessions are not found by any address here.
    app.state = of.state
    return app


class _Nobody:
    """No person comes in here, so no cookie is one of a person."""

    def has_cookie(self, headers: Any) -> bool:
        return False


async def file(request: Request) -> Response:
    """A file of the page of a phone."""
    if not _FILES.fullmatch(request.path_params["path"]):
        return phones.nowhere(404)
    return await public.static(request)


async def _lost(request: Request, fault: Exception) -> Response:
    status = fault.status_code if isinstance(fault, HTTPException) else 404
    return phones.nowhere(status)
