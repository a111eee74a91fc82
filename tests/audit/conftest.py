"""A database of each kind, and an audit that every test may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from audit_place import Place, new_place
from audits_made import quick_audit, scored_sample
from postgres import VARIABLE

from kdcal_core.audit import AuditContent, Record
from kdcal_core.review import Review, Workspace

KINDS = ("sqlite", "postgresql")
OTHER_SETTINGS = (
    *("KDCAL_DATABASE_URL", "KDCAL_UPGRADE", "KDCAL_SIGNING_KEY"),
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
    server = None
    if request.param == "postgresql":
        server = os.environ.get(VARIABLE)
        if not server and os.environ.get("KDCAL_REQUIRE_POSTGRES"):
            pytest.fail(f"PostgreSQL is required here, and {VARIABLE} names no server")
        if not server:
            pytest.skip(f"no PostgreSQL: run python tests/audit/postgres.py pytest ({VARIABLE})")
    with new_place(tmp_path / "audits", server) as place:
        yield place


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
    return scored_sample(workspace)


@pytest.fixture(scope="session")
def content(workspace: Workspace, review: Review) -> AuditContent:
    """An audit of few checks."""
    return quick_audit(workspace, review)
