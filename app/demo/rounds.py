"""How the desk asks in 2026-07-28: it returns its questions, and is called again with the answers.

A call is played anew in each round: what was answered before is known, the first question that was not is returned as
`input_required`. Everything that the desk must remember between two rounds travels in `requestState`, sealed, so that
a state that was changed, or belongs to another call, is refused. Knows none of the questions.
"""

import hashlib
import hmac
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError

from app.demo.state import Context, is_modern

ParamsT = TypeVar("ParamsT")
ResultT = TypeVar("ResultT")
SEAL = secrets.token_bytes(32)  # a new one for each process: no state outlives it
SEAL_BYTES = 16


class NeedsAnswers(Exception):
    """Some questions have no answer yet; they are returned to the client."""

    def __init__(self, requests: dict[str, dict[str, Any]]) -> None:
        super().__init__(f"{len(requests)} questions")
        self.requests = requests


@dataclass(slots=True)
class Talk:
    """What was asked and answered so far in one call."""

    subject: str
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: int = 0

    def ask(self, *requests: dict[str, Any]) -> list[dict[str, Any]]:
        """The answers to these requests, or NeedsAnswers with those that have none."""
        keys = [f"question-{self.asked + number}" for number in range(1, len(requests) + 1)]
        self.asked += len(requests)
        missing = {key: each for key, each in zip(keys, requests, strict=True) if key not in self.answers}
        if missing:
            raise NeedsAnswers(missing)
        return [self.answers[key] for key in keys]

    def seal(self) -> str:
        """Everything to remember, as a text that only we can have written."""
        plain = json.dumps({"subject": self.subject, "answers": self.answers}).encode()
        return urlsafe_b64encode(_sign(plain) + plain).decode()

    @classmethod
    def resume(cls, subject: str, responses: Any, state: Any) -> "Talk":
        """Go on where a state left off; MCPError when it is none of ours, or is missing."""
        talk = cls(subject)
        if state is not None:
            try:
                raw = urlsafe_b64decode(str(state).encode())
                if not hmac.compare_digest(raw[:SEAL_BYTES], _sign(raw[SEAL_BYTES:])):
                    raise ValueError
                known = json.loads(raw[SEAL_BYTES:])
            except ValueError:
                raise MCPError(types.INVALID_PARAMS, "This requestState is not one of ours, or was changed.") from None
            if known["subject"] != subject:
                raise MCPError(types.INVALID_PARAMS, "This requestState belongs to another request.")
            talk.answers = known["answers"]
        elif responses:
            raise MCPError(types.INVALID_PARAMS, "The answers came without their requestState.")
        if isinstance(responses, Mapping):
            talk.answers |= {str(key): dict(each) for key, each in responses.items() if isinstance(each, Mapping)}
        return talk


def _sign(plain: bytes) -> bytes:
    return hmac.digest(SEAL, plain, hashlib.sha256)[:SEAL_BYTES]


current: ContextVar[Talk | None] = ContextVar("current", default=None)


def in_rounds(
    handler: Callable[[Context, ParamsT], Awaitable[ResultT]],
) -> Callable[[Context, ParamsT], Awaitable[ResultT | types.InputRequiredResult]]:
    """Let a handler ask in the middle of its work, whichever era the client speaks."""

    async def handle(context: Context, params: ParamsT) -> ResultT | types.InputRequiredResult:
        if not is_modern(context):
            return await handler(context, params)
        given = dict(context.params or {})
        responses, state = given.pop("inputResponses", None), given.pop("requestState", None)
        given.pop("_meta", None)
        about = json.dumps([context.method, given], sort_keys=True).encode()
        talk = Talk.resume(hashlib.sha256(about).hexdigest(), responses, state)
        token = current.set(talk)
        try:
            return await handler(context, params)
        except NeedsAnswers as needs:
            # Our own words, not the SDK's models: those would write every field that a question leaves out.
            asked: Any = {"resultType": "input_required", "inputRequests": needs.requests, "requestState": talk.seal()}
            return asked  # type: ignore[no-any-return]
        finally:
            current.reset(token)

    return handle
