"""Agreement of raters and flakiness of tasks: worked examples, edges, and graders of one run."""

import json

import pytest

import gradestack
from gradestack import ConfigError, Grade, figures
from gradestack_plugins.statistics.coefficients import alpha
from gradestack_plugins.statistics.labels import read_labels
from tests.core.outcomes import data

DATA = data(__file__, "agreement.yaml")

RULES, JUDGE = "1111111101", "1111111011"


def rated(first, second):
    rated_rows = []
    pairs = zip(first, second, strict=True)
    for task, (a, b) in enumerate(pairs):
        rated_rows.append((f"t{task}", None, None, Grade(score=1.0, gold=a, label=b)))
    return rated_rows


def agreement_of(first, second, **options):
    return figures({"agreement": options}, rated(first, second))["agreement"]


def test_the_worked_example_of_rules_and_a_judge():
    """Agreement .80, with chance nearly as often: kappa and alpha below 0, AC1 not."""
    got = agreement_of(RULES, JUDGE)
    assert got["n"] == 10
    assert got["percent_agreement"] == 0.8
    interval = got["percent_agreement_interval"]
    assert [round(interval[end], 3) for end in ("low", "high")] == [0.378, 0.963]
    expected = [-0.111, -0.056, 0.756]
    assert [round(got[name], 3) for name in ("kappa", "alpha", "ac1")] == expected
    assert got["table"] == {"0": {"0": 0, "1": 1}, "1": {"0": 1, "1": 8}}


def test_alpha_of_several_raters_with_missing_values():
    """Krippendorff's own example of four observers and twelve units, by nominal, ordinal and
    interval distance.
    """
    observers = (
        "1 2 3 3 2 1 4 1 2 . . .",
        "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .",
        "1 2 3 3 2 4 4 1 2 5 1 .",
    )
    units = {}
    for values in zip(*(observer.split() for observer in observers), strict=True):
        values_held = tuple(sorted(float(value) for value in values if value != "."))
        units[values_held] = units.get(values_held, 0) + 1
    assert [round(alpha(units, level), 3) for level in ("nominal", "ordinal", "interval")] == [
        0.743,
        0.815,
        0.849,
    ]


def graded(tmp_path, labels=None, **metrics):
    samples = []
    for task in range(12):
        if task % 3:
            predicted = "x"
        else:
            predicted = "xx" if task % 2 else "y"
        samples.append(
            {
                "id": f"t{task}",
                "expected": "x",
                "predicted": predicted,
            }
        )
    graders = {"rules": {"kind": "exact_match"}, "judge": {"kind": "contains"}}
    output = tmp_path / "out"
    return gradestack.grade(samples, graders=graders, metrics=metrics, output=output)


def test_graders_of_one_run_are_compared_with_each_other(tmp_path):
    """Pass or fail by each one's own verdict.

    Against rules a judge has false passes and false fails.
    """
    report = graded(tmp_path, agreement={"of": "rules", "raters": ["judge"]})
    rules = report.aggregates["rules"]
    got = rules["agreement"]
    assert got["table"] == {"fail": {"fail": 2, "pass": 2}, "pass": {"fail": 0, "pass": 8}}
    assert got["false_pass_rate"] == 0.5
    assert got["false_fail_rate"] == 0.0
    clusters = got["false_pass_rate_interval"]["clusters"]
    assert clusters == 4
    assert got["raters"] == {"judge": 12, "rules": 12}
    assert (
        "Agreement" in (report.path / "report.md").read_text(encoding="utf-8")
        if report.pages
        else True
    )


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_labels_of_people_join_by_id(tmp_path, suffix):
    people = {}
    for task in range(6):
        people[f"t{task}"] = "pass" if task % 3 else "fail"
    file = tmp_path / f"people.{suffix}"
    if suffix == "jsonl":
        lines = [json.dumps({"id": key, "label": label}) for key, label in people.items()]
    else:
        lines = ["id,label", *(f"{key},{label}" for key, label in people.items())]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    agreement = {"of": "judge", "labels": str(file)}
    report = graded(tmp_path, agreement=agreement)
    judge = report.aggregates["judge"]
    got = judge["agreement"]
    assert got["n"] == 6
    fail = got["table"]["fail"]
    assert fail["pass"] == 1
    assert got["false_pass_rate"] == 0.5


