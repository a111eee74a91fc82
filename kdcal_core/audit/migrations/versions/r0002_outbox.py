"""Messages that wait to be sent."""

import sqlalchemy as sql
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "kdcal_outbox",
        sql.Column("id", sql.String(40), nullable=False),
        sql.Column("project", sql.String(32), nullable=False),
        sql.Column("number", sql.Integer, nullable=False),
        sql.Column("channel", sql.String(16), nullable=False),
        sql.Column("notice", sql.Text, nullable=False),
        sql.Column("state", sql.String(16), nullable=False),
        sql.Column("tries", sql.Integer, nullable=False),
        sql.Column("due", sql.BigInteger, nullable=False),
        sql.Column("said", sql.Text, nullable=False),
        sql.PrimaryKeyConstraint("id", name="pk_kdcal_outbox"),
        sql.ForeignKeyConstraint(
            ["project", "number"],
            ["kdcal_entry.project", "kdcal_entry.number"],
            name="fk_kdcal_outbox_project",
        ),
    )
