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
    Column("request_hash", String(64)),
    Column("reference", String(200)),
    Column("key_id", String(32)),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("stage", String(20), nullable=False),
    Column("version", Integer, nullable=False),
    Column("problem_fingerprint", String(64), nullable=False),
    Column("model_fingerprint", String(64), nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("record", JSON, nullable=False),
    Column("groups", JSON, nullable=False),
    Column("said", JSON, nullable=False),
    Column("questions", Integer, nullable=False),
    Column("news", JSON, nullable=False),
    Column("notices", JSON, nullable=False),
    Column("standing", JSON),
    Column("standing_version", Integer),
    Column("outcome", JSON),
    Column("asked", JSON, nullable=False),
    Column("pin_hash", String(200)),
    Column("pin_tries", Integer, nullable=False),
    Column("pin_until", Float, nullable=False),
    Index("conversations_by_time", "created_at"),
    Index("conversations_by_expiry", "expires_at"),
)
"""``record`` is the one the decision was made with; it is never written again. ``said`` is what
stands of everything said, ``standing`` what the person sees of ``standing_version``, ``asked`` the
corrections the lender has yet to confirm."""

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
"""Everything that happened, in order; nothing is ever changed or taken out."""

plans = Table(
    "plans",
    metadata,
    Column(
        "conversation_id",
        String(32),
        ForeignKey("conversations.id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("version", Integer, nullable=False),
    Column("plan", JSON, nullable=False),
    Column("at", Float, nullable=False),
    PrimaryKeyConstraint("conversation_id", "version"),
)
"""Every plan given, with the version of the conversation it was given at."""

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

served = Table(
    "served",
    metadata,
    Column("problem_fingerprint", String(64), nullable=False),
    Column("model_fingerprint", String(64), nullable=False),
    Column("since", Float, nullable=False),
    PrimaryKeyConstraint("problem_fingerprint", "model_fingerprint"),
)
"""Which problem and model services were last started with; the latest serves everyone."""

keys = Table(
    "keys",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("key_hash", String(64), nullable=False, unique=True),
    Column("created_at", Float, nullable=False),
    Column("revoked_at", Float),
    Column("roles", String(60), nullable=False),
    Column("owner", String(200), nullable=False),
    Column("expires_at", Float),
)

audit = Table(
    "audit",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("key_id", String(32), nullable=False),
    Column("key_name", String(200), nullable=False),
    Column("address", String(100), nullable=False),
    Column("action", String(40), nullable=False),
    Column("target", String(200), nullable=False),
)
"""What was done with which key, from which address; triggers keep it from being changed."""

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
