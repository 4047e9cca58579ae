"""Who is asking, in a team: a login of a browser or a token of a script, always through the proxy.

The cookie is bound to the host (`__Host-`), so no other name of the domain can set or read it (S12). With
`door = "proxy"` the header of the proxy is looked at for every request: a login counts for the person that it names.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import replace
from typing import Literal

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app import team_bounds as bounds
from app.core.people import Login, Person, same
from app.core.rate import SharedRate
from app.remembered import Remembered
from app.sessions.identity import LOOKING, Identity, Level, rights_at
from app.store.people import NotSaved
from app.team_settings import Network
from app.web.door.addresses import forwarded, household, is_among, peer
from app.web.door.denied import Denied, unknown
from app.web.door.reader import Reader
from app.web.door.rights import Asker, Needs, decide
from app.web.door.root import saying
from app.web.door.visitors import Visitor, Visitors, WrongAgain, presents_token
from app.web.team.house import House
from app.web.team.replica import Keeper

COOKIE = "__Host-parley"
PROXYS = "x-parley-proxy"
"""In which the proxy shows that it is itself."""
_WATCHED = 1_000
"""Addresses whose wrong codes and tokens are counted; the one that was heard of least recently is forgotten first."""


class TeamVisitors(Visitors):
    """The state behind the entrance of a team."""

    def __init__(self, house: House) -> None:
        settings = house.settings.process()
        super().__init__(settings, remembered=Remembered(None, logins=settings.limits.logins))
        self.cookie_name = COOKIE
        self._proxys = house.settings.proxy_secret()
        """What nobody but the proxy knows; empty where nobody but the proxy reaches us."""
        self.clock = self._clock
        self.house = house
        self._browsers: dict[str, str] = {}
        """Logins and tokens that were seen, each with its person."""
        house.rates["failures"] = self._elsewhere = SharedRate(
            settings.limits.login_failures_per_minute, 60.0, self._clock
        )
        """Wrong codes of each address on all replicas."""
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()
        self.changed: deque[str] = deque(maxlen=bounds.PEOPLE)
        """Logins that the file has to be told of: who is asked for a page does not wait for that."""

    # ---- who

    def recognise(self, headers: Headers, root: str) -> Visitor:
        """Who sent a request with these headers. Denied when nobody of the team."""
        if presents_token(headers):
            return self._script(headers)
        for value in self._cookies(headers, COOKIE):
            found = self.house.people.by_login(value)
            if found is not None and self._vouched(found[0], headers):
                return self._browser(*found)
        stale = self.has_cookie(headers)
        words = self._why(headers) or self.way_in
        raise Denied(401, "signed-out", words, headers={"set-cookie": self.cleared("")} if stale else {})

    @property
    def way_in(self) -> str:
        """How somebody comes in who is not known."""
        match self.house.settings.door:
            case "invitation" if self.house.settings.oidc is not None:
                return "Sign in here, or ask an admin of this Parley for an invitation."
            case "invitation":
                return "Ask an admin of this Parley for an invitation: a link that works once."
            case _:
                return "This Parley is for the people of its team."

    def _why(self, headers: Headers) -> str:
        """Why a login that was one counts no more; empty for what never was."""
        settings, found = self.house.settings, ""
        for value in self._cookies(headers, COOKIE):
            match self.house.people.ended(value):
                case "expired":
                    found = f"Your sign-in is over: one lasts {settings.login_hours:g} hours. {self.way_in}"
                case "idle":
                    found = f"You were signed out after {settings.login_idle_hours:g} hours without use. {self.way_in}"
        return found

    async def known(self, headers: Headers, root: str) -> Visitor:
        """As `recognise`; whoever came in by another replica is looked for, and a new secret is given out once the
        others know it."""
        people = self.house.people
        sent = [headers.get("authorization", "")[7:].strip()] if presents_token(headers) else []
        await people.learn(sent or self._cookies(headers, COOKIE))
        visitor = self.recognise(headers, root)
        if visitor.renewal and visitor.browser is not None:
            try:
                fresh = await people.keep(visitor.browser)
            except NotSaved:
                fresh = False
            if not fresh:
                return replace(visitor, renewal="")
        return visitor

    async def not_here(self, scope: Scope, visitor: Visitor, sid: str) -> None:
        """A session of another replica: shown as far as it was recorded, and never acted upon. One of this replica may
        be shared with whoever comes by a link that they used on another one."""
        from app.web.team.lost import elsewhere

        if sid.startswith(f"{scope['app'].state.keeper.name}-"):
            await self.house.shares.learn(thing=sid)
        await elsewhere(scope, visitor.identity, sid)

    def _script(self, headers: Headers) -> Visitor:
        sent = headers.getlist("authorization")
        found = self.house.people.by_token(sent[0][7:].strip()) if len(sent) == 1 else None
        if found is None:
            why = self.house.people.refusal_of(sent[0][7:].strip()) if len(sent) == 1 else ""
            raise self.failed(headers, why or "That token is not known here.", what="a wrong token", bearer=True)
        person, token = found
        if self.house.people.use_token(token.id):
            self.changed.append(token.id)
        self._browsers[token.id] = person.id
        return Visitor(_identity(person, "script"), browser=None, read_only=token.scope == "read", token=token.id)

    def _browser(self, person: Person, login: Login) -> Visitor:
        self._browsers[login.id] = person.id  # as many as there are logins, each person having few
        secret, tell = self.house.people.use(login.id)
        if tell:
            self.changed.append(login.id)
        return Visitor(_identity(person, "person"), browser=login.id, renewal=self.cookie(secret) if secret else "")

    def vouched_for(self, headers: Headers) -> str:
        """Whom the proxy names; empty for nobody."""
        sent, shown = headers.getlist(self.house.settings.proxy_header), headers.getlist(PROXYS)
        if self._proxys and (len(shown) != 1 or not same(shown[0], self._proxys)):
            return ""
        return sent[0].strip() if len(sent) == 1 else ""

    def _vouched(self, person: Person, headers: Headers) -> bool:
        if self.house.settings.door != "proxy":
            return True
        return person.door == "proxy" and person.subject == self.vouched_for(headers) != ""

    def allow(self, visitor: Visitor, needs: Needs, method: str, level: Level = "own") -> None:
        """The one place that asks `decide`. A session that is asked for is the asker's, or shared with them: any other
        was not found."""
        identity = visitor.identity
        shared: Literal["", "watch", "answer"] = "" if level == "own" else level
        asker = Asker(identity.role or "viewer", visitor.read_only, owns=level == "own", shared=shared)
        match decide(asker, needs, changes=method not in {"GET", "HEAD"}):
            case "unknown":
                raise unknown()
            case "forbidden":
                why, whom = "Viewers look, and do not act.", "an admin of this Parley"
                if visitor.read_only:
                    why = "This token may only read."
                elif shared and (identity.role != "viewer" or shared == "watch"):
                    why, whom = f"This is shared with you to {shared}, and not for more.", "its owner"
                self.house.note(identity, "was refused", why, refused=True)
                raise Denied(403, "refused", f"{why} Ask {whom}.")
            case None:
                return

    def reader(self, visitor: Visitor, level: Level) -> Reader:
        """For whom the answer is written: somebody of the team, with what they may do."""
        rights = LOOKING if visitor.read_only else rights_at(level, visitor.identity)
        return Reader(visitor.identity.id, level, rights, self.house.together)

    def still(self, visitor: Visitor) -> bool:
        who, key = visitor.identity, visitor.browser or visitor.token
        person = self.house.people.find(who.id)
        return person is not None and person.role == who.role and self.house.people.lets_in(who.id, key)

    # ---- cookies

    def cookie(self, secret: str) -> str:
        """The header that gives a login to a browser."""
        age = int(self.house.settings.login_hours * 3600)
        return f"{COOKIE}={secret}; Secure; HttpOnly; SameSite=Lax; Path=/; Max-Age={age}"

    def cleared(self, root: str) -> str:
        return f"{COOKIE}=; Secure; HttpOnly; SameSite=Lax; Path=/; Max-Age=0"

    # ---- the end of a login

    def login_of(self, headers: Headers) -> Login | None:
        """The login of the browser that asks."""
        found = (self.house.people.by_login(value) for value in self._cookies(headers, COOKIE))
        return next((one[1] for one in found if one is not None), None)

    def gone(self) -> set[str]:
        """Browsers that were here and are signed out since, and tokens that count no more."""
        gone = {key for key, person in self._browsers.items() if not self.house.people.lets_in(person, key)}
        for key in gone:
            del self._browsers[key]
        return gone

    # ---- wrong codes

    def failed(self, headers: Headers, why: str, *, what: str = "a wrong invitation", bearer: bool = False) -> Denied:
        """Count a wrong code or token of one address; those of others do not suffer from it."""
        where = self._watch(headers)
        too_often = self._elsewhere.take(where)
        if self.house.may_note(f"from {where}"):
            self.house.audit.note("", "somebody", "was refused", what, refused=True)
        if too_often:
            return self._too_often(too_often)
        return self._failed(why, {"www-authenticate": "Bearer"} if bearer else None)

    def _too_often(self, wait: int) -> Denied:
        words = f"Too many wrong codes or tokens. Try again in {wait} seconds."
        return WrongAgain(429, "slow-down", words, headers={"retry-after": str(wait)})

    def slowed(self, headers: Headers) -> None:
        """Raise Denied when this address has failed too often already, before anything is done for it."""
        where = self._watch(headers)
        if wait := self._elsewhere.wait(where):
            raise self._too_often(wait)
        now = self._clock()
        lately = [at for at in self._failures if now - at < 60]
        if len(lately) == self._failures.maxlen:
            raise self._failed("")

    def _watch(self, headers: Headers) -> str:
        where = household(forwarded(headers))
        self._failures = self._wrong.setdefault(where, deque(maxlen=self._limits.login_failures_per_minute))
        self._wrong.move_to_end(where)
        while len(self._wrong) > _WATCHED:
            self._wrong.popitem(last=False)
        return where

    def counted_as(self, headers: Headers) -> str:
        """Whose request it is, for what nobody may have too much of: a person, else an address."""
        people = self.house.people
        if presents_token(headers):
            token = people.by_token(headers["authorization"][7:].strip())
            return token[0].id if token is not None else f"from {household(forwarded(headers))}"
        found = (people.by_login(value) for value in self._cookies(headers, COOKIE))
        known = next((one[0].id for one in found if one is not None), "")
        return known or f"from {household(forwarded(headers))}"


def _identity(person: Person, kind: str) -> Identity:
    return Identity(person.id, person.name, "script" if kind == "script" else "person", person.role)


class Replicated:
    """One of several: pages say when nothing is saved, and whoever could be served by another replica is sent there
    while this one is drained. Its own sessions go on to their end."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        keeper: Keeper = scope["app"].state.keeper
        path = scope["path"]
        own = tuple(f"/{kind}/{keeper.name}-" for kind in ("s", "answer", "j", "oauth"))
        theirs = not path.startswith((*own, "/static/")) and path not in {"/healthz", "/readyz"}
        if keeper.draining and theirs and keeper.others():
            words = f"{keeper.name} is being replaced. Another replica answers: try again.\n"
            # Not 503, which means that something is missing: the proxy would take that for a replica that failed.
            await PlainTextResponse(words, 504, {"retry-after": "1"})(scope, receive, send)
            return
        with saying(keeper.degraded):
            await self.app(scope, receive, send)


class ProxyOnly:
    """Nothing is answered that did not come through the proxy, over TLS. The second layer, after the headers."""

    def __init__(self, app: ASGIApp, proxies: tuple[Network, ...]) -> None:
        self.app, self.proxies = app, proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in {"/healthz", "/readyz"}:
            await self.app(scope, receive, send)
            return
        response: Response | None = None
        if not is_among(peer(scope.get("client")), self.proxies):
            response = PlainTextResponse("Parley answers to its proxy only.\n", 403)
        elif Headers(scope=scope).getlist("x-forwarded-proto") != ["https"]:
            response = PlainTextResponse("The proxy must say that a request came over TLS (X-Forwarded-Proto).\n", 400)
        await (self.app(scope, receive, send) if response is None else response(scope, receive, send))
