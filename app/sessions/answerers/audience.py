"""The audience: a room full of phones, while a presenter lets it answer. Without a room it says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.core.asks import Answer, Ask
from app.sessions.answerers.base import Answerer

if TYPE_CHECKING:
    from app.sessions.room import Room


class Audience(Answerer):
    """Leaves every ask to the room, when there is one."""

    def __init__(self) -> None:
        self.room: Room | None = None

    async def consider(self, ask: Ask) -> Answer | None:
        """What the room says, once it has said it."""
        return None if self.room is None else await self.room.consider(ask)
