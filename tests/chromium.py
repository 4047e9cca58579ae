"""Where the Chromium of the browser tests is, and how it gets there.

`find()` only looks; `ensure()` installs one when none is there. `python -m tests.chromium [STAMP]` is the set-up step
of `make test`: it prints the path, writes it into STAMP, or fails with one sentence. Browser tests never skip.

Most tests run in the headless shell where there is one: the same engine without a window, a third lighter, because the
whole browser draws its tabs and menus for nobody. What only the whole browser does (it connects ahead of a click) is
shown in that, `find(whole=True)`.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SHELL = "chromium-headless-shell"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC_APPS = (
    "Chromium.app/Contents/MacOS/Chromium",
    "Google Chrome.app/Contents/MacOS/Google Chrome",
)
# Where `playwright install` keeps its browsers, newest build last.
PLAYWRIGHT_BUILDS = (
    "chromium-*/chrome-linux*/chrome",
    "chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
)
PLAYWRIGHT_SHELLS = (
    "chromium_headless_shell-*/*/chrome-headless-shell",
    "chromium_headless_shell-*/*/headless_shell",
)
# Debian's Chromium only recommends fonts; without these a page is measured and pictured in empty boxes.
FONTS = ("fonts-liberation", "fonts-dejavu-core")


class NoChromium(Exception):
    """There is no usable Chromium; the message says what to do."""


def find(*, whole: bool = False) -> Path:
    """The Chromium to use: PARLEY_CHROMIUM, the shell, one on PATH, a macOS application, or Playwright's own."""
    named = os.environ.get("PARLEY_CHROMIUM")
    if named:
        if _is_program(Path(named)):
            return Path(named)
        raise NoChromium(f"PARLEY_CHROMIUM is {named!r}, and that is no program: correct it or unset it.")
    for candidate in _candidates() if whole else (*_shells(), *_candidates()):
        if _is_program(candidate):
            return candidate
    raise NoChromium("No Chromium is installed: run `make chromium`, or set PARLEY_CHROMIUM to one.")


def ensure() -> Path:
    """A Chromium that starts, installed first when there is none."""
    try:
        paths = {find(), find(whole=True)}
    except NoChromium:
        if os.environ.get("PARLEY_CHROMIUM"):
            raise
        _install()
        paths = {find(), find(whole=True)}
    for path in paths:
        if not _starts(path):
            raise NoChromium(f"{path} does not start: try it by hand, or set PARLEY_CHROMIUM to another.")
    return find()


def _shells() -> Iterator[Path]:
    if on_path := shutil.which(SHELL):
        yield Path(on_path)
    yield from _playwright_builds(PLAYWRIGHT_SHELLS)


def _candidates() -> Iterator[Path]:
    for name in NAMES:
        if on_path := shutil.which(name):
            yield Path(on_path)
    if sys.platform == "darwin":
        for folder in (Path("/Applications"), Path.home() / "Applications"):
            yield from (folder / app for app in MAC_APPS)
    yield from _playwright_builds(PLAYWRIGHT_BUILDS)


def _playwright_builds(patterns: tuple[str, ...]) -> Iterator[Path]:
    caches = "Library/Caches" if sys.platform == "darwin" else ".cache"
    cache = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / caches / "ms-playwright")
    for pattern in patterns:
        yield from sorted(cache.glob(pattern), reverse=True)


def _install() -> None:
    print("No Chromium here: installing one", file=sys.stderr)
    fetched = _run(sys.executable, "-m", "playwright", "install", "chromium", limit=300)
    # On a bare Linux the download lacks its libraries; Debian's package below brings them.
    if fetched and any(_is_program(path) and _starts(path) for path in _playwright_builds(PLAYWRIGHT_BUILDS)):
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        _run("apt-get", "update", "--quiet", limit=300)
        for packages in (["chromium", *FONTS], [SHELL]):  # older releases have no shell, and the whole serves
            _run("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages, limit=600)
        if shutil.which("chromium"):
            return
    raise NoChromium(
        "Chromium could not be installed (neither by `playwright install chromium` nor, as root, by apt-get): "
        "install Chromium or Chrome yourself, or set PARLEY_CHROMIUM to one."
    )


def _run(*command: str, limit: float) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        # Their progress is for people who wait: to stderr, so that stdout stays the path alone.
        return subprocess.run(command, env=environment, stdout=sys.stderr, timeout=limit, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _starts(path: Path) -> bool:
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=30, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def main(arguments: list[str]) -> int:
    stamp = Path(arguments[0]) if arguments else None
    try:
        if stamp and stamp.exists() and stamp.read_text(encoding="utf-8").strip() == str(find()):
            return 0  # the same as last time, when it started
        path = ensure()
    except NoChromium as error:
        print(error, file=sys.stderr)
        return 1
    print(path)
    if stamp:
        stamp.write_text(f"{path}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
