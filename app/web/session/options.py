"""Options that a session may change while it is connected."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from app.core.options import Options
from app.web.kit import request_bodies
from app.web.kit.lookup import client
from app.web.kit.responses import done


async def options(request: Request) -> Response:
    """Change what the handshake did not say."""
    session = client(request)
    body = await request_bodies.read(request)
    now = session.options.model_dump()
    given = request_bodies.options_of_form(body) if body.is_form else body.data
    wanted = Options.model_validate({**now, **given})
    changes = {key: getattr(wanted, key) for key in given}
    if body.is_form:
        # A form sends every field it shows; only what the person changed is a wish.
        changes = {key: value for key, value in changes.items() if value != now[key]}
    await session.change_options(changes)
    return await done(request, session.base, lambda: session.options.model_dump(mode="json"))