def test_flaky_tasks_and_what_runs_are_worth():
    """By hand: passes 0, 1, 2 and 4 of four runs."""
    rows = []
    for task, passes in enumerate((0, 1, 2, 4)):
        for run in range(4):
            rows.append((f"t{task}", run, None, float(run < passes)))
    got = figures({"flakiness": {}}, rows)["flakiness"]
    within_variance = got["within_variance"]
    assert within_variance == pytest.approx((3 / 12 + 4 / 12) / 4)
    mean = 7 / 16
    total = sum(4 * (passes / 4 - 7 / 16) ** 2 for passes in (0, 1, 2, 4))
    between = total / 3
    within = (3 / 4 + 1) / 12
    assert mean < 1
    icc = (between - within) / (between + 3 * within)
    assert got["icc"] == pytest.approx(icc)
    design_effect = got["design_effect"]
    assert design_effect == pytest.approx(1 + 3 * icc)
    worth = got["worth"]
    assert worth == pytest.approx(16 / (1 + 3 * icc))


def test_a_judge_asked_again_has_a_noise_floor(tmp_path):
    """The share of verdicts that stay the same; the second asking is no rater of its own."""
    samples = []
    for task in range(12):
        predicted = "x" if task % 3 else "xx"
        run = task % 2
        samples.append(
            {
                "id": f"t{task // 2}",
                "run": run,
                "expected": "x",
                "predicted": predicted,
            }
        )
    graders = {
        "judge": {"kind": "contains"},
        "rules": {"kind": "exact_match"},
        "twice": {"kind": "exact_match"},
    }
    options = {"of": "judge", "raters": ["rules", "twice"]}
    agreement = options | {"again": ["twice"]}
    with gradestack.grade(samples, graders=graders, metrics={"agreement": agreement}) as report:
        judge = report.aggregates["judge"]
        got = judge["agreement"]
    assert got["noise_floor"] == 8 / 12
    assert got["noise_floor_interval"]["n"] == 12
    clusters = got["noise_floor_interval"]["clusters"]
    assert clusters == 6
    assert got["raters"] == {"judge": 12, "rules": 12}
    assert got["percent_agreement"] == 8 / 12
    assert got["n"] == 12
    with gradestack.grade(samples, graders=graders, metrics={"agreement": options}) as report:
        plain = report.aggregates["judge"]["agreement"]
    assert "noise_floor" not in plain
    pairs = list(plain["pairs"])
    assert pairs == ["judge, rules", "judge, twice", "rules, twice"]
    unlabelled = [{"id": "t", "predicted": "x"}]
    metrics = {"agreement": options | {"again": ["twice"]}}
    with gradestack.grade(unlabelled, graders=graders, metrics=metrics) as report:
        got = report.aggregates["judge"]["agreement"]
    assert got["noise_floor"] is None
    assert got["noise_floor_interval"] == {"reason": "nothing judged again"}
    with pytest.raises(ConfigError, match="again names graders that are not in raters: b"):
        figures({"agreement": {"again": ["b"]}}, [])


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        *data(__file__, "labels.yaml")["refused"],
        ("a.jsonl", b"\xff", "a.jsonl:1: not UTF-8"),
    ],
)
def test_labels_of_another_form_are_refused_at_their_line(tmp_path, name, content, text):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError) as caught:
        read_labels(path)
    assert str(caught.value).startswith(text)


def test_a_cell_over_several_lines_and_an_empty_label_are_no_mistakes(tmp_path):
    """A row without a label is one nobody has labelled yet.

    Signs that end lines elsewhere end none here.
    """
    path = tmp_path / "a.csv"
    path.write_text('id, note, label\nt0,"a\nb", pass\n\nt1,,\n7,c,fa\u2028il\n', encoding="utf-8")
    labels = read_labels(path)
    assert labels == {"t0": "pass", "7": "fa\u2028il"}


@pytest.mark.parametrize(("line", "text"), DATA["labels_that_can_agree_with_nothing_are_warned_of"])
def test_labels_that_can_agree_with_nothing_are_warned_of(tmp_path, line, text):
    """Ids of other tasks, or other words: a figure of 0 or none would look like a finding."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(line), encoding="utf-8")
    agreement = {"of": "judge", "labels": str(path)}
    report = graded(tmp_path, agreement=agreement)
    warnings = report.summary["warnings"]
    expected = [f"grader 'judge': {text}"]
    assert warnings == expected
