"""What outlives the process, in one SQLite file of the user: the targets that people saved or used.

A light door: names only. Nothing of a database is imported until a file has to be read or written.
"""

from app.store.database import FILE
from app.store.targets import RECENT, Kept, Store, without_secrets

__all__ = ["FILE", "RECENT", "Kept", "Store", "without_secrets"]
