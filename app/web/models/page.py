"""The page of a session's models: which there are, what each needs, and a form for one more.

A key goes in and never out: the form does not show one again, nor whether two are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from app.core import links
from app.models.base import OFFLINE, Model
from app.sessions import Workspace
from app.sessions.models import ALWAYS
from app.web.asks.drafting import about
from app.web.door.denied import Fields
from app.web.kit.frame import Shell, shell
from app.web.kit.request_bodies import Body
from app.web.kit.templates import Context

FIELDS = ("name", "provider", "base_url", "model", "key_env", "text", "cost", "speed", "intelligence")
"""What a form shows again: everything but the key."""
_HOMES = {"openai": "api.openai.com", "anthropic": "api.anthropic.com"}
_SCORES = ("cost", "speed", "intelligence")


class Listed(NamedTuple):
    """One model in the list."""

    name: str
    about: str
    where: str
    """Where requests to it go; "" when they go nowhere."""
    key: str
    """Whether there is a key, in words."""
    ready: bool
    source: str
    own: bool


@dataclass(slots=True)
class ModelsPage(Context):
    """The models of a session, and the form that adds one."""

    template: ClassVar[str] = "models/page.html"
    part: ClassVar[str | None] = "models/_list.html"

    shell: Shell
    models: list[Listed]
    typed: dict[str, str]
    base: str
    local: bool = False
    """Whoever looks may name a variable of the machine that Parley runs on."""
    errors: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    """What is wrong and has no field to stand beside."""

    changes: bool = False
    """The form changes a model that there is."""


def models_page(
    session: Workspace, typed: dict[str, str], errors: Fields | None = None, *, local: bool = False
) -> ModelsPage:
    """The page, with what was typed into its form when that could not be taken."""
    told = {pointer.removeprefix("/"): " ".join(texts) for pointer, texts in (errors or {}).items()}
    said = [text for name, text in told.items() if name not in (*FIELDS, "key")]
    frame, base = shell(session, "models", "Models"), session.base
    changes = session.models.is_own(typed.get("name", ""))
    return ModelsPage(frame, listed(session), typed, base, local, told, said, changes)


def listed(session: Workspace) -> list[Listed]:
    """The models: of the settings file, of this session, and those that are always there."""
    known = session.models
    return [_listed(session, name, model) for name, model in known.all.items()]


def _listed(session: Workspace, name: str, model: Model) -> Listed:
    known = session.models
    own, ready = known.is_own(name), known.has_key(name)
    if model.provider in OFFLINE:
        key = "no key needed"
    elif model.key_env:
        key = f"key from {model.key_env}" if ready else f"{model.key_env} is not set"
    else:
        key = "key in memory" if known.keeps_key(name) else "no key" if ready else "no key yet"
    source = "this session" if own else "built in" if name in ALWAYS else "settings file"
    return Listed(name, about(name, model), _where(model), key, ready, source, own)


def _where(model: Model) -> str:
    """Where requests go, without what stands before the host: that may be a name and a word."""
    link = links.read(model.base_url) if model.base_url else None
    return _HOMES.get(model.provider, "") if link is None else f"{link.host}{link.after}"


def typed_of_model(session: Workspace, name: str) -> dict[str, str]:
    """What the form begins with: nothing, or what a model of this session is."""
    if not session.models.is_own(name):
        return {}
    model = session.models.all[name]
    given = model.model_dump(mode="json", exclude_defaults=True)
    return {"name": name, **{key: str(value) for key, value in given.items() if key in FIELDS}}


def of_form(body: Body) -> dict[str, Any]:
    """What was typed, in the shape of the JSON body: what is empty is left out."""
    if not body.is_form:
        return body.data
    found: dict[str, Any] = {name: text for name in FIELDS if (text := body.text(name).strip())}
    if key := body.text("key").strip():
        found["key"] = key
    for name in _SCORES:
        if name in found:
            found[name] = _number(found[name])
    return found


def _number(text: str) -> Any:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return text


def models_json(session: Workspace) -> dict[str, Any]:
    """The models by name, with whether there is a key, and never which."""
    known = session.models
    return {
        "models": [
            {
                "name": name,
                **model.model_dump(mode="json", exclude={"text"}),
                "has_key": known.has_key(name),
                "own": known.is_own(name),
            }
            for name, model in known.all.items()
        ]
    }
