"""A sampling request as a person reads it and may change it before it is used (R3-02).

The request that came stays in view: what was changed is marked, with what stood there before. Knows the request; knows
no ask and no route.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from app import bounds
from app.core.figures import grouped
from app.core.forms import Entries
from app.core.json.changes import changes
from app.core.json.text import dump
from app.core.sampling import blocks as blocks_of
from app.web.asks.edits import Piece, pieces
from app.web.door.denied import Denied
from app.web.kit import format, html, media, request_bodies
from app.web.kit.words import text_of

_FACTS = (
    ("maxTokens", "Max tokens"),
    ("temperature", "Temperature"),
    ("stopSequences", "Stop at"),
    ("includeContext", "Context"),
    ("metadata", "Metadata"),
)
_PRIORITIES = (("speedPriority", "Speed"), ("costPriority", "Cost"), ("intelligencePriority", "Intelligence"))
_MOST_FIELDS = 60
_SHOWN_TURNS = 40
_SHOWN_TOOLS = 60
SHOWN_TEXT = 2_000
"""How much of a request every page shows; all of it stands on the page of its own, as far as that is sensible."""
_TURNS_ALONE = 1_000
Blocks = tuple[tuple[str, str], ...]
"""What each block of a message is, and how it reads."""


class Medium(NamedTuple):
    """A picture or a sound of a message: what it is, and the digest by which its bytes are fetched."""

    kind: str
    """`image` or `audio`; "" for one that is not shown."""
    sha: str
    words: str
    """What it is, or why it is not shown."""


class Turn(NamedTuple):
    """One message: who speaks, each block as text, and, when it was changed, how."""

    who: str
    blocks: Blocks
    change: str = ""
    """`edited`, `added`, `removed`, or nothing."""
    before: Blocks = ()
    media: tuple[Medium, ...] = ()
    """Its pictures and sounds, as far as a page shows them."""

    @property
    def marked(self) -> list[tuple[str, list[Piece]]]:
        """Each block with what was changed in it, in place; nothing where the blocks are others than before."""
        if self.change != "edited" or [kind for kind, _ in self.blocks] != [kind for kind, _ in self.before]:
            return []
        both = zip(self.before, self.blocks, strict=True)
        return [(kind, pieces(before, after)) for (kind, before), (_, after) in both]

    @property
    def shortened(self) -> Turn:
        """As much of it as every page shows."""
        return self._replace(blocks=_short(self.blocks), before=_short(self.before))


class Fact(NamedTuple):
    """One small thing that a request says, and what it said before it was changed."""

    label: str
    text: str
    before: str | None = None

    @property
    def marked(self) -> list[Piece]:
        """It, with what was changed in place."""
        return pieces(self.text if self.before is None else self.before, self.text)


class EditField(NamedTuple):
    """One thing that can be changed by typing."""

    name: str
    label: str
    text: str
    rows: int = 0
    """0 is a single line."""


@dataclass(slots=True)
class Sampling:
    """Everything a sampling request says, for a person to read and to change."""

    system: Fact | None
    turns: list[Turn]
    facts: list[Fact]
    hints: list[str]
    priorities: list[tuple[str, float]]
    tools: list[tuple[str, str]]
    tool_choice: str
    edited: bool = False
    edits: int = 0
    """How many places of it were changed."""
    summary: str = ""
    original: str = ""
    """The request as it came, as JSON text with long texts cut, when it was changed."""
    earlier: int = 0
    """How many of its first messages are not shown here."""
    more_tools: int = 0


def sampling_view(params: dict[str, Any], edited: dict[str, Any] | None = None, *, whole: bool = False) -> Sampling:
    """A request, and what a person made of it; in the inbox, which every page has, by its last messages."""
    now = params if edited is None else edited
    preferences = now.get("modelPreferences")
    prefers = preferences if isinstance(preferences, dict) else {}
    hints = prefers.get("hints")
    listed = now.get("tools")
    choice = now.get("toolChoice")
    many = max(len(_messages(params)), len(_messages(now)))
    earlier = max(0, many - (_TURNS_ALONE if whole else _SHOWN_TURNS))
    turns = _turns(params, now, earlier)
    came, system = text_of(params.get("systemPrompt")), text_of(now.get("systemPrompt"))
    tools = [tool for tool in (listed if isinstance(listed, list) else []) if isinstance(tool, dict)]
    most_tools = len(tools) if whole else _SHOWN_TOOLS
    return Sampling(
        system=Fact("System prompt", system, None if came == system else came) if came or system else None,
        turns=[turn if whole else turn.shortened for turn in turns],
        earlier=earlier,
        more_tools=max(0, len(tools) - most_tools),
        facts=_facts(params, now),
        hints=[str(one.get("name")) for one in hints if isinstance(one, dict)] if isinstance(hints, list) else [],
        priorities=[
            (word, float(rank)) for key, word in _PRIORITIES if isinstance(rank := prefers.get(key), int | float)
        ],
        tools=[(str(tool.get("name")), str(tool.get("description") or "")) for tool in tools[:most_tools]],
        tool_choice=str(choice.get("mode")) if isinstance(choice, dict) else "",
        edited=edited is not None,
        edits=0 if edited is None else len(changes(params, edited)),
        summary=_summary(now, turns),
        original="" if edited is None else format.brief_json(params),
    )


def last_words(request: dict[str, Any]) -> str:
    """The first text of the last message, without a look at the rest."""
    messages = _messages(request)
    texts = (_block(block) for block in (blocks_of(messages[-1]) if messages else []))
    return next((text for kind, text in texts if kind == "text"), "")


def _summary(now: dict[str, Any], turns: list[Turn]) -> str:
    """The request in one line."""
    kinds = [kind for turn in turns if turn.change != "removed" for kind, _ in turn.blocks]
    said = [format.plural(sum(turn.change != "removed" for turn in turns), "message")]
    for kind, word in (("image", "picture"), ("audio", "sound"), ("tool use", "tool use"), ("tool result", "result")):
        if kinds.count(kind):
            said.append(format.plural(kinds.count(kind), word))
    if isinstance(now.get("tools"), list):
        said.append(f"{format.plural(len(now['tools']), 'tool')} to use")
    said.append(f"at most {now.get('maxTokens')} tokens")
    return ", ".join(said)


def _messages(request: dict[str, Any]) -> list[dict[str, Any]]:
    found = request.get("messages")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _turns(params: dict[str, Any], now: dict[str, Any], earlier: int) -> list[Turn]:
    """The messages after so many of the first, compared with what came."""
    old, new = _messages(params)[earlier:], _messages(now)[earlier:]
    turns = []
    for at, message in enumerate(new):
        before = old[at] if at < len(old) else None
        change = "" if before == message else "added" if before is None else "edited"
        came = _blocks(before) if before and change else ()
        turns.append(Turn(str(message.get("role")), _blocks(message), change, came, _media(message)))
    turns += [Turn(str(message.get("role")), _blocks(message), "removed") for message in old[len(new) :]]
    return turns


def _short(blocks: Blocks) -> Blocks:
    kept = tuple((kind, html.cut(text, SHOWN_TEXT)) for kind, text in blocks[:_SHOWN_TURNS])
    more = len(blocks) - len(kept)
    return kept if more <= 0 else (*kept, ("text", f"… {grouped(more)} more blocks"))


def _facts(params: dict[str, Any], now: dict[str, Any]) -> list[Fact]:
    facts = []
    for key, label in _FACTS:
        if key in now or key in params:
            text, before = (format.gist(one[key], 300) if key in one else "not set" for one in (now, params))
            facts.append(Fact(label, text, None if text == before else before))
    for key, label in (("modelPreferences", "Preferences"), ("tools", "Tools"), ("toolChoice", "Tool choice")):
        if now.get(key) != params.get(key):
            facts.append(Fact(label, "changed", format.gist(params[key], 300) if key in params else "not set"))
    return facts


def _blocks(message: dict[str, Any]) -> Blocks:
    return tuple(_block(block) for block in blocks_of(message))


def _media(message: dict[str, Any]) -> tuple[Medium, ...]:
    """The pictures and sounds of a message, also those that a tool answered with. Their bytes are never in the page."""
    said = [one for one in blocks_of(message)[:_SHOWN_TURNS] if isinstance(one, dict)]
    within = [one for block in said if block.get("type") == "tool_result" for one in blocks_of(block)[:_SHOWN_TURNS]]
    found = []
    for block in [*said, *(one for one in within if isinstance(one, dict))]:
        data = block.get("data")
        if block.get("type") not in ("image", "audio") or not isinstance(data, str):
            continue
        if len(data) > bounds.ASK_MEDIA:
            found.append(Medium("", "", "Not shown: too large for a card. The log has it."))
        elif (one := media.examine(data, block.get("mimeType"))) is not None:
            what = f"{text_of(block.get('mimeType'))[:80]}, {format.size(one.size)}"
            found.append(Medium(one.kind.partition("/")[0], one.sha, one.why or what))
    return tuple(found)


def _block(block: Any) -> tuple[str, str]:
    """A block of a message: what it is, and how it reads."""
    if not isinstance(block, dict):
        return "unknown", format.gist(block, 2000)
    kind = str(block.get("type"))
    if kind == "text":
        return "text", str(block.get("text", ""))
    if kind in ("image", "audio"):
        length = format.base64_bytes(block.get("data"))
        return kind, f"{block.get('mimeType')}, {format.size(length) if length is not None else 'not base64'}"
    if kind == "tool_use":
        return "tool use", f"{block.get('name')} {format.gist(block.get('input'), 2000)}"
    if kind == "tool_result":
        within = block.get("content")
        blocks = within[:_SHOWN_TURNS] if isinstance(within, list) else [None]
        if not all(isinstance(one, dict) and one.get("type") not in (None, "tool_result") for one in blocks):
            return "tool result", format.gist(within, 2000)
        said = (_block(one) for one in blocks)
        return "tool result", "\n".join(text if kind == "text" else f"{kind} {text}" for kind, text in said)[:2000]
    return kind, format.gist(block, 2000)


# ------------------------------------------------------------------------------------------------------------ editing


def edit_fields(now: dict[str, Any]) -> list[EditField]:
    """What can be changed by typing; the JSON at the end holds everything."""
    found = [EditField("edit-system", "System prompt", text_of(now.get("systemPrompt")), 3)]
    for at, message in enumerate(_messages(now)):
        for place, block in enumerate(blocks_of(message)):
            if isinstance(block, dict) and block.get("type") == "text" and len(found) < _MOST_FIELDS:
                label = f"Message {at + 1}, {message.get('role')}"
                found.append(EditField(f"edit-{at}-{place}", label, text_of(block.get("text")), 3))
    stops = now.get("stopSequences")
    listed = [str(one) for one in stops] if isinstance(stops, list) else []
    temperature = now.get("temperature")
    found += [
        EditField("edit-maxTokens", "Max tokens", str(now.get("maxTokens", ""))),
        EditField("edit-temperature", "Temperature", "" if temperature is None else str(temperature)),
        EditField("edit-stop", "Stop at, one a line", "\n".join(listed), 2),
        EditField("edit-json", "Or the whole request as JSON", json.dumps(now, ensure_ascii=False, indent=2), 6),
    ]
    return found


def typed_edits(form: Entries) -> dict[str, str]:
    """The texts of the fields that change a request, by their names."""
    return {name: text for name, text in form.pairs() if name.startswith("edit-")}


def drawn_from(request: dict[str, Any]) -> str:
    """What the fields of a request were drawn from: it comes back with them."""
    return hashlib.sha256(dump(request)).hexdigest()[:16]


def edited(
    now: dict[str, Any], typed: dict[str, str], came: dict[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """A request with what was typed into the fields, and what cannot be read. Changed JSON counts before the fields.

    The fields may have been drawn before the request was edited elsewhere, from how it `came`: only what was typed into
    them since counts, and what nobody touched takes nothing back."""
    of = typed.get("edit-of")
    source = came if came is not None and of is not None and of != drawn_from(now) else now
    # A browser sends every line break as one of its own, so a text that nobody touched may come back with others.
    before = {one.name: one.text.replace("\r\n", "\n").replace("\r", "\n") for one in edit_fields(source)}
    changed = {name: text for name, text in typed.items() if name in before and text.strip() != before[name].strip()}
    if changed and of not in (None, drawn_from(source)):
        return now, {"/request": ["The request was edited elsewhere meanwhile. Open its form anew."]}
    text = changed.get("edit-json", "")
    if text.strip():
        try:
            return request_bodies.strict_json(text), {}
        except Denied as fault:
            return now, {"/request": [f"The request: {fault.message}"]}
    changed = {name: text for name, text in typed.items() if name in before and text != before[name]}
    request: dict[str, Any] = json.loads(json.dumps(now))
    errors: dict[str, list[str]] = {}
    for name, text in changed.items():
        if name == "edit-json":
            continue
        problem = _apply(request, name.removeprefix("edit-"), text)
        if problem:
            errors["/request"] = [*errors.get("/request", []), problem]
    return request, errors


def _apply(request: dict[str, Any], name: str, text: str) -> str:
    """Put one text where it belongs; what is wrong with it, or nothing."""
    if name == "system":
        _put(request, "systemPrompt", text)
    elif name == "stop":
        _put(request, "stopSequences", [line for line in text.split("\n") if line])
    elif name == "maxTokens":
        if not text.strip().isdecimal() or len(text.strip()) > 12:
            return "Max tokens is a whole number."
        request["maxTokens"] = int(text)
    elif name == "temperature":
        try:
            _put(request, "temperature", float(text) if text.strip() else None)
        except ValueError:
            return "The temperature is a number."
    else:
        at, place = (int(part) for part in name.split("-"))
        found = _messages(request)[at : at + 1]
        blocks = blocks_of(found[0])[place : place + 1] if found else []
        if not blocks or not isinstance(blocks[0], dict):
            return f"The request has no message {at + 1} like that any more."
        blocks[0]["text"] = text
    return ""


def _put(request: dict[str, Any], key: str, value: Any) -> None:
    """Set a member, or leave it out when there is nothing to say."""
    if value in (None, "", []):
        request.pop(key, None)
    else:
        request[key] = value
