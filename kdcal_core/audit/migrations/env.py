"""How the schema of the database is brought up to date: `Database` hands over the connection."""

from alembic import context

from kdcal_core.audit.database import VERSIONS, schema

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=schema,
    version_table=VERSIONS,
    render_as_batch=True,  # SQLite changes a table by copying it
    transaction_per_migration=False,
)
context.run_migrations()
