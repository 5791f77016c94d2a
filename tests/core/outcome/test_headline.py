"""The figures of a headline, found among what aggregators return, from ``headline.yaml``."""

from types import SimpleNamespace

import pytest

from gradestack.outcome.summary import headline_figures
from gradestack.suites.spec import Figure, Headline
from tests.core.outcomes import data

DATA = data(__file__, "headline.yaml")


@pytest.mark.parametrize(("metric", "name", "entry"), DATA["figures"])
def test_a_figure_is_found_or_it_is_said_why_not(metric, name, entry):
    suite = SimpleNamespace(headline=Headline(figures=(Figure(label="It", grader="g", metric=metric, name=name),)))
    (found,) = headline_figures(suite, {"g": DATA["metrics"]}, {"g": {"avg_score_attempted": 0.25}})
    assert found == {"label": "It", "figure": ".".join(filter(None, ("g", metric, name))), **entry}
