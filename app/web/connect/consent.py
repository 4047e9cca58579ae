"""Consent to start a command: the card that shows it in full, and the commands that wait for a yes (R5-71)."""

from __future__ import annotations

import re
import shutil
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

from app import bounds, secrecy
from app.core.options import Options
from app.core.targets import AnyTarget, StdioTarget, target_digest
from app.protocol.links.stdio import child_environment, start_trouble
from app.sessions import Identity, Workspace
from app.web.kit.frame import Shell, shell
from app.web.kit.templates import Context

_Proposal = tuple[AnyTarget, Options, str, AnyTarget | None]


class Proposals:
    """Commands that were shown to a person and wait for their yes. Kept here, so that no environment value has to
    travel through the page and back; bounded, and forgotten after ten minutes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], tuple[float, _Proposal]] = OrderedDict()

    def keep(
        self, identity: Identity, target: AnyTarget, options: Options, name: str = "", lasting: AnyTarget | None = None
    ) -> str:
        """Remember it, with the name that somebody gave it, and with what outlasts the session in its place; the digest
        that confirms it."""
        digest = target_digest(target)
        now = self._clock()
        for key in [key for key, (until, _) in self._kept.items() if until < now]:
            del self._kept[key]
        self._kept[identity.id, digest] = (now + 600, (target, options, name, lasting))
        self._kept.move_to_end((identity.id, digest))
        mine = [key for key in self._kept if key[0] == identity.id]
        for key in mine[: -bounds.PROPOSALS]:  # nobody pushes out what somebody else was shown
            del self._kept[key]
        return digest

    def take(self, identity: Identity, digest: str) -> tuple[AnyTarget, Options] | None:
        """What this digest stands for, once."""
        found = self.take_all(identity, digest)
        return None if found is None else found[:2]

    def take_all(self, identity: Identity, digest: str) -> _Proposal | None:
        """The same, with its name and with what outlasts the session."""
        found = self._kept.pop((identity.id, digest), None)
        return None if found is None or found[0] < self._clock() else found[1]


_ROOT = "runs something with the rights of another user, usually root"
_DELETES = "deletes files without asking"
_HIDDEN = "runs something that is hidden by an encoding"
_WARNINGS: tuple[tuple[tuple[re.Pattern[str], ...], str], ...] = (
    ((re.compile(r"\A(?:.*/)?(?:sudo|doas|su|pkexec)\Z"),), _ROOT),
    ((re.compile(r"\b(?:sudo|doas)\s"),), _ROOT),
    ((re.compile(r"\brm\s{1,40}(?:-[\w-]{1,40}\s{1,40}){0,10}?-\w{0,40}[rRf]"),), _DELETES),
    (
        (re.compile(r"\b(?:curl|wget)\b"), re.compile(r"\|\s{0,40}(?:ba|z|da|k)?sh\b")),
        "downloads a script and runs it unread",
    ),
    ((re.compile(r"\bbase64\s{1,40}(?:-d|--decode|-D)\b"),), _HIDDEN),
    ((re.compile(r"(?i)-e(?:nc(?:odedcommand)?)?\s{1,40}[A-Za-z0-9+/=]{40}"),), _HIDDEN),
    ((re.compile(r"\bdd\s"), re.compile(r"\bof=/dev/")), "writes to a disk directly"),
    ((re.compile(r"\bmkfs\b"),), "writes to a disk directly"),
    ((re.compile(r"\bchmod\s{1,40}(?:-R\s{1,40})?[0-7]{0,4}777\b"),), "opens files to everybody"),
    ((re.compile(r":\(\)\s{0,40}\{"),), "starts copies of itself without end"),
)
"""What deserves a word: each rule is one pattern, or several that stand one after the other. Arguments come from
outside, so what may stand between two patterns is never part of one: two open ends would compete."""


def _stand_in_a_row(patterns: tuple[re.Pattern[str], ...], text: str) -> bool:
    at = 0
    for pattern in patterns:
        found = pattern.search(text, at)
        if found is None:
            return False
        at = found.end()
    return True


class ConsentArgument(NamedTuple):
    """One part of the command line, exactly but for its secrets, with what is remarkable about it."""

    text: str
    warning: str


def warnings_of(argv: Sequence[str], shown_argv: Sequence[str]) -> list[ConsentArgument]:
    """Each argument as it is shown, with a warning where the real one deserves it (R5-71)."""
    shown = []
    rash = max((at for at, one in enumerate(argv) if one.startswith("-") and set(one) & set("rRf")), default=0)
    for index, text in enumerate(argv):
        warning = next((words for patterns, words in _WARNINGS if _stand_in_a_row(patterns, text)), "")
        if not warning and text.rpartition("/")[2] == "rm" and index < rash:
            warning = _DELETES
        if not warning and index and (text.startswith("../") or "/../" in text):
            warning = "points outside of the working directory"
        shown.append(ConsentArgument(shown_argv[index], warning))
    return shown


@dataclass(slots=True)
class Consent(Context):
    """The card that stands before the first start of a command (R5-71)."""

    template: ClassVar[str] = "connect/consent.html"

    shell: Shell | None
    action: str
    back: str
    target: StdioTarget
    program: str
    """The file that will run; "" when there is none of that name."""
    cwd: str
    env: list[tuple[str, str]]
    """The variables that are added, with `•••` for what nobody may see."""
    inherited: str
    argv: list[ConsentArgument]
    digest: str
    reveal: bool
    """Whether the person had the secrets of the command line shown."""


def _program(target: StdioTarget, cwd: Path) -> str:
    """The file that the system will run for a command."""
    name = str(cwd / target.command) if "/" in target.command else target.command
    return shutil.which(name, path=child_environment(target.env).get("PATH")) or ""


def unstartable(target: StdioTarget) -> dict[str, str]:
    """Why a command cannot be started as it was typed, by the part of the target that has to be corrected; the words
    are those of a start that failed. Empty when it may be tried."""
    cwd = Path.cwd() / (target.cwd or "")
    if cwd.is_dir() and _program(target, cwd):
        return {}
    there = "/" in target.command and (cwd / target.command).is_file()
    found = start_trouble(target, PermissionError() if there else FileNotFoundError())
    return {"cwd" if found.kind == "cwd" else "command_line": f"{found.message} {found.advice}"}


def consent(session: Workspace | None, target: StdioTarget, *, reveal: bool = False) -> Consent:
    """What will run, before it runs for the first time: in full, but for secrets that nobody asked to see."""
    own = session is not None and not session.never_connected
    cwd = Path.cwd() / (target.cwd or "")
    secret = target.secret_names
    return Consent(
        shell=shell(session, "connect", "Start this command?") if session is not None and own else None,
        action="/s" if session is None else f"{session.base}/connect",
        back="/" if session is None else f"{session.base}/connect" if own else f"/?session={session.id}",
        target=target,
        program=_program(target, cwd),
        cwd=str(cwd),
        env=[(name, secrecy.MASK if name in secret else value) for name, value in sorted(target.env.items())],
        inherited=", ".join(sorted(child_environment({}).keys() - target.env.keys())),
        argv=warnings_of(target.argv, target.argv if reveal else target.shown_argv),
        digest=target_digest(target),
        reveal=reveal,
    )
