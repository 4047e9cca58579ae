"""Which names sound secret: of a variable, a header, an option, a parameter, a field. One table, also for the browser.

A name may come from outside, so all of it is linear (tests/unit/test_patterns.py feeds each pattern its worst case).
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final, Literal

NAME_LONGEST: Final = 200
Where = Literal["variable", "header", "argument", "parameter", "field"]

HUMPS: Final = (
    r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])|[^A-Za-z0-9]+"
)
"""Where one word of a name ends and the next begins. Python and the browser cut names by the same pattern."""

_ANYWHERE = (
    "pwd|secrets?|credentials?|creds?|tokens?|auth|oauth|authorization|cookies?|bearer|jwt|hmac|signature|sig|dsn"
    "|webhooks?|otp|totp|mnemonic|passcode|sess|sessid|sessionid|jsessionid|phpsessid"
    "|(?:api|app|access|private|secret|signing|encryption|master|account|auth|session)-keys?"
    "|session-(?:id|token|secret)|conn(?:ection)?-str(?:ing)?|(?:database|db|postgres|mysql|mongo|mongodb|redis|amqp)-ur[il]"
)
"""Words, and words in a row, that sound secret wherever they stand in a name."""
_LAST = "keys?|pass|pw|pat|session"
"""Words that sound secret only at the end: `DB_PASS` does, `pass-through` does not."""
_WITHIN = "password|passwd|passphrase|passwort|secret(?!ar)|credential|(?:api|access|private)keys?|token(?:-|$)"
"""Letters that sound secret also inside a word, as in `PGPASSWORD` and `authtoken`."""
_HARMLESS = (
    r"^(?:no|disable|enable|skip|without|require|allow|ignore|access-control)-"
    r"|-(?:file|path|dir|directory|folder|jar|sock|type|kind|style|format|mode|method|methods|scheme|provider|policy"
    r"|timeout|ttl|expiry|expires|expiration|age|interval|limit|count|size|length|len|max|min|algorithm|alg|enabled"
    r"|disabled|required|port|host|hostname|domain|prefix|suffix|name|version|issuer|audience|scopes?|user|username"
    r"|email|class|level)$"
    r"|(?:^|-)(?:auth|oauth|authorization|tokens?|sessions?|keys?|cookies?|jwt|signature)-(?:ur[il]|endpoint)$"
    r"|(?:^|-)(?:max|min|num|n|count|limit|remaining|reset|used|budget|input|output|total|prompt|completion|new|stop"
    r"|special|pad|eos|bos|page|next|continuation|sync)-(?:[a-z]{1,20}-){0,2}tokens?(?:-|$)"
    r"|(?:^|-)(?:public|primary|foreign|sort|partition|cache|idempotency|group|index)-keys?$"
    r"|(?:^|-)(?:single|one|two|first|second|multi|by)-pass$"
)
"""Names that only speak of a secret: where it lies, how long it lives, of which kind it is."""
_ENDS = r"(?:-[0-9]{1,9})?$"
_SECRET = rf"(?:^|-)(?:{_ANYWHERE})(?:-|$)|(?:^|-)(?:{_LAST}){_ENDS}|(?:{_WITHIN})"
_ASKED = (
    r"pass(?:word|phrase|code|wd)|secret(?!ar)|credential|(?:api|access|private)-?keys?(?:-|$)|^tokens?$"
    r"|(?:access|auth|bearer|refresh|api|id|session|security|personal|bot)-?tokens?(?:-|$)|card-?numbers?(?:-|$)"
    r"|(?:^|-)(?:cv[vc]|pin|ssn|pwd|pw)(?:-|$)"
)
"""What a form asks for. Tighter: a tool may well have an argument `key`, `session` or `page_token`."""

PATTERNS: Final[dict[Where, tuple[str, str]]] = {
    "variable": (_SECRET, rf"{_HARMLESS}|^(?:old)?pwd$"),
    "header": (_SECRET, _HARMLESS),
    "argument": (_SECRET, _HARMLESS),
    "parameter": (
        rf"{_SECRET}|(?:^|-)code$",
        rf"{_HARMLESS}|(?:^|-)(?:status|country|language|lang|error|zip|post|currency)-code$",
    ),
    "field": (_ASKED, "^$"),
}
"""For each place a name may stand: what sounds secret, and what is harmless all the same. On the words of a name."""

_humps = re.compile(HUMPS)

_SPOKEN = re.compile(
    r"pass(?:word|phrase|code)s?\b|\b(?:passwd|pwd)\b|\bsecrets?\b|\b(?:api|access|private)[ _-]?keys?\b|\btoken\b"
    r"|\bcredentials?\b|\bcredit[ _-]?card\b|\bcard numbers?\b|\bcv[vc]\b|\bpin\b|\bssn\b"
    r"|\bsocial security number\b",
    re.IGNORECASE,
)


def _words(name: str) -> str:
    """`X-Api_Key` and `xApiKey` alike as `x-api-key`."""
    return _humps.sub("-", name).lower().strip("-")


@cache
def _rules(where: Where) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The two patterns of a place, compiled by the first who asks: a start of Parley needs none of them."""
    secret, harmless = PATTERNS[where]
    return re.compile(secret), re.compile(harmless)


def sounds_secret(name: str, where: Where = "variable") -> bool:
    """Whether what goes by this name is treated as a secret, marked or not."""
    return _sounds_secret(name if len(name) <= NAME_LONGEST else name[:100] + name[-100:], where)


@lru_cache(maxsize=1024)
def _sounds_secret(name: str, where: Where) -> bool:
    words = _words(name)
    secret, harmless = _rules(where)
    return secret.search(words) is not None and harmless.search(words) is None


def spoken_of(text: str) -> re.Match[str] | None:
    """The first secret that a sentence speaks of; whether it asks for it is for the caller to judge (R4-13)."""
    return _SPOKEN.search(text)


def spaced(name: str) -> str:
    """A name as words of a sentence."""
    return _words(name).replace("-", " ")
