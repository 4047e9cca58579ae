"""Opens the person's browser at the way in, without the launch code in anybody's list of processes (H04).

Every user of a machine may read the arguments of every process, and a browser gets its address as one. So it gets the
address of a file, which its owner alone can read, and the file leads on. It is gone as soon as the code is worth
nothing, or Parley ends. A browser that may not read such files is not started at all: the terminal has the address.
"""

from __future__ import annotations

import html
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from app import process

_CONFINED: Final = ("/snap/", "/snapd/", "/flatpak/")
"""Where programs live that see a world of their own, without our files."""
_BY_SETTING: Final = frozenset({"xdg-open", "gio", "gvfs-open"})
"""Programs that start whichever browser the person has set."""


class Page:
    """The file that leads a browser in, from when it is written until `remove`."""

    def __init__(self, address: str) -> None:
        """Raises OSError where it cannot be written."""
        self._folder = Path(tempfile.mkdtemp(prefix="parley-"))  # of this user alone, like what is in it
        self.path = self._folder / "open.html"
        safe = html.escape(address)
        try:
            with os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(
                    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
                    f'<meta http-equiv="refresh" content="0; url={safe}"><title>Parley</title>'
                    f'<p><a href="{safe}">Open Parley</a></p></html>\n'
                )
        except OSError:
            self.remove()
            raise

    def remove(self) -> None:
        """The code has been used, has expired, or ends with the process."""
        with suppress(OSError):
            self.path.unlink()
        with suppress(OSError):
            self._folder.rmdir()


def open_browser(address: str) -> Page | None:
    """Show the address in the person's browser; None where that would not be safe or would not work.

    In a thread of its own: some browsers return only when they are closed.
    """
    try:
        page = Page(address)
    except OSError:
        return None
    threading.Thread(target=_show, args=[page], daemon=True).start()
    return page


def _show(page: Page) -> None:
    import webbrowser

    os.environ[process.OPENED] = "1"  # it outlives us, and what we end when we end is told from it by this
    shown = False
    with suppress(webbrowser.Error):
        browser = webbrowser.get()
        # Python has asked `xdg-settings` already, when it looked which browsers there are.
        preferred = str(getattr(webbrowser, "_os_preferred_browser", None) or "")
        confined = _confined(str(getattr(browser, "name", "")), preferred)
        shown = not confined and browser.open(page.path.as_uri())
    if not shown:
        page.remove()


def _confined(command: str, preferred: str) -> bool:
    """Whether this browser, or the preferred one behind `xdg-open` and its like, is a snap or a flatpak."""
    program = shutil.which(command)
    if program is None:
        return False
    if Path(program).name in _BY_SETTING:
        return _from_a_store(preferred)
    real = Path(program).resolve()
    if real.name == "snap" or any(part in str(real) for part in _CONFINED):
        return True
    # A distribution may put a script where its browser was, which starts the other one.
    with suppress(OSError), real.open("rb") as file:
        start = file.read(4096)
        return start.startswith(b"#!") and any(part.encode() in start for part in (*_CONFINED, "flatpak run"))
    return False


def _from_a_store(entry: str) -> bool:
    """Whether the entry of the desktop with this name came with a snap or a flatpak."""
    if not entry or "/" in entry:
        return False
    folders = ("/var/lib/snapd/desktop", "/var/lib/flatpak/exports/share", "~/.local/share/flatpak/exports/share")
    return any((Path(folder).expanduser() / "applications" / entry).exists() for folder in folders)


def has_screen() -> bool:
    """Whether there is anything a browser could be shown on."""
    if sys.platform == "darwin":
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


# ------------------------------------------------------------------------------------------------------- a recording


def recording_in(words: Sequence[str]) -> tuple[list[str], Path | None, str]:
    """Take `open FILE` out of a command line: what is left, the file, and why it cannot be opened, if that is so."""
    given = list(words)
    ours = given[: given.index("--")] if "--" in given else given
    if "open" not in ours:
        return given, None, ""
    at = ours.index("open")
    name = next((one for one in ours[at + 1 : at + 2] if not one.startswith("-")), None)
    if name is None:
        return given, None, "after open the file of a recording is missing, like: parley open session.jsonl"
    from app.recordings.arriving import no_recording

    try:
        why = no_recording(Path(name))
    except (OSError, ValueError) as fault:
        why = f"the file {name[:200]!r} cannot be read: {getattr(fault, 'strerror', fault)}"
    else:
        why = why and f"{name[:200]!r} is no recording of Parley: {why}"
    return given[:at] + given[at + 2 :], Path(name), why
