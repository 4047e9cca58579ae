"""What outlives the process, in one SQLite file of the user: the targets that people saved or used, and
what is kept beside them, requests and answer rules.

A light door: names only. Nothing of a database is imported until a file has to be read or written.
"""

from app.store.database import FILE
from app.store.kept import Kept, without_secrets
from app.store.requests import SavedRequest
from app.store.rules import SavedRule
from app.store.servers import Server
from app.store.targets import RECENT, Store

__all__ = ["FILE", "RECENT", "Kept", "SavedRequest", "SavedRule", "Server", "Store", "without_secrets"]
