"""A database of each kind, and an audit that every test may use."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sql
from audit_place import Place
from postgres import VARIABLE
from workerless import working_here

from kdcal_core.audit import AuditContent, AuditSettings, Record, audit_settings, make_audit
from kdcal_core.review import Review, ReviewReader, Workspace, score, start_sample
from kdcal_core.tasks import Sets

KINDS = ("sqlite", "postgresql")
OTHER_SETTINGS = (
    *("KDCAL_DATABASE_URL", "KDCAL_BACKED_UP", "KDCAL_SIGNING_KEY"),
    *("KDCAL_WEBHOOK_URL", "KDCAL_WEBHOOK_SECRET", "KDCAL_WEBHOOK_PRIVATE"),
    *("KDCAL_SMTP_URL", "KDCAL_MAIL_FROM", "KDCAL_MAIL_TO"),
)


@pytest.fixture(scope="session", autouse=True)
def _no_other_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep audits of tests out of the user's own folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KDCAL_HOME", str(tmp_path_factory.mktemp("home")))
        for name in OTHER_SETTINGS:
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty place for a record, on both databases."""
    if request.param == "sqlite":
        yield Place(tmp_path / "audits", None)
        return
    server = os.environ.get(VARIABLE)
    if not server and os.environ.get("KDCAL_REQUIRE_POSTGRES"):
        pytest.fail(f"PostgreSQL is required here, and {VARIABLE} names no server")
    if not server:
        pytest.skip(f"no PostgreSQL: run python tests/audit/postgres.py pytest ({VARIABLE})")
    name = f"test_{secrets.token_hex(8)}"
    engine = sql.create_engine(
        server.replace("postgresql://", "postgresql+psycopg://"), isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:
        connection.execute(sql.text(f"CREATE DATABASE {name}"))
    yield Place(tmp_path / "audits", server.rpartition("/")[0] + f"/{name}")
    with engine.connect() as connection:
        connection.execute(sql.text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()


@pytest.fixture
def record(place: Place) -> Iterator[Record]:
    opened = place.open()
    yield opened
    opened.database.close()


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("reviews"))


@pytest.fixture(scope="session")
def review(workspace: Workspace) -> Review:
    """The sample of cancers, scored."""
    with working_here():
        return score(workspace, start_sample(workspace, "breast_cancer").id)


CODES = ("KC001", "KC002", "KC101")
"""Checks that take no time."""


@pytest.fixture(scope="session")
def content(workspace: Workspace, review: Review) -> AuditContent:
    """An audit of few checks."""
    settings = audit_settings(review)
    quick = AuditSettings(
        settings.title, settings.which, settings.event, limits=settings.limits, codes=CODES
    )
    return make_audit(Sets(ReviewReader(workspace, review.id, review=review)), settings=quick)
