"""What Alembic runs for each migration. The connection, and the transaction around everything, are the caller's."""

from __future__ import annotations

from alembic import context

from app.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
context.run_migrations()
