"""People, and the scripts they write: the last answerer, whose answers come through the inbox whenever they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.core import asks
from app.core.asks import Answer, AnsweredBy, Ask
from app.core.errors import INTERNAL_ERROR, Invalid
from app.core.options import Root
from app.sessions.answerers.base import Answerer
from app.sessions.identity import Identity


class Person(Answerer):
    """Leaves every ask in the inbox, and reads what somebody there says to it."""

    def __init__(self, roots: Callable[[], list[Root]]) -> None:
        self._roots = roots

    def says(self, ask: Ask, said: dict[str, Any], by: Identity) -> Answer:
        """The answer that a form or a script sent, in the words of the JSON interface. Raises Invalid, with the fields
        that are wrong, for what is none; whether it fits the ask is not looked at."""
        who, forced = AnsweredBy(by.kind, by.name), said.get("force") is True
        match ask.kind, str(said.get("action")):
            case _, "fail":
                return asks.failure(*_code_and_message(said), who)
            case "sampling", "decline":
                return asks.denial(who)
            case "sampling", "respond":
                result = said.get("result")
                if not isinstance(result, dict) and not forced:
                    words = {"": ["The result must be an object."]}
                    raise Invalid("The answer does not fit what was asked for.", words)
                return asks.sampled(ask, result if isinstance(result, dict) else {}, who, forced=forced)
            case "roots", "accept":
                return asks.roots_result([root.wire() for root in self._roots()], who)
            case _, action:
                return asks.elicited(ask, action, said.get("content"), who, forced=forced)


def _code_and_message(said: dict[str, Any]) -> tuple[int, str]:
    code, message = said.get("code", INTERNAL_ERROR), said.get("message", "Failed on purpose")
    if not isinstance(code, int) or isinstance(code, bool):
        raise Invalid("An error needs a whole number as its code.", {"/code": ["A whole number, like -32603."]})
    if not isinstance(message, str):
        raise Invalid("An error needs a text as its message.", {"/message": ["A text."]})
    return code, message
