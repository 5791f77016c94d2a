"""Options of versions that mean nothing."""

import pytest

from gradestack_plugins.deepfabric.grader import DeepFabric


@pytest.mark.parametrize(
    "options", [{"upstream_version": "4.5"}, {"upstream_version": 4}, {"max_turns": 0}]
)
def test_options_that_mean_nothing_are_refused(options):
    """Versions nobody knows and no turns at all are refused with the option's name."""
    with pytest.raises(ValueError, match=next(iter(options))):
        DeepFabric(**options)
