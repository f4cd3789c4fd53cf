"""Alembic's entry: runs the migrations on the connection, and in the transaction, that ledger.store.migration hands over."""

from alembic import context

from ledger.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
