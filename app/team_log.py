"""Parley's own log as lines of JSON, for whoever collects the logs of many. Imported only where a team sets it.

A line has no address and no payload; what looks like a secret in a sentence or in a trace is masked all the same.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from app.secrecy import masked
from app.server import escaped


class JsonLines(logging.Formatter):
    """One JSON object a record, on one line."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "from": record.name,
            "message": masked(escaped(record.getMessage())),
        }
        if record.exc_info:
            said["trace"] = masked(self.formatException(record.exc_info))
        return json.dumps(said, ensure_ascii=False)
