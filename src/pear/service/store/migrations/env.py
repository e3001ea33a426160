"""Run the migrations on the connection that :mod:`pear.service.store.tables` hands over."""

from alembic import context

from pear.service.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
