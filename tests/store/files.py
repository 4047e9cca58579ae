"""Files of the first version, as it left them, and programs that open them in a process of their own."""

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from app.store import FILE

ROOT = Path(__file__).parents[2]
HANG = 60
FIRST = (ROOT / "tests" / "surface" / "old_parley_db.sql").read_text(encoding="utf-8")
"""Without the table of eras, which a later release of the first version added."""
ERAS = """
CREATE TABLE eras (command TEXT PRIMARY KEY, era TEXT NOT NULL, at REAL NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO eras VALUES ('local 1f', 'legacy', 1794881778.5);
"""
LATER = FIRST + ERAS
UNMARKED = FIRST.replace("PRAGMA user_version = 1;", "")
"""Killed between its first table and its mark."""
CLEAN = "PRAGMA application_id = 1348563564;"
WAL = "PRAGMA journal_mode = WAL;"
NAMES = {"My server", "Over HTTP", ""}


def old_file(directory: Path, script: str = LATER + CLEAN) -> Path:
    """A file that the first version wrote."""
    path = directory / FILE
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.executescript(script)
    return path


elsewhere: Callable[[Path], str] | None = None
"""The address of the PostgreSQL that stands for a folder, where the tests run over one."""


def asked(path: Path, query: str) -> list[tuple[Any, ...]]:
    """What a query finds, past everything of ours."""
    if elsewhere is not None:
        import psycopg

        with psycopg.connect(elsewhere(path.parent)) as connection:
            return connection.execute(query.encode()).fetchall()
    with contextlib.closing(sqlite3.connect(path)) as file:
        return file.execute(query).fetchall()


def on_disk(folder: Path) -> bytes:
    """All that is kept in a folder, as bytes."""
    if elsewhere is None:
        return b"".join(path.read_bytes() for path in folder.iterdir())
    names = asked(folder / FILE, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
    rows = [row for (name,) in names for row in asked(folder / FILE, f'SELECT * FROM "{name}"')]
    return repr(rows).encode()


def schema(path: Path) -> dict[str, Any]:
    """Each table with its columns and its kind, whatever the words it was made with."""
    kinds = {row[1]: row[2:] for row in asked(path, "PRAGMA table_list") if not row[1].startswith("sqlite_")}
    return {
        name: (kind, asked(path, f"PRAGMA table_xinfo({name})"), _indexes(path, name)) for name, kind in kinds.items()
    }


def _indexes(path: Path, table: str) -> list[tuple[Any, ...]]:
    return [
        (unique, origin, asked(path, f"PRAGMA index_info({name})"))
        for _, name, unique, origin, _ in asked(path, f"PRAGMA index_list({table})")
    ]


@contextlib.contextmanager
def program(code: str, *arguments: str, measured: bool = True) -> Iterator[subprocess.Popen[str]]:
    """Python code in a process of its own, which is gone at the end. To measure it imports things into it."""
    env = {name: value for name, value in os.environ.items() if measured or not name.startswith("COVERAGE_")}
    command = [sys.executable, "-c", code, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> str:
    """What a program printed, once it has ended well."""
    printed, said = process.communicate(timeout=HANG)
    assert process.returncode == 0, said
    return printed
