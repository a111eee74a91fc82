"""Results of regression reviews, computed once for each content digest and setting.

As in `app.widgets.results`: rows are shared and must not be changed, and are never hashed.
"""

from __future__ import annotations

import streamlit as st

from kdcal_core.distributions import RegressionSet
from kdcal_core.review import Review, Which, Workspace, load_regression_set


def regression_set(workspace: Workspace, review: Review, which: Which) -> RegressionSet:
    """The scored rows of a regression's set, kept in memory for the last few sets.

    Raises
    ------
    InputError
        Where their files are gone or damaged, or the review is of a classification.
    """
    return _regression_set(review.id, which, review.sets[which].digest, workspace)


@st.cache_resource(max_entries=4, show_spinner="Reading the scored rows")
def _regression_set(
    review_id: str, which: Which, digest: str, _workspace: Workspace
) -> RegressionSet:
    del digest  # only the cache's key: rows that were scored anew are read anew
    return load_regression_set(_workspace, review_id, which)
