"""Makes a recording of the present version of the format, to be kept: `python -m tests.recordings.make_v1 FILE [ERA]`.

Only for a new version. The files that are here are never made again: they are what older Parleys wrote.
"""

import sys
import tempfile
from pathlib import Path

import anyio

from app.recordings.recorders import Recorders
from tests.drive import ME
from tests.recordings.drive import body_of, keeping, lived


async def made(era: str) -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        async with keeping(Path(directory)) as registry:
            recorders, session = Recorders(registry), registry.open(ME)
            recorders.start(session)
            await lived(session, era=era)
            await session.disconnect()
            recording = await recorders.stop(session)
            return body_of(registry.store.recordings, recording.id)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(anyio.run(made, sys.argv[2] if len(sys.argv) > 2 else "legacy"))
