"""What is stored, and under which names?

Times are seconds since 1970 (UTC). Links, keys and sign-ins are stored as hashes only.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
)

metadata = MetaData()

conversations = Table(
    "conversations",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("token_hash", String(64), nullable=False, unique=True),
    Column("reference", String(200)),
    Column("key_id", String(32)),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("stage", String(20), nullable=False),
    Column("version", Integer, nullable=False),
    Column("language", String(12), nullable=False),
    Column("problem_fingerprint", String(64), nullable=False),
    Column("model_fingerprint", String(64), nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("record", JSON, nullable=False),
    Column("groups", JSON, nullable=False),
    Column("limits", JSON, nullable=False),
    Column("questions", Integer, nullable=False),
    Column("session", JSON),
    Column("view", JSON),
    Column("outcome", JSON),
    Index("conversations_by_time", "created_at"),
    Index("conversations_by_expiry", "expires_at"),
)

events = Table(
    "events",
    metadata,
    Column(
        "conversation_id",
        String(32),
        ForeignKey("conversations.id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("number", Integer, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("content", JSON, nullable=False),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("conversation_id", "number"),
)

replies = Table(
    "replies",
    metadata,
    Column(
        "conversation_id",
        String(32),
        ForeignKey("conversations.id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("key_hash", String(64), nullable=False),
    Column("request_hash", String(64), nullable=False),
    Column("version", Integer, nullable=False),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("conversation_id", "key_hash"),
)

keys = Table(
    "keys",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("key_hash", String(64), nullable=False, unique=True),
    Column("created_at", Float, nullable=False),
    Column("revoked_at", Float),
)

sign_ins = Table(
    "sign_ins",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("key_id", String(32), ForeignKey("keys.id", ondelete="CASCADE"), nullable=False),
    Column("expires_at", Float, nullable=False),
)

secrets = Table(
    "secrets",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", String(200), nullable=False),
)
