"""Files with secrets of Parley's own: read only where nobody but this user can have read or laid them.

Loaded before the port is open, so it imports little.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


class Unfit(Exception):
    """The file is ours, and what it holds must not be used. Says why, as the end of a sentence."""


def read(path: Path, most: int) -> bytes:
    """At most so many bytes of a plain file of this user that nobody else may read. Raises OSError for one that is not
    ours, Unfit for one that others can have read."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(file, "rb") as opened:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no file")
        if status.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to somebody else")
        if status.st_mode & 0o077:
            raise Unfit("could be read by other users")
        return opened.read(most)
