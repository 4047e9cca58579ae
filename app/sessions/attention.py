"""Where somebody waits right now, so that the bulk of others rests for that moment and for no longer.

What counts is a request of a person or a script that is being answered, a call that was just made, and a frame that
somebody waits for and that has just come. All of it is over by itself after a moment: whoever waits in silence for a
tool that takes ten minutes is in nobody's way. Knows sessions by their ids; knows nothing of what they do.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

YOUNG_SECONDS = 0.25
"""What takes longer waits for something, like `?wait=`, a stream of events or a slow tool, or is large itself."""
MOMENT_SECONDS = 0.003
"""From a frame until what it brings has been judged and drawn, and from an answer until its last bytes have left."""


class Attention:
    """The sessions that somebody waits for at this moment."""

    def __init__(self, mono: Callable[[], float]) -> None:
        self._mono = mono
        self._held: dict[int | str, tuple[str, float]] = {}
        """What is waited for, each in its session and until when it counts: requests by number, moments by session."""
        self._numbers = itertools.count(1)

    def moment(self, sid: str) -> None:
        """Something came that somebody waits for, or was asked for."""
        self._held[sid] = sid, self._mono() + MOMENT_SECONDS

    @contextmanager
    def waiting(self, sid: str) -> Iterator[None]:
        """A request is being answered, or a call runs: it counts while it is young. "" names no session."""
        number = next(self._numbers)
        self._held[number] = sid, self._mono() + YOUNG_SECONDS
        try:
            yield
        finally:
            self._held.pop(number, None)
            self.moment(sid)

    def beside(self, sid: str) -> bool:
        """Whether somebody waits for another session than this one. A flood asks this often, so it is quick."""
        if not self._held:
            return False
        now = self._mono()
        for key, (other, until) in list(self._held.items()):
            if until <= now:
                del self._held[key]
            elif other != sid:
                return True
        return False
