"""Commands that a person was shown and has not yet agreed to (R5-71)."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from app.core.options import Options
from app.core.targets import AnyTarget, target_digest
from app.sessions import Identity


class Proposals:
    """Commands that were shown to a person and wait for their yes. Kept here, so that no environment value has to
    travel through the page and back; bounded, and forgotten after ten minutes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], tuple[float, AnyTarget, Options]] = OrderedDict()

    def keep(self, identity: Identity, target: AnyTarget, options: Options) -> str:
        """Remember it; the digest that confirms it."""
        digest = target_digest(target)
        self._kept[identity.id, digest] = (self._clock() + 600, target, options)
        self._kept.move_to_end((identity.id, digest))
        while len(self._kept) > 50:
            self._kept.popitem(last=False)
        return digest

    def take(self, identity: Identity, digest: str) -> tuple[AnyTarget, Options] | None:
        """What this digest stands for, once."""
        found = self._kept.pop((identity.id, digest), None)
        return None if found is None or found[0] < self._clock() else found[1:]
