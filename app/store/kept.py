"""One kept target: in memory with its secrets, in the file without them; what is left out is asked for again."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from app import secrecy
from app.core.auth import Bearer, ClientCredentials, OAuth
from app.core.options import Options
from app.core.targets import AnyTarget, DemoTarget, StdioTarget, Target, target_digest
from app.core.times import LAST_MOMENT
from app.store.servers import Server

logger = logging.getLogger("parley.store")

NAME: Final = 200
_IN_LINE: Final = "the command line"
_IN_ADDRESS: Final = "the address"
_PROOF: Final = "the client secret"
COLUMNS: Final = ("id", "owner", "name", "target", "missing", "options", "used")
_target: TypeAdapter[AnyTarget] = TypeAdapter(Target)


@dataclass(slots=True, frozen=True)
class Kept:
    """One target of one identity: saved under a name, or only remembered because it was used."""

    id: str
    owner: str
    target: AnyTarget
    options: Options
    used: float
    name: str = ""
    missing: tuple[str, ...] = ()
    """What was left out of the file and has to be typed again before connecting."""
    server: Server | None = None
    """What it led to the last time; None when it never led to a server."""

    @property
    def missing_names(self) -> tuple[str, ...]:
        """The variables and headers among it; the rest stood inside of a command line or an address."""
        return tuple(name for name in self.missing if name not in (_IN_LINE, _IN_ADDRESS, _PROOF))

    @property
    def saved(self) -> bool:
        return bool(self.name)

    @property
    def key(self) -> str:
        """What it is known by also after a restart: the digest of what of it may be written down."""
        return target_digest(without_secrets(self.target)[0])


# ----------------------------------------------------------------------------------------------------------- secrets


def without_secrets(target: AnyTarget) -> tuple[AnyTarget, tuple[str, ...]]:
    """A target as it may be written down, and the names of what had to be left out."""
    if isinstance(target, DemoTarget):
        return target, ()
    left = target.secret_names
    missing = sorted(left)
    if isinstance(target, StdioTarget):
        env = {name: value for name, value in target.env.items() if name not in left}
        command, *args = target.shown_argv
        if target.shown_argv != target.argv:
            missing.append(_IN_LINE)
        written = {"env": env, "command": command, "args": tuple(args), "secret_args": ()}
        return target.model_copy(update=written), tuple(missing)
    headers = {name: value for name, value in target.headers.items() if name not in left}
    if target.shown_url != target.url:
        missing.append(_IN_ADDRESS)
    plain: dict[str, Any] = {"headers": headers, "url": target.shown_url, "secret_url": ()}
    if isinstance(target.auth, Bearer):  # the same as a header, and typed again as one
        plain["auth"], missing = None, [*missing, "Authorization"]
    elif isinstance(target.auth, OAuth) and target.auth.client_secret:
        # Asked for where one signs in: the authorization server says whether it still wants one.
        plain["auth"] = target.auth.model_copy(update={"client_secret": ""})
    elif isinstance(target.auth, ClientCredentials):
        known = OAuth(kind="oauth", client_id=target.auth.client_id, scopes=target.auth.scopes)
        plain["auth"], missing = known, [*missing, _PROOF]
    return target.model_copy(update=plain), tuple(missing)


def _plain_options(options: Options) -> Options:
    extensions = {name: secrecy.without_secrets(value) for name, value in options.extensions.items()}
    return options.model_copy(update={"meta": secrecy.without_secrets(options.meta), "extensions": extensions})


def plain_name(name: str, target: AnyTarget) -> str:
    """A name as it may be written down. One that was made of the target, by an older Parley, may hold its secrets."""
    if isinstance(target, StdioTarget) and name.startswith(target.command):
        return named(secrecy.masked(name))
    return named(secrecy.masked_url(name)) if "://" in name else name


# ------------------------------------------------------------------------------------------------------- in the file


def named(name: str) -> str:
    """A name on one line, not longer than one may be."""
    return " ".join(name.split())[:NAME]


Row = tuple[str, str, str, str, str, str, float]


def row_of(kept: Kept) -> Row:
    """A target as it stands in the file."""
    plain, missing = without_secrets(kept.target)
    left_out = tuple(dict.fromkeys((*kept.missing, *missing)))
    return (
        kept.id,
        kept.owner,
        kept.name,
        plain.model_dump_json(),
        json.dumps(left_out),
        _plain_options(kept.options).model_dump_json(exclude_defaults=True),
        kept.used,
    )


def _options(text: str) -> Options:
    """Options as they were kept. One that is not allowed any more counts as not said."""
    try:
        return Options.model_validate_json(text)
    except ValidationError as fault:
        wrong = {error["loc"][0] for error in fault.errors() if error["loc"]}
        return Options.model_validate({key: value for key, value in json.loads(text).items() if key not in wrong})


def of_row(row: tuple[Any, ...]) -> Kept | None:
    """A row of the file, when it still makes sense."""
    key, owner, name, target, missing, options, used = row
    try:
        return Kept(
            id=key,
            owner=owner,
            target=_target.validate_json(target),
            options=_options(options),
            used=used if 0 <= used <= LAST_MOMENT else 0.0,
            name=name,
            missing=tuple(str(one) for one in json.loads(missing)),
        )
    except (ValidationError, ValueError, TypeError):
        logger.warning("a saved target cannot be read and is left where it is")
        return None
