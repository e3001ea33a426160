"""Who may do what: roles, owners and ends of keys, a log nobody changes, PINs, corrections."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

KEPT = "the log is only ever added to"


def upgrade() -> None:
    with op.batch_alter_table("keys") as table:
        # Keys made before could do everything; none of them may make or revoke keys unasked.
        table.add_column(
            sa.Column("roles", sa.String(60), nullable=False, server_default="create,read")
        )
        table.add_column(sa.Column("owner", sa.String(200), nullable=False, server_default=""))
        table.add_column(sa.Column("expires_at", sa.Float))
        table.drop_column("request_hash")
    with op.batch_alter_table("keys") as table:
        table.alter_column("roles", existing_type=sa.String(60), server_default=None)
        table.alter_column("owner", existing_type=sa.String(200), server_default=None)
    with op.batch_alter_table("conversations") as table:
        table.add_column(sa.Column("asked", sa.JSON, nullable=False, server_default="{}"))
        table.add_column(sa.Column("pin_hash", sa.String(200)))
        table.add_column(sa.Column("pin_tries", sa.Integer, nullable=False, server_default="0"))
        table.add_column(sa.Column("pin_until", sa.Float, nullable=False, server_default="0"))
    with op.batch_alter_table("conversations") as table:
        for name, kind in (("asked", sa.JSON), ("pin_tries", sa.Integer), ("pin_until", sa.Float)):
            table.alter_column(name, existing_type=kind, server_default=None)
    op.create_table(
        "audit",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("key_id", sa.String(32), nullable=False),
        sa.Column("key_name", sa.String(200), nullable=False),
        sa.Column("address", sa.String(100), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("target", sa.String(200), nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        for what in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER audit_no_{what.lower()} BEFORE {what} ON audit "
                f"BEGIN SELECT RAISE(ABORT, '{KEPT}'); END"
            )
    else:
        op.execute(
            "CREATE OR REPLACE FUNCTION audit_is_kept() RETURNS trigger AS "
            f"$$ BEGIN RAISE EXCEPTION '{KEPT}'; END $$ LANGUAGE plpgsql"
        )
        op.execute(
            "CREATE TRIGGER audit_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON audit "
            "FOR EACH STATEMENT EXECUTE FUNCTION audit_is_kept()"
        )


def downgrade() -> None:
    op.drop_table("audit")
    with op.batch_alter_table("conversations") as table:
        for name in ("asked", "pin_hash", "pin_tries", "pin_until"):
            table.drop_column(name)
    with op.batch_alter_table("keys") as table:
        for name in ("roles", "owner", "expires_at"):
            table.drop_column(name)
        table.add_column(sa.Column("request_hash", sa.String(64)))
