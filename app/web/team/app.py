"""The application of a team: the same pages behind another door."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware

from app.protocol.links.confined import opener
from app.sessions import SessionRegistry
from app.store.shared_sign_ins import SharedSignIns
from app.team_settings import TeamSettings
from app.web.app import Door, create_app
from app.web.door import public
from app.web.door.addresses import FromAddress
from app.web.door.guard import Access, GuardedRoute
from app.web.door.rights import Needs
from app.web.guests import phones
from app.web.team import catalogue, isolated, limits, lost, me, pages, people, picking, resuming, returning, sharing
from app.web.team.door import ProxyOnly, Replicated, TeamVisitors
from app.web.team.fair import Fair
from app.web.team.house import House
from app.web.team.replica import Keeper

if TYPE_CHECKING:
    from app.web.team.oidc import Provider

_LOCAL_ONLY = frozenset(("/login", "/", "/logout", "/about", "/targets", "/oauth/callback"))
"""What one person has and a team has otherwise."""


def create_team_app(house: House) -> Starlette:
    """The application. The house is opened and closed with it."""
    settings = house.settings
    visitors = TeamVisitors(house)
    registry = SessionRegistry(
        settings.process(house.key()),
        remembered=visitors.remembered,
        open_link=opener(house.catalogue, house.walls, house.secret),
        gate=house,
    )
    registry.reach = TeamReach(settings.origin)
    registry.own_ports.add(settings.public_port)  # the proxy is no target either (S22)
    provider, single = _single_sign_on(house, registry.own_ports)
    door = Door(
        visitors,
        [settings.public_host],
        [*single, *public_routes()],
        what="its public address",
        origin=settings.origin,
        before=[
            Middleware(ProxyOnly, proxies=settings.proxies),
            Middleware(FromAddress, proxies=settings.proxies),
            Middleware(Replicated),
            Middleware(Fair, visitors=visitors, limits=settings.limits),
        ],
        table=partial(team_routes, more=single),
        around=(sharing.HERE, resuming.STRIP),
    )
    app = create_app(settings.process(), registry, door=door)
    app.state.house, app.state.provider = house, provider
    app.state.sign_in = _button(settings)
    if house.database.is_shared:
        registry.vault.elsewhere = SharedSignIns(registry.vault, house.sealed)
    keeper = app.state.keeper = Keeper(house, registry)
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(of: Starlette) -> AsyncIterator[None]:
        await house.open()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(house.keep, visitors.changed)
            tasks.start_soon(house.together.keep)
            if settings.metrics_port:
                from app.web.team.metrics import Metrics

                tasks.start_soon(house.figures.watch)
                await tasks.start(Metrics(of, house).serve)
            async with inner(of):
                tasks.start_soon(keeper.run)
                yield
            tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await keeper.end()
            if provider is not None:
                await provider.aclose()
            await house.close()

    app.router.lifespan_context = lifespan
    return app


def _single_sign_on(house: House, own_ports: set[int]) -> tuple[Provider | None, list[GuardedRoute]]:
    """The provider that people sign in with, and its addresses, where there is one."""
    oidc = house.settings.oidc
    if oidc is None:
        return None, []
    from app.egress import Egress
    from app.policy import Policy
    from app.web.team.oidc import Provider
    from app.web.team.sign_in import routes

    egress = Egress(Policy("team", own_ports, allowed=oidc.reached))
    back = f"{house.settings.origin}/login/oidc/callback"
    return Provider(oidc, oidc.secret(os.environ), back, egress, house.key(), house.spent.once), routes()


def _button(settings: TeamSettings) -> tuple[str, str]:
    """What the page of somebody who is not signed in offers: an address and its words; empty for nothing."""
    if settings.oidc is not None:
        return "/login/oidc", f"Sign in with {settings.oidc.label}"
    return ("/enter", "Sign in") if settings.door == "proxy" else ("", "")


def public_routes() -> list[GuardedRoute]:
    """What anybody may ask for: signs of life, the files of the page, and the ways in."""
    shared = [route for route in public.routes() if route.path not in _LOCAL_ONLY]
    return [
        *shared,
        _get("/readyz", pages.readyz, Access.PUBLIC),
        _get("/invite/{code}", pages.invitation, Access.PUBLIC),
        _post("/invite/{code}", pages.enter, Access.PUBLIC),
        _get("/enter", pages.vouched, Access.PUBLIC),
    ]


def team_routes(table: list[GuardedRoute], more: Sequence[GuardedRoute] = ()) -> list[GuardedRoute]:
    """The table of routes as a team has it; `more` are the addresses of single sign-on."""
    kept = [route for route in table if not _is_local(route)]
    return [
        *public_routes(),
        *more,
        _get("/", pages.home, Access.IDENTITY),
        _post("/logout", pages.logout, Access.IDENTITY),
        _post("/catalogue/{entry}/connect", picking.pick, Access.IDENTITY),
        _post("/catalogue/{entry}/forget", catalogue.forget, Access.IDENTITY),
        _post("/dial", picking.dial, Access.IDENTITY),
        _get("/oauth/callback", returning.oauth_callback, Access.IDENTITY, Needs.OWN),
        _get("/oauth/{owner}-callback", returning.oauth_callback_of, Access.IDENTITY, Needs.OWN),
        _post("/lost/{lost}/reconnect", lost.reconnect, Access.IDENTITY),
        _post("/lost/{lost}/close", lost.close, Access.IDENTITY),
        _get("/about", me.about, Access.IDENTITY),
        _get("/me", me.me, Access.IDENTITY),
        _post("/me/tokens", me.make_token, Access.IDENTITY),
        _post("/me/tokens/{token}/revoke", me.revoke_token, Access.IDENTITY),
        _post("/sessions/idled/seen", pages.idled_seen, Access.IDENTITY),
        _post("/me/logins/{login}/end", me.end_login, Access.IDENTITY),
        _get("/people", people.people, Access.IDENTITY, Needs.ADMIN),
        _post("/people/invite", people.invite, Access.IDENTITY, Needs.ADMIN),
        _post("/people/invitations/{invitation}/revoke", people.revoke, Access.IDENTITY, Needs.ADMIN),
        _post("/people/{person}/role", people.change_role, Access.IDENTITY, Needs.ADMIN),
        _post("/people/{person}/off", people.switch_off, Access.IDENTITY, Needs.ADMIN),
        _post("/people/{person}/on", people.switch_on, Access.IDENTITY, Needs.ADMIN),
        _get("/catalogue", catalogue.catalogue, Access.IDENTITY, Needs.ADMIN),
        _post("/catalogue", catalogue.add, Access.IDENTITY, Needs.ADMIN),
        _get("/catalogue/new", catalogue.new, Access.IDENTITY, Needs.ADMIN),
        _get("/catalogue/{entry}", catalogue.one, Access.IDENTITY, Needs.ADMIN),
        _post("/catalogue/{entry}", catalogue.change, Access.IDENTITY, Needs.ADMIN),
        _post("/catalogue/{entry}/switch", catalogue.switch, Access.IDENTITY, Needs.ADMIN),
        _post("/catalogue/{entry}/move", catalogue.move, Access.IDENTITY, Needs.ADMIN),
        _post("/catalogue/{entry}/delete", catalogue.delete, Access.IDENTITY, Needs.ADMIN),
        _get("/audit", people.audit, Access.IDENTITY, Needs.ADMIN),
        _get("/audit.jsonl", people.export, Access.IDENTITY, Needs.ADMIN),
        _get("/isolation", isolated.isolation, Access.IDENTITY, Needs.ADMIN),
        _post("/isolation/look", isolated.check_again, Access.IDENTITY, Needs.ADMIN),
        _post("/isolation/{child}/end", isolated.end, Access.IDENTITY, Needs.ADMIN),
        _get("/limits", limits.limits, Access.IDENTITY, Needs.ADMIN),
        _get("/j/{guest}", phones.phone, Access.GUEST),
        _post("/j/{guest}", phones.send, Access.GUEST),
        _get("/j/{guest}/now", phones.now, Access.GUEST),
        *shared_routes(),
        *map(sharing.followed, kept),
    ]


def shared_routes() -> list[GuardedRoute]:
    """What people of a team have together."""
    session, recording, recorded = Access.SESSION, Access.RECORDING, Access.RECORDED
    return [
        _get("/join/{code}", sharing.join_page, Access.IDENTITY),
        _post("/join/{code}", sharing.join, Access.IDENTITY),
        _get("/s/{sid}/share", sharing.shared, session, Needs.PRIVATE),
        _post("/s/{sid}/share", sharing.share, session, Needs.OWN),
        _post("/s/{sid}/share/{share}/revoke", sharing.revoke, session, Needs.OWN),
        _post("/s/{sid}/hand-over", sharing.hand_over, session, Needs.OWN),
        _get("/s/{sid}/here", sharing.here, session),
        _post("/s/{sid}/follow", sharing.follow, session, Needs.WATCH),
        _get("/s/{sid}/unfinished", resuming.unfinished, session, Needs.PRIVATE),
        _post("/s/{sid}/unfinished/seen", resuming.seen, session, Needs.OWN),
        _post("/s/{sid}/unfinished/{offer}/continue", resuming.go_on, session, Needs.OWN),
        _post("/s/{sid}/unfinished/{offer}/leave", resuming.leave, session, Needs.OWN),
        _get("/r/{rid}/share", sharing.shared, recording, Needs.PRIVATE),
        _post("/r/{rid}/share", sharing.share, recording, Needs.OWN),
        _post("/r/{rid}/share/{share}/revoke", sharing.revoke, recorded, Needs.OWN),
    ]


class TeamReach:
    """Phones come in by the proxy of the team, at an address of their own."""

    words = (
        "Everybody who has the address of the room, and can reach this Parley, sees its pages and nothing else, for as "
        "long as the room is open."
    )

    def __init__(self, origin: str) -> None:
        self.origin = origin

    def address(self, code: str) -> str:
        return f"{self.origin}/j/{code}"

    def opened(self) -> None: ...

    def ended(self) -> None: ...


def _is_local(route: GuardedRoute) -> bool:
    path = route.path
    return path in _LOCAL_ONLY or path.startswith("/targets/") or route.needs is Needs.PUBLIC


def _get(path: str, handler: object, access: Access, needs: Needs | None = None) -> GuardedRoute:
    return GuardedRoute(path, handler, access=access, method="GET", needs=needs)  # type: ignore[arg-type]


def _post(path: str, handler: object, access: Access, needs: Needs | None = None) -> GuardedRoute:
    return GuardedRoute(path, handler, access=access, method="POST", needs=needs)  # type: ignore[arg-type]
