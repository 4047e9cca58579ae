"""What a person does about a fault right where it is shown: give a token, trust a certificate, follow a redirect.

Each makes another target of the one that failed. What was shown is named by its digest, so that a yes is to exactly
that. The new address goes through the same guard as any other; a token belongs to this session and is not kept.
"""

from __future__ import annotations

from typing import NamedTuple

from pydantic import ValidationError

from app.core.errors import Gone
from app.core.targets import AnyTarget, HttpTarget, Tls
from app.sessions import Workspace
from app.web.kit.errors import field_errors
from app.web.kit.fault import digest_of, origin
from app.web.kit.request_bodies import Body, FormErrors

_OTHER = "The connection has another fault by now. Look at it again."


class Remedy(NamedTuple):
    """The target to connect to, and what is remembered of it."""

    target: AnyTarget
    kept: AnyTarget | None = None


def remedy(session: Workspace | None, body: Body) -> Remedy | None:
    """What a form says that stands in a fault; None for every other form."""
    if session is None or not body.is_form or not body.data.keys() & {"token", "trust", "follow"}:
        return None
    target, trouble, signing = session.target, session.info.trouble, session.sign_in.current
    if "token" in body.data and isinstance(target, HttpTarget) and (trouble or (signing is not None and signing.open)):
        return Remedy(_with_token(target, body.text("token")), _without_credentials(target))
    if not isinstance(target, HttpTarget) or trouble is None:
        raise Gone(_OTHER)
    if "trust" in body.data:
        if trouble.certificate is None or body.text("trust") != trouble.certificate.fingerprint:
            raise Gone(_OTHER)
        ca = "" if target.tls is None else target.tls.ca
        return Remedy(_changed(target, tls=Tls(ca=ca, fingerprint=trouble.certificate.fingerprint)))
    if not trouble.redirect or body.text("follow") != digest_of(trouble.redirect):
        raise Gone(_OTHER)
    return Remedy(_moved(target, trouble.redirect))


def _changed(target: HttpTarget, **changes: object) -> HttpTarget:
    try:
        return HttpTarget.model_validate({**target.model_dump(), **changes})
    except ValidationError as fault:
        raise FormErrors({f"/target{where}": texts for where, texts in field_errors(fault).items()}) from None


def _without_credentials(target: HttpTarget) -> HttpTarget:
    headers = {name: value for name, value in target.headers.items() if name.lower() != "authorization"}
    return target.model_copy(update={"headers": headers})


def _with_token(target: HttpTarget, typed: str) -> HttpTarget:
    """The target with this token as its credentials, in the place of those it had."""
    token = typed.strip()
    if token[:7].lower() == "bearer ":
        token = token[7:].strip()
    if not token or any(not 33 <= ord(char) <= 126 for char in token):
        raise FormErrors({"/token": ["A token is one word of letters, digits and signs. Copy it again."]})
    plain = _without_credentials(target)
    secret = [*(name for name in plain.secret if name.lower() != "authorization"), "Authorization"]
    return _changed(plain, headers={**plain.headers, "Authorization": f"Bearer {token}"}, secret=secret, auth=None)


def _moved(target: HttpTarget, url: str) -> HttpTarget:
    """The target at the address that the server named. Secrets stay within their origin, and so does a trusted
    certificate."""
    moved = target.at(url)
    changes: dict[str, object] = {"url": url, "secret_url": moved.secret_url}
    if origin(url) != origin(target.url):
        hidden = target.secret_names
        changes["headers"] = {name: value for name, value in target.headers.items() if name not in hidden}
        changes["secret"] = [name for name in target.secret if name not in hidden]
        changes["auth"] = None
        ca = "" if target.tls is None else target.tls.ca
        changes["tls"] = Tls(ca=ca) if ca and url.startswith("https://") else None
    return _changed(target, **changes)
