"""How long a call may take: a limit that progress renews, that stands still while a person thinks, and that ends."""

from __future__ import annotations

import anyio


class CallTimeout:
    """The time limit of one call (R5-05): renewed by progress, never beyond the whole, still while a person thinks."""

    def __init__(self, seconds: float, *, renewed_by_progress: bool = True, at_most: float) -> None:
        self.seconds, self.renewed_by_progress, self._at_most = seconds, renewed_by_progress, at_most
        self._scope: anyio.CancelScope | None = None
        self._began = 0.0
        self._left: float | None = None
        self._paused = 0.0

    def begin(self, scope: anyio.CancelScope) -> None:
        """The request leaves, and its time begins."""
        self._scope, self._began, self._left = scope, anyio.current_time(), None
        self._arm(self.seconds)

    def renew(self) -> None:
        """Progress came, so the time begins anew."""
        if self._left is not None:
            self._left = self.seconds
        else:
            self._arm(self.seconds)

    def pause(self) -> None:
        """A person is asked, so the time stands still."""
        if self._scope is not None and self._left is None:
            self._paused = anyio.current_time()
            self._left = max(0.0, self._scope.deadline - self._paused)
            self._scope.deadline = float("inf")

    def resume(self) -> None:
        """The person has answered; the time of thinking does not count."""
        if self._left is not None:
            self._began += anyio.current_time() - self._paused
            left, self._left = self._left, None
            self._arm(left)

    @property
    def still(self) -> bool:
        """Whether a person is asked, so that no time passes."""
        return self._left is not None

    def left(self) -> float:
        """Seconds until the limit strikes."""
        return self.seconds if self._scope is None else max(0.0, self._scope.deadline - anyio.current_time())

    def _arm(self, seconds: float) -> None:
        if self._scope is not None:
            self._scope.deadline = min(anyio.current_time() + seconds, self._began + self._at_most)


class OutOfTime(Exception):
    """A call took longer than its limit; ours, never the server's word (R6-09)."""
