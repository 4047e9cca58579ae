"""The part that the person's browser takes: the address that it opens, and the one that it comes back to."""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import parse_qsl, urlencode, urlsplit

from app import bounds
from app.core.errors import Invalid
from app.core.sign_in import Check, Step, Trip
from app.protocol.oauth import sdk
from app.protocol.oauth.asking import Asker
from app.protocol.oauth.known import Known, texts
from app.protocol.oauth.words import StepFailed, said


def scopes_for(known: Known, wished: tuple[str, ...]) -> tuple[str, ...]:
    """What to ask for: what the person wishes or the challenge says, else all that the server names, else nothing
    (R5-59, R5-78); with what was asked for before (R5-60), and `offline_access` where it is listed (R5-65)."""
    challenged = () if known.challenge is None else tuple(known.challenge.get("scope").split())
    metadata = known.resource_metadata or {}
    chosen = wished or challenged or (texts(metadata.get("scopes_supported")) or ())
    if known.earlier_scopes:
        chosen = sdk.union(known.earlier_scopes, sdk.union(wished, challenged))
    if chosen and "offline_access" in (known.listed("scopes_supported") or ()):
        chosen = sdk.union(chosen, ("offline_access",))
    return chosen[: bounds.OAUTH_SCOPES]


def check_pkce(step: Step, asker: Asker, known: Known) -> None:
    """No sign-in without S256 (R5-57)."""
    methods = known.listed("code_challenge_methods_supported")
    fits = methods is not None and "S256" in methods
    step.checks.append(Check("PKCE with S256", fits, "not said" if methods is None else ", ".join(methods)[:200]))
    if not fits:
        raise StepFailed("no-pkce", issuer=asker.shown(known.issuer))


def resource_of(asker: Asker, known: Known) -> str:
    """What tokens are for: what the server calls itself, else its canonical address (R5-58)."""
    named = (known.resource_metadata or {}).get("resource")
    return named if isinstance(named, str) and named else sdk.canonical(asker.target.url)


async def authorization(step: Step, asker: Asker, known: Known, redirect_uri: str, wished: tuple[str, ...]) -> str:
    """The address for the person's browser, and nothing is sent."""
    client = known.client
    if client is None:
        raise StepFailed("no-registration", issuer=asker.shown(known.issuer), redirect=redirect_uri)
    check_pkce(step, asker, known)
    endpoint = await asker.guarded(known.endpoint("authorization_endpoint"), "`authorization_endpoint`")
    known.verifier, challenge = sdk.pkce()
    known.state, known.code = known.mark + secrets.token_urlsafe(32), ""
    asker.hide(known.verifier)
    known.requested = scopes_for(known, wished)
    asked = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": redirect_uri,
        "state": known.state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "resource": resource_of(asker, known),
    }
    if known.requested:
        asked["scope"] = " ".join(known.requested)
    if "offline_access" in known.requested:
        asked["prompt"] = "consent"  # OpenID Connect: without it, no refresh token is given
    step.checks.append(Check("resource", True, asked["resource"]))
    step.checks.append(Check("scope", True if known.requested else None, asked.get("scope", "left out")))
    step.checks.append(Check("state", True, "new, good once and for ten minutes"))
    joint = "&" if urlsplit(endpoint).query else "?"
    address = f"{endpoint}{joint}{urlencode(asked)}"
    step.trips.append(Trip("GET", asker.shown(endpoint), request_body="\n".join(
        f"{name}={value}" for name, value in asked.items() if name != "state"
    )))  # fmt: skip
    return address


def state_in(url: str) -> str:
    """The `state` of an answer; empty when there is none."""
    return _answer(url).get("state", "")


def callback(step: Step, asker: Asker, known: Known, url: str) -> None:
    """Take the answer of the authorization server. Whoever calls has held its `state` against ours (S19); here it is
    asked who answers before anything of it is believed (R5-63)."""
    found = _answer(url)
    asker.hide(found.get("code", ""))
    shown = "\n".join(f"{name}={value}" for name, value in found.items() if name in ("iss", "error", "scope"))
    step.trips.append(Trip("GET", asker.shown(url.partition("?")[0]), request_body=shown))
    step.checks.append(Check("state is ours", True, "and is used up now"))
    issuer, advertised = asker.shown(known.issuer), known.server_metadata
    if "iss" in found:
        fits = found["iss"] == known.issuer
        step.checks.append(Check("iss is the issuer that was asked", fits, asker.shown(found["iss"])))
        if not fits:  # and what else it says is not repeated: it may be anybody's word
            step.trips[-1] = Trip("GET", asker.shown(url.partition("?")[0]), request_body=f"iss={found['iss'][:500]}")
            raise StepFailed("wrong-iss", found=asker.shown(found["iss"]), issuer=issuer)
    elif advertised.get("authorization_response_iss_parameter_supported") is True:
        step.checks.append(Check("iss is the issuer that was asked", False, "it is missing"))
        raise StepFailed("no-iss", issuer=issuer)
    else:
        step.checks.append(Check("iss", None, "absent, and not announced"))
    if error := found.get("error"):
        step.checks.append(Check("No error", False, error[:200]))
        code = "scope-refused" if error == "invalid_scope" else "denied"
        raise StepFailed(code, said=said(error, found.get("error_description", "")), issuer=issuer)
    if not found.get("code"):
        raise StepFailed("no-code")
    step.checks.append(Check("code", True, "there"))
    known.code = found["code"]


def check_state(known: Known, url: str) -> None:
    """Whether an address is the answer that is waited for. Raises Invalid, and the wait goes on (S19)."""
    given = state_in(url)
    if not known.state or not given or not hmac.compare_digest(given.encode(), known.state.encode()):
        why = "has no `state` in it" if not given else "is not the answer to this sign-in"
        raise Invalid(
            f"This address {why}. Paste the one that the browser was sent to in the end.",
            {"/callback_url": [f"It {why}."]},
        )


def _answer(url: str) -> dict[str, str]:
    """The parameters of an answer. One that stands twice is none: RFC 6749 allows each once."""
    try:
        pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return {}
    names = [name for name, _ in pairs]
    return {name: value for name, value in pairs if names.count(name) == 1}
