"""Why a step of signing in failed: one sentence with the likely cause, and what to do, by a short name that stays."""

from __future__ import annotations

from app.egress import EgressError

_WORDS: dict[str, tuple[str, str]] = {
    "not-asked": (
        "{server} answers without a token ({status}), so there is nothing to sign in to.",
        "Connect to it as it is.",
    ),
    "no-metadata": (
        "{server} asks for a token, and publishes nothing that says where to get one.",
        "The server should serve /.well-known/oauth-protected-resource, or name it in WWW-Authenticate. If somebody "
        "gave you a token, connect with that.",
    ),
    "no-server-metadata": (
        "{issuer} publishes no metadata of an authorization server.",
        "It should serve /.well-known/oauth-authorization-server or /.well-known/openid-configuration. Check the "
        "address in `authorization_servers` of the server's metadata.",
    ),
    "wrong-resource": (
        "The metadata is that of another server: it is for {found}, and this is {server}.",
        "Correct `resource` in the server's metadata. If the server is known under both, connect to the one it names.",
    ),
    "wrong-issuer": (
        "The metadata belongs to another issuer: it says {found}, and {issuer} was asked.",
        "`issuer` there and the address in `authorization_servers` must be the same, letter by letter, also at the "
        "end.",
    ),
    "no-pkce": (
        "{issuer} does not say that it protects codes with PKCE (S256), so Parley does not sign in there.",
        "It should list S256 in `code_challenge_methods_supported`.",
    ),
    "bad-metadata": ("The metadata at {url} cannot be used: {why}.", "Correct it at the server that publishes it."),
    "bad-address": (
        "{name} is {found}, and Parley does not go there: {why}.",
        "Correct it in the metadata. An address must be https; http is for this machine only.",
    ),
    "registration-refused": (
        "{issuer} refused to register Parley{said}.",
        "Register a client there by hand, with the redirect address {redirect}, and sign in with its client id.",
    ),
    "no-registration": (
        "{issuer} registers no clients by itself, and Parley has no client id there.",
        "Register a client there by hand, with the redirect address {redirect}, and sign in with its client id.",
    ),
    "wrong-redirect": (
        "{issuer} does not take the redirect address of this Parley{said}.",
        "Register exactly {redirect} for this client.",
    ),
    "denied": ("The authorization server said no{said}.", "Sign in again, and allow the access that is asked for."),
    "scope-refused": (
        "{issuer} does not give the scopes that are asked for{said}.",
        "Ask for others: name them when you sign in again, or correct what the server's challenge asks for.",
    ),
    "no-code": (
        "The answer of the authorization server has no code in it.",
        "Sign in again. If you pasted an address, take the one that the browser was sent to in the end.",
    ),
    "no-iss": (
        "{issuer} says that its answers name their issuer, and this one does not.",
        "Somebody may have mixed up two authorization servers, so the code was not used. Correct the server, or its "
        "`authorization_response_iss_parameter_supported`.",
    ),
    "wrong-iss": (
        "The answer came from another issuer than the one that was asked: it says {found}, and not {issuer}.",
        "Somebody may have mixed up two authorization servers, so the code was not used. Begin again.",
    ),
    "no-answer": (
        "The browser did not come back within ten minutes.",
        "Sign in again. If the authorization server showed an error of the redirect address, register exactly "
        "{redirect} there. If the browser could not open that address, paste it here.",
    ),
    "code-refused": (
        "{issuer} does not take the code{said}.",
        "A code is good once, for a minute or so, and for one client with one redirect address. Sign in again, soon "
        "after you agree.",
    ),
    "client-refused": (
        "{issuer} does not know this client{said}.",
        "Forget it and sign in again: then Parley registers anew. With a client id of your own, check its secret.",
    ),
    "token-refused": ("{issuer} gave no token{said}.", "Look at its answer below, and at its log."),
    "bad-token": (
        "The answer of {issuer} has no token that Parley can use: {why}.",
        "It should be a JSON object with `access_token` and `token_type` Bearer.",
    ),
    "refresh-refused": ("{issuer} does not renew the token{said}.", "Sign in again."),
    "no-revocation": ("{issuer} has no place to revoke a token.", "Forget it here. It ends when it expires."),
    "not-revoked": ("{issuer} did not revoke the token{said}.", "Forget it here, and end the session at the server."),
    "endless-scope": (
        "{server} still answers 403 after {count} sign-ins that asked for the scopes it wants.",
        "Compare `scope` in its challenge with the scopes of the token: the server wants one that {issuer} does not "
        "give, or looks for another than it says.",
    ),
    "endless": (
        "{server} refuses every token that its authorization server gives, {count} times by now.",
        "Check that the server takes tokens of {issuer} for {resource}: its log knows why it refused this one.",
    ),
    "bad-key": ("The private key cannot be used: {why}.", "Give an RSA or P-256 key in PEM, without a passphrase."),
    "tls": (
        "No secure connection to {host}: {why}.",
        "Check its certificate. If your company signs it, name the authority under TLS when you connect.",
    ),
    "unreachable": ("{host} cannot be reached: {why}.", "Check that it runs, its address, and your network."),
    "refused-by-policy": (
        "Parley does not dial {host}, which the metadata names: {why}.",
        "A server may send Parley no further inside your network than it is itself. Correct the address.",
    ),
    "too-large": ("What {host} answers is larger than {limit}.", "This is no answer of an authorization server."),
    "internal": (
        "Parley itself failed in this step.",
        "The terminal that runs Parley shows where: please report that.",
    ),
}


class StepFailed(Exception):
    """A step that cannot be taken, or that found something wrong."""

    def __init__(self, code: str, **values: object) -> None:
        sentence, fix = _WORDS[code]
        shown = {name: str(value)[:500] for name, value in values.items()}
        self.code, self.sentence, self.fix = code, sentence.format(**shown), fix.format_map(_Known(shown))
        super().__init__(self.sentence)


class _Known(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return f"its {key}"


def of_egress(fault: EgressError, host: str) -> StepFailed:
    """A request that got no answer."""
    if fault.kind in ("certificate", "tls", "pin"):
        return StepFailed("tls", host=host, why=fault.detail)
    if fault.kind == "refused-by-policy":
        return StepFailed("refused-by-policy", host=host, why=fault.detail)
    return StepFailed("unreachable", host=host, why=fault.detail or "it did not answer in time")


def said(error: str, description: str) -> str:
    """What a server says of its refusal, as the end of a sentence."""
    words = f"{error}: {description}" if error and description else error or description
    return f" ({' '.join(words.split())[:300].rstrip('.')})" if words.strip() else ""
