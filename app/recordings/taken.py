"""What a recording takes of a session besides nouns: the header, a message as a line, and which texts are secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Final

from app import __version__, bounds, secrecy
from app.core.targets import AnyTarget, DemoTarget, StdioTarget
from app.core.wire import Exchange, Message
from app.recordings import shapes
from app.recordings.nouns import VERSION, Header, Left
from app.sessions.workspace import Workspace
from app.store import without_secrets
from app.store.recordings import Recording


def title_of(space: Workspace) -> str:
    """What a recording of this session is called, until somebody gives it a title."""
    return secrecy.masked(" ".join(space.label.split()))[: bounds.RECORDING_TITLE] or "A session"


def header_of(space: Workspace, recording: Recording, rows: list[Message]) -> Header:
    """The first line of a recording of this session, of which the log holds these rows."""
    target, missing = space.lasting_target, tuple[str, ...]()
    plain: dict[str, Any] | None = None
    if target is not None:
        without, missing = without_secrets(target)
        plain = without.model_dump(mode="json")
    options = space.options.model_dump(mode="json", exclude_defaults=True)
    return Header(
        version=VERSION,
        made_by=f"Parley {__version__}",
        began=recording.began,
        rid=recording.id,
        sid=space.id,
        title=recording.title,
        target=plain,
        missing=missing,
        target_key=space.target_key,
        options={key: secrecy.without_secrets(value) for key, value in options.items()},
        revision=space.info.protocol_version,
        session_began=space.created_at,
        left=Left(space.messages.rows_dropped, sum(space.messages.raw(row.seq) is None for row in rows)),
    )


_of_message: Final[Callable[[Message], tuple[Any, ...]]] = attrgetter(*shapes.FRAME)


def messages_thing(rows: list[Message], carried: list[Exchange | None], raws: list[bytes]) -> tuple[Any, ...]:
    """Messages as `scribe.Book` takes them. Cheap: it is done where the session lives."""
    exchanges = [None if one is None else one.seq for one in carried]
    return "messages", list(map(_of_message, rows)), exchanges, raws


def frame_members(row: Message, *, bare: bool, carried: Exchange | None) -> dict[str, Any]:
    """The line of a message, without its bytes."""
    line = shapes.frame_line(_of_message(row), None if carried is None else carried.seq)
    if bare:
        kept = ("kind", "method", "rpc_id", "gist", "problem", "unread", "step")
        line["row"] = {name: value for name in kept if (value := getattr(row, name)) not in (None, "")}
    return line


def known_secrets(target: AnyTarget | None) -> Iterator[str]:
    """The texts in a target that are secrets: whoever quotes them quotes a secret."""
    if target is None or isinstance(target, DemoTarget):
        return
    if isinstance(target, StdioTarget):
        texts, named = target.argv, target.env
    else:
        texts, named = (target.url,), target.headers
        yield from target.secret_values
    for text, places in zip(texts, target.places, strict=True):
        yield from (text[one.start : one.end] for one in places)
    yield from (named[name] for name in target.secret_names)
