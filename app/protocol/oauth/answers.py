"""What may be shown of an answer that may hand out credentials: hidden unless it is known to be harmless.

A token endpoint may call its tokens what it likes, nest them, and repeat them where nobody expects one. So no list of
secret names is kept here but one of plain ones, and what stands in those is looked at too (S21).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Set
from typing import Any, Final, Literal

from app import bounds
from app.secrecy import MASK
from app.secret_names import sounds_secret

Plain = Literal["word", "words", "scope", "number", "list", "address"]
"""How the value of a harmless member looks; one that looks otherwise is hidden."""
_ERRORS: Final[dict[str, Plain]] = {"error": "word", "error_description": "words", "error_uri": "address"}
TOKENS: Final[dict[str, Plain]] = {
    "token_type": "word", "expires_in": "number", "refresh_expires_in": "number", "refresh_token_expires_in": "number",
    "scope": "scope", "issued_token_type": "address", **_ERRORS,
}  # fmt: skip
"""Answers about a token."""
REGISTRATION: Final[dict[str, Plain]] = {
    "client_id": "address", "client_id_issued_at": "number", "client_secret_expires_at": "number",
    "client_name": "words", "redirect_uris": "list", "grant_types": "list", "response_types": "list", "scope": "scope",
    "token_endpoint_auth_method": "word", "application_type": "word", "client_uri": "address", "logo_uri": "address",
    "tos_uri": "address", "policy_uri": "address", "software_id": "word", "software_version": "word", **_ERRORS,
}  # fmt: skip
"""Answers to a registration."""
HEADERS: Final = frozenset(
    {
        "age", "allow", "alt-svc", "cache-control", "connection", "content-encoding", "content-language",
        "content-length", "content-type", "date", "expires", "keep-alive", "pragma", "referrer-policy", "retry-after",
        "server", "strict-transport-security", "transfer-encoding", "vary", "via", "x-content-type-options",
        "x-frame-options",
    }
)  # fmt: skip
"""Headers that such an answer is shown with; of the others only the names are."""

_TEXTS: Final = frozenset({"words", "scope", "address", "list"})
_WORD: Final = re.compile(r"[A-Za-z0-9._:-]{1,60}")
_RUN: Final = re.compile(r"[A-Za-z0-9_+/=~-]{16,}")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:@/-]{0,59}")
_TURN: Final = re.compile(r"[a-z][A-Z]")


def looks_made(run: str) -> bool:
    """Whether a run of letters and digits looks as if a machine had made it, and nobody had written it."""
    return sum(char.isdigit() for char in run) >= 2 or len(_TURN.findall(run)) >= 6 or len(run) > 80


def made_runs(text: str, public: Set[str]) -> Iterator[str]:
    """What in a text could be a credential; not what everybody knows anyway."""
    for found in _RUN.finditer(text):
        if looks_made(found[0]) and not any(found[0] in known for known in public):
            yield found[0]


def credentials_in(value: Any, plain: dict[str, Plain], public: Set[str]) -> list[str]:
    """Every text in an answer that could be a credential, whatever it is called and however deep it stands. A name of
    a person or a team is hidden where it stands, and elsewhere only when it is repeated in what would be shown. Not
    more than a server needs: each of them is looked for in all that is shown from then on."""
    members = value.items() if isinstance(value, dict) else ()
    said = " ".join(one for name, one in members if name in plain and isinstance(one, str))[: bounds.OAUTH_SHOWN]
    repeated: dict[str, None] = {}
    others: dict[str, None] = {}
    for text, secret in _hidden(value, plain, public):
        made = len(text) >= 16 and looks_made(text) and not any(char.isspace() for char in text)
        if len(text) >= 8 and text in said:
            repeated[text] = None
        elif secret or made:
            others[text] = None
    return [*repeated, *others][: bounds.OAUTH_LEARNED]


def _hidden(value: Any, plain: dict[str, Plain], public: Set[str], secret: bool = False) -> Iterator[tuple[str, bool]]:
    """The texts that are not shown, each with whether its name alone says that it is secret."""
    if isinstance(value, dict):
        for name, one in value.items():
            if not _is_name(name, public):
                yield name, True
            if _harmless(name, one, plain, public):
                continue
            texts = one if isinstance(one, list) and plain.get(name) == "list" else [one]
            if plain.get(name) in _TEXTS and all(isinstance(text, str) for text in texts):
                yield from ((run, True) for text in texts for run in made_runs(text, public))
            else:
                yield from _hidden(one, {}, public, secret or name in plain or sounds_secret(name, "field"))
    elif isinstance(value, list):
        for one in value:
            yield from _hidden(one, {}, public, secret)
    elif isinstance(value, str) and value not in public:
        yield value, secret


def shown(value: Any, plain: dict[str, Plain], public: Set[str]) -> str:
    """An answer as it may be shown."""
    return json.dumps(_shown(value, plain, public), indent=2, ensure_ascii=False, default=str)[: bounds.OAUTH_SHOWN]


def unread(raw: bytes, media: str) -> str:
    """What is said of an answer that is no JSON: a token may stand anywhere in it."""
    return "" if not raw else f"{len(raw)} bytes of {media or 'no named type'}, not shown: it is no JSON object"


def _shown(value: Any, plain: dict[str, Plain], public: Set[str]) -> Any:
    if isinstance(value, dict):
        return {
            name if _is_name(name, public) else MASK: _member(name, one, plain, public) for name, one in value.items()
        }
    if isinstance(value, list):
        return [_shown(one, {}, public) for one in value]
    harmless = value is None or isinstance(value, bool) or value == "" or (isinstance(value, str) and value in public)
    return value if harmless else MASK


def _member(name: str, value: Any, plain: dict[str, Plain], public: Set[str]) -> Any:
    if _harmless(name, value, plain, public):
        return value
    if isinstance(value, str) and plain.get(name) in _TEXTS:
        for run in sorted(set(made_runs(value, public)), key=len, reverse=True):
            value = value.replace(run, MASK)
        return value[: bounds.OAUTH_NAME]
    if name in plain and isinstance(value, list) and plain[name] == "list":
        return [_member(name, one, {name: "address"}, public) if isinstance(one, str) else MASK for one in value]
    return _shown(value, {}, public)


def _is_name(name: str, public: Set[str]) -> bool:
    return _NAME.fullmatch(name) is not None and not any(made_runs(name, public))


def _harmless(name: str, value: Any, plain: dict[str, Plain], public: Set[str]) -> bool:
    """Whether a member may be shown as it is."""
    kind = plain.get(name)
    if kind is None:
        return False
    if isinstance(value, str) and value in public:
        return True
    if kind == "number":
        number = isinstance(value, int | float) or (isinstance(value, str) and value.isdecimal())
        return number and len(str(value)) <= 12
    if not isinstance(value, str):
        short = kind == "list" and isinstance(value, list)
        return short and all(isinstance(one, str) and _harmless(name, one, {name: "address"}, public) for one in value)
    if kind == "word":
        return _WORD.fullmatch(value) is not None and not any(made_runs(value, public))
    return kind != "list" and not any(made_runs(value, public)) and len(value) <= bounds.OAUTH_NAME
