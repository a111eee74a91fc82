"""scikit-learn's own checks that every estimator of ours passes."""

from sklearn.utils import estimator_checks as checks

CHECKS = (
    checks.check_parameters_default_constructible,
    checks.check_get_params_invariance,
    checks.check_set_params,
    checks.check_no_attributes_set_in_init,
    checks.check_estimator_repr,
    checks.check_estimator_cloneable,
)
