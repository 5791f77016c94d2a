"""The family's figures."""

import pytest

import gradestack
from gradestack import Grade, Outcome
from gradestack_plugins.deepfabric.aggregators import FIGURES as NAMES
from gradestack_plugins.deepfabric.aggregators import DeepFabricMetrics, band
from tests.core.outcomes import data

DATA = data(__file__, "aggregators.yaml")

F = ("f", {"a": "x"})


@pytest.fixture
def grades(df):
    """Grades of: right twice, selection only, parameters only, an error, an abstention, a missing
    reply, a skip.
    """

    def make():
        tool = df.tool("f", ["a"], a="string")
        tools = [tool, df.tool("g")]
        pairs = [
            (df.record(F, tools), df.reply(F)),
            (df.record(F, tools), df.reply(F)),
            (df.record(F, tools), df.reply(("f", {}))),
            (df.record(F, tools), df.reply(("g", {}))),
            (df.record(F, tools), {"kind": "exception", "message": "m"}),
            (df.record(None, tools), df.reply()),
        ]
        made = [df.grade(record, reply) for record, reply in pairs]
        return [*made, Grade(outcome=Outcome.MISSING), Grade(outcome=Outcome.SKIPPED)]

    return make


def test_no_samples(df):
    """Nothing to divide by: null with a reason; counts are 0, and there is no band."""
    metrics = df.fold(DeepFabricMetrics(), [Grade(outcome=Outcome.SKIPPED)])
    for name in NAMES:
        assert metrics[name] is None
        metric = metrics[f"{name}_interval"]
        assert "reason" in metric
    assert metrics["samples_evaluated"] == 0
    assert metrics["processing_errors"] == 0
    assert metrics["interpretation"]["band"] is None
    advice = metrics["interpretation"]["advice"]
    assert advice == []


BANDS = [
    (1.0, "excellent"),
    (0.9, "excellent"),
    (0.8999, "good"),
    (0.75, "good"),
    (0.7499, "fair"),
    (0.5, "fair"),
]


@pytest.mark.parametrize(
    ("score", "name"), [*BANDS, (0.4999, "poor"), (0.0, "poor"), (-1.0, "poor"), (7.0, "excellent")]
)
def test_bands_include_their_lower_bound(score, name):
    """90, 75 and 50 % each begin a band."""
    assert band(score)[1] == name


def test_interpretation_advises_on_low_rates_only(df, grades):
    """Each rate below 0.75 has its advice, a rate of 0.75 has none, and the band is that of the
    overall score.
    """
    rates = grades()
    low = df.fold(DeepFabricMetrics(), rates)["interpretation"]
    assert low["band"] == "fair"
    metrics = [entry["metric"] for entry in low["advice"]]
    assert metrics == DATA["interpretation_advises_on_low_rates_only"]
    fine = df.fold(DeepFabricMetrics(), [rates[0], rates[0], rates[0], rates[3]])["interpretation"]
    assert fine["band"] == "good"
    assert [entry["metric"] for entry in fine["advice"]] == []
    bands = fine["bands"]
    assert [(entry["band"], entry["from"]) for entry in bands] == [
        ("excellent", 0.9),
        ("good", 0.75),
        ("fair", 0.5),
        ("poor", 0.0),
    ]


def test_nothing_but_missing_replies_has_no_figures():
    """Nothing was judged, so nothing is 0: null with the reason, also of one model of several."""
    gone = Grade(outcome=Outcome.MISSING)
    right = Grade(score=1.0, counts={"tool_selection": 1, "processed": 1})
    figures = gradestack.figures({"deepfabric": {}}, [("a", 0, "m", gone), ("b", 0, "m", gone)])
    figures_found = figures["deepfabric"]
    assert {figures_found[name] for name in NAMES} == {None}
    assert figures_found["overall_score_interval"] == {"reason": "no sample has a reply to judge"}
    assert figures_found["interpretation"]["band"] is None
    advice = figures_found["interpretation"]["advice"]
    assert advice == []
    assert figures_found["samples_evaluated"] == 2
    assert figures_found["samples_missing"] == 2
    both = gradestack.figures(
        {"deepfabric": {}}, [("a", 0, "m", gone), ("b", 0, "n", right), ("c", 0, "n", gone)]
    )["deepfabric"]
    assert both["tool_selection_accuracy"] == 1 / 3
    tool_selection_accuracy = both["models"]["m"]["tool_selection_accuracy"]
    assert tool_selection_accuracy is None
    expected = both["models"]["m"]["tool_selection_accuracy_interval"]
    assert "reason" in expected
    assert both["models"]["n"]["tool_selection_accuracy"] == 0.5
