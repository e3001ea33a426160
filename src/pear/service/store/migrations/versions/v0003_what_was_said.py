"""Conversations are what was said: the first record, every event and every plan are kept."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NEW_COLUMNS = {"said": "[]", "news": "{}", "notices": "[]"}
OLD = sa.table(
    "conversations",
    sa.column("id", sa.String),
    sa.column("limits", sa.JSON),
    sa.column("session", sa.JSON),
    sa.column("view", sa.JSON),
    sa.column("said", sa.JSON),
)


def upgrade() -> None:
    with op.batch_alter_table("conversations") as table:
        for name, empty in NEW_COLUMNS.items():
            table.add_column(sa.Column(name, sa.JSON, nullable=False, server_default=empty))
        table.add_column(sa.Column("standing", sa.JSON))
        table.add_column(sa.Column("standing_version", sa.Integer))
        table.add_column(sa.Column("request_hash", sa.String(64)))
    connection = op.get_bind()
    for row in connection.execute(sa.select(OLD)).mappings().all():
        connection.execute(sa.update(OLD).where(OLD.c.id == row["id"]).values(said=_said(row)))
    with op.batch_alter_table("conversations") as table:
        for name in NEW_COLUMNS:
            table.alter_column(name, existing_type=sa.JSON, server_default=None)
        for name in ("limits", "session", "view", "language"):
            table.drop_column(name)
    with op.batch_alter_table("keys") as table:
        table.add_column(sa.Column("request_hash", sa.String(64)))
    op.create_table(
        "plans",
        sa.Column(
            "conversation_id",
            sa.String(32),
            sa.ForeignKey("conversations.id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("plan", sa.JSON, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("conversation_id", "version"),
    )
    op.create_table(
        "served",
        sa.Column("problem_fingerprint", sa.String(64), nullable=False),
        sa.Column("model_fingerprint", sa.String(64), nullable=False),
        sa.Column("since", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("problem_fingerprint", "model_fingerprint"),
    )


def _said(row: sa.RowMapping) -> list[dict[str, object]]:
    """Limits, answers and the plan taken, as what was said."""
    said: list[dict[str, object]] = []
    limits = [{k: v for k, v in limit.items() if k != "id"} for limit in row["limits"] or ()]
    if limits:
        said.append({"kind": "exclude", "limits": limits})
    for answer in (row["session"] or {}).get("answers", ()):
        said.append({"kind": "answer", **answer})
    if (row["view"] or {}).get("accepted"):
        said.append({"kind": "accept", "moves": []})
    return said


def downgrade() -> None:
    op.drop_table("served")
    op.drop_table("plans")
    with op.batch_alter_table("keys") as table:
        table.drop_column("request_hash")
    with op.batch_alter_table("conversations") as table:
        table.add_column(sa.Column("language", sa.String(12), nullable=False, server_default="en"))
        table.add_column(sa.Column("limits", sa.JSON, nullable=False, server_default="[]"))
        table.add_column(sa.Column("session", sa.JSON))
        table.add_column(sa.Column("view", sa.JSON))
    connection = op.get_bind()
    for row in connection.execute(sa.select(OLD)).mappings().all():
        answers = [event for event in row["said"] if event["kind"] == "answer"]
        connection.execute(
            sa.update(OLD).where(OLD.c.id == row["id"]).values(session={"answers": answers})
        )
    with op.batch_alter_table("conversations") as table:
        for name in ("language", "limits"):
            table.alter_column(name, server_default=None)
        for name in ("said", "news", "notices", "standing", "standing_version", "request_hash"):
            table.drop_column(name)
