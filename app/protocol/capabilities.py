"""What we offer a server, in the words of each revision."""

from __future__ import annotations

from typing import Any

from app.core.options import Options
from app.core.rules import stateless


def client_capabilities(options: Options, version: str) -> dict[str, Any]:
    """What we offer a server: what the options say, as far as the revision has it."""
    offered: dict[str, Any] = {}
    no_handshake = stateless.is_stateless(version)
    if options.roots:
        offered["roots"] = {} if no_handshake else {"listChanged": True}
    if options.sampling:
        offered["sampling"] = {}
        if version >= "2025-11-25":
            if options.sampling_tools:
                offered["sampling"]["tools"] = {}
            if options.sampling_context:
                offered["sampling"]["context"] = {}
    if version >= "2025-11-25":
        modes: dict[str, Any] = {mode: {} for mode in ("form", "url") if getattr(options, f"elicitation_{mode}")}
        if modes:
            offered["elicitation"] = modes
    elif version >= "2025-06-18" and options.elicitation_form:
        offered["elicitation"] = {}
    if options.receiver_tasks and version >= "2025-11-25" and not no_handshake:
        requests: dict[str, Any] = {}
        if "sampling" in offered:
            requests["sampling"] = {"createMessage": {}}
        if "elicitation" in offered:
            requests["elicitation"] = {"create": {}}
        if requests:
            offered["tasks"] = {"list": {}, "cancel": {}, "requests": requests}
    wanted = {stateless.TASKS: {}, **options.extensions} if no_handshake else options.extensions
    extensions = {name: value for name, value in wanted.items() if value is not None}
    if extensions:
        offered["extensions"] = extensions
    return offered
