"""The lender's side: references, languages, groups for fairness, sign-ins; replayed requests."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NEW_COLUMNS = {
    "language": sa.Column("language", sa.String(12), nullable=False, server_default="en"),
    "groups": sa.Column("groups", sa.JSON, nullable=False, server_default="{}"),
    "questions": sa.Column("questions", sa.Integer, nullable=False, server_default="0"),
}


def upgrade() -> None:
    with op.batch_alter_table("conversations") as table:
        table.add_column(sa.Column("reference", sa.String(200)))
        table.add_column(sa.Column("key_id", sa.String(32)))
        for column in NEW_COLUMNS.values():
            table.add_column(column)
    with op.batch_alter_table("conversations") as table:
        for name, column in NEW_COLUMNS.items():
            table.alter_column(name, existing_type=column.type, server_default=None)
    op.create_index("conversations_by_expiry", "conversations", ["expires_at"])
    op.create_table(
        "replies",
        sa.Column(
            "conversation_id",
            sa.String(32),
            sa.ForeignKey("conversations.id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("key_hash", sa.String(64), nullable=False),
        sa.Column("request_hash", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("conversation_id", "key_hash"),
    )
    op.create_table(
        "sign_ins",
        sa.Column("token_hash", sa.String(64), primary_key=True),
        sa.Column(
            "key_id", sa.String(32), sa.ForeignKey("keys.id", ondelete="CASCADE"), nullable=False
        ),
        sa.Column("expires_at", sa.Float, nullable=False),
    )
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("value", sa.String(200), nullable=False),
    )


def downgrade() -> None:
    for name in ("secrets", "sign_ins", "replies"):
        op.drop_table(name)
    op.drop_index("conversations_by_expiry", "conversations")
    with op.batch_alter_table("conversations") as table:
        for name in ("reference", "key_id", *NEW_COLUMNS):
            table.drop_column(name)
