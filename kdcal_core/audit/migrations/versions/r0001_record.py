"""Projects, and the signed lines of their records."""

import sqlalchemy as sql
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "kdcal_project",
        sql.Column("id", sql.String(32), nullable=False),
        sql.PrimaryKeyConstraint("id", name="pk_kdcal_project"),
    )
    op.create_table(
        "kdcal_entry",
        sql.Column("project", sql.String(32), nullable=False),
        sql.Column("number", sql.Integer, autoincrement=False, nullable=False),
        sql.Column("payload", sql.Text, nullable=False),
        sql.Column("key", sql.String(64), nullable=False),
        sql.Column("signature", sql.String(128), nullable=False),
        sql.PrimaryKeyConstraint("project", "number", name="pk_kdcal_entry"),
        sql.ForeignKeyConstraint(["project"], ["kdcal_project.id"], name="fk_kdcal_entry_project"),
    )
