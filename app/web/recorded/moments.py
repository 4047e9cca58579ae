"""Share this moment: what goes along, what is redacted, and what others will see, before anything is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from app.core.globs import matches
from app.core.strict import Closed
from app.sessions import SessionRegistry, Workspace
from app.web.asks.card import AskCard
from app.web.door.denied import invalid
from app.web.kit import request_bodies
from app.web.kit.frame import Shell, shell
from app.web.kit.request_bodies import Body
from app.web.kit.responses import go, in_json, show
from app.web.kit.templates import Context
from app.web.live.page import page

if TYPE_CHECKING:
    from app.recordings.moments import Moment, Wanted


class MaskBody(Closed):
    names: list[str] = Field(default_factory=list)
    pointers: list[str] = Field(default_factory=list)


class MomentBody(Closed):
    """Exactly one of the first three."""

    seq: int | None = Field(default=None, gt=0, lt=10**15)
    call: str | None = Field(default=None, max_length=40)
    ask: str | None = Field(default=None, max_length=40)
    title: str = Field(default="", max_length=200)
    note: str = Field(default="", max_length=10_000)
    asks: bool = True
    messages: bool = True
    stderr: bool = False
    mask: MaskBody = MaskBody()
    preview: bool = False
    """Only say what it would be."""


def _of_fields(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of the form, or of the address of its page."""

    def text(name: str) -> str:
        value = given.get(name)
        return value if isinstance(value, str) else ""

    lines = [one.strip() for one in text("mask").splitlines() if one.strip()]
    seq = text("seq")
    body: dict[str, Any] = {"seq": int(seq)} if seq.isdecimal() and len(seq) < 16 else {}
    body |= {name: text(name) for name in ("call", "ask") if text(name)}
    body |= {"title": text("title").strip(), "note": text("note").strip()}
    sent = "sent" in given  # a box that is not ticked is not sent
    body |= {name: bool(text(name)) if sent else name != "stderr" for name in ("asks", "messages", "stderr")}
    names = [one for one in lines if not one.startswith("/")]
    return body | {"mask": {"names": names, "pointers": [one for one in lines if one.startswith("/")]}}


def wanted_of(body: MomentBody) -> Wanted:
    """Which moment it is. Denied when it is not exactly one."""
    from app.recordings.moments import Wanted

    places = [("message", body.seq), ("call", body.call), ("ask", body.ask)]
    named = [(kind, str(key)) for kind, key in places if key not in (None, "")]
    if len(named) != 1:
        raise invalid({"": ["Name one place: seq, call or ask."]})
    from app.recordings.recorders import wanted_of as masks_of

    masks = masks_of(body.mask.names, body.mask.pointers)
    kind, key = named[0]
    return Wanted(
        kind,  # type: ignore[arg-type]  # one of the three above
        key,
        body.title,
        body.note,
        body.asks,
        body.messages,
        body.stderr,
        masks.names,
        masks.pointers,
    )


@dataclass(slots=True)
class MomentPage(Context):
    """The form, and beside it what others will see."""

    template: ClassVar[str] = "recorded/moment.html"
    part: ClassVar[str | None] = "recorded/_moment.html"

    shell: Shell
    wanted: Wanted
    made: Moment
    cards: list[AskCard]

    @property
    def masks(self) -> str:
        return "\n".join([*self.wanted.names, *self.wanted.pointers])

    def why(self, name: str) -> str:
        """Why something is redacted: by what a person added, because the same text is, or as in every recording."""
        if name == "a pointer of yours" or any(matches(one, name) for one in self.wanted.names):
            return "added now"
        return "same text" if name == "a secret that was typed" else "always"

    @property
    def place(self) -> str:
        """What the moment is of, as people count it."""
        if self.wanted.kind == "message":
            return f"Message {self.shell.session.messages.number(int(self.wanted.id))}"
        return f"{self.wanted.kind.capitalize()} {self.wanted.id[1:]}"

    def values(self) -> dict[str, Any]:
        known = {"shell": self.shell, "wanted": self.wanted, "made": self.made, "cards": self.cards}
        return {**known, "masks": self.masks, "place": self.place, "why": self.why}


def _made(request: Request, wanted: Wanted) -> Moment:
    from app.recordings.moments import make

    registry: SessionRegistry = request.app.state.registry
    return make(request.state.session, wanted, registry.wall())


@page("moment", notice=False)
async def form(request: Request) -> Response:
    """The form for a moment; asked by itself again while somebody types, it is the preview."""
    session: Workspace = request.state.session
    wanted = wanted_of(MomentBody.model_validate(_of_fields(dict(request.query_params))))
    made = _made(request, wanted)
    return await show(
        request,
        lambda: MomentPage(
            shell(session, "moment", "Share this moment"), wanted, made, [AskCard(session, ask) for ask in made.asks]
        ),
        lambda: moment_json(made),
    )


async def save(request: Request) -> Response:
    """Keep a moment as a recording of its own; with `preview`, only say what it would be."""
    from app.recordings.moments import keep

    body: Body = await request_bodies.read(request)
    given = body.read(MomentBody, lambda one: _of_fields(one.data))
    made = _made(request, wanted_of(given))
    if given.preview:
        return await in_json(lambda: moment_json(made))
    row = await keep(request.app.state.registry, made)
    url = f"/r/{row.id}"
    return await go(request, url, lambda: {"rid": row.id, "url": url}, 201, {"location": url})


def moment_json(made: Moment) -> dict[str, Any]:
    """What a moment would be."""
    return {
        "title": made.recording.title,
        "size": len(made.lines),
        "call": None if made.call is None else made.call.id,
        "asks": [ask.id for ask in made.asks],
        "messages": [one.seq for one in made.messages],
        "masked": [{"pointer": one.pointer, "name": one.name, "count": one.count} for one in made.masked],
        "unmatched": made.unmet,
    }
