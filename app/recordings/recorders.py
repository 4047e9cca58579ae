"""All recordings of this process: which session is recorded, who began it, and that each ends before the process."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio

from app import bounds
from app.core.errors import Conflict, Invalid, NotAllowed
from app.recordings.portions import Wanted
from app.recordings.recorder import Recorder
from app.recordings.scribes import Scribe
from app.recordings.taken import title_of
from app.sessions.session import Session
from app.sessions.workspace import Workspace
from app.store.recordings import Recording, new_id, writer

if TYPE_CHECKING:
    from app.sessions.registry import SessionRegistry

logger = logging.getLogger("parley.recordings")


class Recorders:
    """Starts, finds and ends recordings of sessions."""

    def __init__(self, registry: SessionRegistry) -> None:
        self._registry = registry
        self._scribe = Scribe(registry.start_soon, registry.store.recordings)
        self._at_work: dict[Workspace, Recorder] = {}
        """Those that have not ended. One that has is held by its session alone: it knows the whole session."""
        registry.before_end.append(self.close)

    @property
    def scribe(self) -> Scribe:
        """Who masks."""
        return self._scribe

    @property
    def scribe_pid(self) -> int | None:
        """The process that masks, while there is one."""
        return self._scribe.pid

    def live(self, space: Workspace) -> Recorder | None:
        """The one that records it now."""
        found = self._at_work.get(space)
        return found if found is not None and found.live else None

    def by_id(self, rid: str) -> Recorder | None:
        """The one that writes this recording now."""
        return next((one for one in self._at_work.values() if one.recording.id == rid), None)

    def start(self, space: Workspace, wanted: Wanted | None = None) -> Recorder:
        """Record a session from now on, with all that its log still holds. Raises Conflict when it is recorded already
        or cannot be, NotAllowed when there is no room."""
        if self.live(space) is not None:
            raise Conflict("This session is being recorded already.")
        if not isinstance(space, Session):
            raise Conflict("This is a recording itself. Download its file to keep it.")
        if space.closed or self._registry.closing:
            raise Conflict("This session is closed.")
        store = self._registry.store.recordings
        if not store.possible:
            raise NotAllowed("This Parley keeps nothing on disk. Start it with --data-dir to record.")
        store.room(space.owner)
        recording = Recording(
            id=new_id(),
            owner=space.owner,
            title=title_of(space),
            state="recording",
            began=space.wall(),
            label="" if space.target is None else space.target.label,
            target=space.target_key,
            session=space.id,
            revision=space.info.protocol_version or "",
            writer=writer(),
        )
        recorder = Recorder(self._registry, space, recording, self._scribe, wanted or Wanted())
        space.recorder = self._at_work[space] = recorder
        space.start_soon(self._work, recorder, space)
        space.changed("recording.changed", "recording")
        return recorder

    async def _work(self, recorder: Recorder, space: Workspace) -> None:
        try:
            await recorder.run()
        finally:
            if self._at_work.get(space) is recorder:
                del self._at_work[space]

    async def stop(self, space: Workspace) -> Recording:
        """End the recording of a session, and wait until all of it is written. Raises Conflict when there is none."""
        recorder = self.live(space)
        if recorder is None:
            raise Conflict("This session is not being recorded.")
        recorder.stop()
        with anyio.move_on_after(bounds.RECORDING_END_SECONDS):
            await recorder.over.wait()
        return recorder.recording

    def connects(self, space: Workspace) -> None:
        """A session connects, and every one is to be recorded. What stands in the way is said in its page."""
        if self.live(space) is None and (isinstance(space, Session) and space.made_for is None):
            try:
                self.start(space)
            except (Conflict, NotAllowed) as no:
                logger.warning("session %s is not recorded: %s", space.id, no.message)

    async def close(self) -> None:
        """End every recording in order; Parley is about to end."""
        at_work = list(self._at_work.values())
        for recorder in at_work:
            recorder.stop("shutdown")
        with anyio.move_on_after(bounds.RECORDING_END_SECONDS):
            for recorder in at_work:
                await recorder.over.wait()


def wanted_of(names: object, pointers: object) -> Wanted:
    """Further names and pointers to mask, as a person wrote them. Raises Invalid."""
    found: dict[str, tuple[str, ...]] = {}
    wrong: dict[str, list[str]] = {}
    for key, given in (("names", names), ("pointers", pointers)):
        many = [] if given is None else given
        if not isinstance(many, list) or not all(isinstance(one, str) for one in many):
            wrong[f"/{key}"] = ["A list of texts."]
            continue
        clean = tuple(dict.fromkeys(one.strip() for one in many if one.strip()))
        if len(clean) > bounds.MASKS_WANTED or any(len(one) > bounds.MASK_POINTER for one in clean):
            wrong[f"/{key}"] = [f"At most {bounds.MASKS_WANTED}, of at most {bounds.MASK_POINTER} characters each."]
        elif key == "pointers" and any(not one.startswith("/") or one == "/" for one in clean):
            wrong[f"/{key}"] = ["A JSON pointer begins with a slash, like /params/arguments/city; * is any place."]
        found[key] = clean
    if wrong:
        raise Invalid("These cannot be masked.", wrong)
    return Wanted(found["names"], found["pointers"])
