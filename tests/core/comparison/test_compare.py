"""Runs compared task by task.

What differs, what changed, what cannot be compared, and what is said of it.
"""

import json

import pytest

import gradestack
from gradestack import ConfigError, DataError, compare
from tests.core.outcomes import data, write_records

DATA = data(__file__, "compare.yaml")

BEFORE = {str(task): [1, 0] for task in range(20)}
AFTER = {str(task): [1, 1] if task < 15 else [1, 0] for task in range(20)}


def test_a_run_that_is_better_is_said_to_be(made):
    comparison = compare(made("a", BEFORE), made("b", AFTER))
    metrics = comparison.data["metrics"]
    metric = metrics["g"]
    assert metric["a"] == 0.5
    assert metric["b"] == 0.875
    assert metric["difference"] == 0.375
    assert metric["better"] == 15
    assert metric["worse"] == 0
    assert metric["same"] == 5
    assert metric["tasks"] == 20
    assert metric["p_holm"] == metric["p"] < 0.001
    ends = metric["interval"]["ends"]
    assert metric["ci95"] == ends
    assert comparison.sentence.startswith(
        "Exact match: b is better than a by 37.5 points (95% interval: "
    )
    flips = comparison.data["flips"]
    assert flips["fixed"] == 15
    broken = comparison.data["flips"]["broken"]
    assert broken == 0
    tasks = comparison.data["flips"]["tasks"]
    first_task = tasks[0]
    assert first_task == {"task": "0", "a": "1/2", "b": "2/2"}


def test_tasks_that_all_differ_by_the_same_have_a_p_and_no_interval(made):
    """Twenty tasks better by a half are no chance; one alone has no test."""
    comparison = compare(made("a", BEFORE), made("b", {task: [1, 1] for task in BEFORE}))
    metrics = comparison.data["metrics"]
    metric = metrics["g"]
    expected = 1 / 2**20
    assert metric["p"] == expected
    assert metric["p_exact"] == 2 / 2**20
    assert metric["ci95"] is None
    ends = metric["interval"]["ends"]
    assert ends is None
    assert (
        "is better than a by 50.0 points (the same difference in every task, p 9.5e-07; 20 tasks"
        in comparison.sentence
    )
    one = compare(made("e", {"1": [0]}), made("f", {"1": [1]}))
    assert one.sentence == (
        "Exact match: f +100.0 points against e, without a test: one task (1 task, 1 trial each)"
    )


def test_a_figure_that_is_the_same_in_every_task_has_no_interval(made):
    """Beside one that differs: the runs are not identical."""
    graders = {"g": {"kind": "exact_match"}, "n": lambda sample: sample.recorded["n"]}
    runs = []
    for rise in (0.0, 0.1):
        samples = []
        for t in range(6):
            recorded = {"n": t * rise}
            samples.append({"id": str(t), "expected": "x", "predicted": "x", "recorded": recorded})
        runs.append(gradestack.grade(samples, graders))
    comparison = compare(*runs)
    row = comparison.data["outcome"]
    assert row["verdict"] == "same"
    assert row["p"] == 1.0
    assert row["interval"] == {"confidence": 0.95, "ends": None, "reason": "same in every task"}
    assert comparison.sentence.startswith(
        "Exact match: samples 2 and samples 1 are the same in every"
    )


def test_the_outcome_is_compared_by_task_and_stands_first(made, command):
    a = made("a", BEFORE)
    b = made("b", {task: [1, 1] if task < 15 else [0, 0] for task in range(20)})
    comparison = compare(a, b)
    rate = comparison.data["outcome"]
    assert rate["grader"] == "g"
    assert rate["a"] == 0.5
    assert rate["b"] == 0.75
    assert rate["difference"] == 0.25
    assert rate["better"] == 15
    assert rate["worse"] == 5
    assert rate["same"] == 0
    assert rate["tasks"] == 20
    assert rate["p_holm"] == rate["p"] < 0.05
    assert rate["verdict"] == "better"
    lines = command("compare", a, b).out.splitlines()
    first = next(line for line in lines if " points (" in line and line.startswith("  "))
    assert first.startswith("  Exact match (g)  50.0% -> 75.0%  +25.0 points (")
    assert "better" in first


def test_models_of_one_run_are_compared_with_the_first_or_a_named_one(made):
    best = {}
    for task in BEFORE:
        number = int(task != "0")
        best[task] = [1, number]
    run = made("r", None, models={"m": BEFORE, "n": AFTER, "o": best})
    comparison = compare(run)
    models = [side.model for side in comparison.sides]
    assert models == ["m", "n", "o"]
    groups = comparison.data["groups"]
    assert [(group["name"].rpartition("::")[2], group["ranks"]) for group in groups] == [
        ("o", [1, 2]),
        ("n", [1, 2]),
        ("m", [3, 3]),
    ]
    pairs = comparison.data["pairs"]
    assert len(pairs) == 3
    sides = compare(run, baseline="n").sides
    assert [side.model for side in sides] == ["n", "m", "o"]
    expected_text = f"{run}::m"
    assert [side.model for side in compare(expected_text, f"{run}::o").sides] == ["m", "o"]


def test_more_models_than_can_be_paired_are_refused(made):
    models = {f"m{number}": {"0": [1]} for number in range(101)}
    run = made("r", None, models=models)
    with pytest.raises(
        ConfigError, match="101 models are 5,050 pairs; at most 100 are compared at once"
    ):
        compare(run)


def test_several_models_on_both_sides_pair_by_name(made):
    """A model that only one run has takes no part."""
    a = made("a", None, models={"m": BEFORE, "n": BEFORE})
    b = made("b", None, models={"n": AFTER, "m": BEFORE, "o": BEFORE})
    comparison = compare(a, b)
    pairs = comparison.data["pairs"]
    assert [(pair["a"].rpartition("::")[2], pair["b"].rpartition("::")[2]) for pair in pairs] == [
        ("m", "m"),
        ("n", "n"),
    ]
    differences = [pair["metrics"]["g"]["difference"] for pair in pairs]
    assert differences == [0.0, 0.375]


@pytest.mark.parametrize(("change", "message"), DATA["what_was_graded_otherwise_is_refused"])
def test_what_was_graded_otherwise_is_refused(made, change, message):
    a = made("a", BEFORE)
    b = made("b", AFTER, **change)
    with pytest.raises(DataError) as caught:
        compare(a, b)
    assert caught.value.exit_code == 3
    assert any(message in problem for problem in caught.value.problems)
    comparison = compare(a, b, force=True)
    problems = comparison.data["incomparable"]
    assert any(message in problem for problem in problems)


def test_tasks_only_one_side_has_are_listed(made):
    a = made("a", {"1": [1], "2": [0], "3": [1]})
    comparison = compare(a, made("b", {"2": [1], "3": [1], "4": [0]}))
    metrics = comparison.data["metrics"]
    metric = metrics["g"]
    assert metric["tasks"] == 2
    assert metric["only_a"] == ["1"]
    assert metric["only_b"] == ["4"]
    with pytest.raises(DataError, match="cannot be compared") as caught:
        compare(a, made("c", {"8": [1], "9": [1]}))
    assert caught.value.problems == (
        "a and c have no task in common; try --match input or ordinal",
    )
    gate = {"metric_key": "g", "baseline": str(a), "max_flips": 0}
    with pytest.raises(DataError, match="cannot be compared with its baseline") as caught:
        made("d", {"8": [1], "9": [1]}, gate=gate)
    expected_text = f"{a} and this run have no task in common"
    assert caught.value.problems == (expected_text,)


def test_tasks_are_matched_by_input_or_place_where_ids_say_nothing(made):
    a = made("a", {"1": [1], "2": [0]})
    for match in ("input", "ordinal"):
        comparison = compare(a, made(match, {"1": [1], "2": [1]}), match=match)
        metrics = comparison.data["metrics"]
        tasks = metrics["g"]["tasks"]
        assert tasks == 2
    bare = gradestack.grade(
        [{"id": "1", "expected": "x", "predicted": "x"}], graders={"g": {"kind": "exact_match"}}
    )
    with pytest.raises(DataError, match="no recorded input to match by"):
        compare(a, bare, match="input")


def test_a_failed_trial_counts_as_nothing_right_unless_it_is_skipped(made, tmp_path):
    """So that crashing more cannot win."""
    a = made("a", {"1": [1], "2": [1], "3": [0]})
    samples = DATA["a_failed_trial_counts_as_nothing_right_unless_it_is_skipped"]
    output = tmp_path / "b"
    b = gradestack.grade(samples, graders={"g": {"kind": "exact_match"}}, output=output)
    zero, skip = (compare(a, b, failed=failed).data["metrics"]["g"] for failed in ("zero", "skip"))
    assert zero["tasks"] == 3
    assert zero["worse"] == 1
    assert skip["tasks"] == 2
    assert skip["worse"] == 0
    assert skip["only_a"] == ["2"]


def test_what_is_said_of_failed_trials_is_true_of_the_figures_it_names(tmp_path, command):
    """Means count the worst score; a figure of another kind is as it is defined."""
    call = [{"name": "f", "arguments": {}}]
    samples = []
    for task in range(6):
        samples.append({"id": str(task), "predicted": call, "expected": call})
    broken = [{**sample, "error": "timeout"} for sample in samples]
    files = []
    for name, content in (("a", samples), ("b", [*samples[:3], *broken[3:]])):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in content))
        files.append(str(path))
    out_folder = tmp_path / "out"
    result = command("compare", *files, "-o", str(out_folder))
    line = (
        "Failed and missing trials count with the worst score in All calls right; "
        "as each is defined in F1 over calls, Precision, Recall, F1 over arguments."
    )
    assert line in result.out
    comparison_path = tmp_path / "out/comparison.md"
    assert line in comparison_path.read_text()
    text = (tmp_path / "out/comparison.html").read_text()
    assert line in text
    data = compare(*files).data
    assert data["failed_count"] == line
    metrics = data["metrics"].values()
    for row in [data["outcome"], *metrics]:
        assert row["failed"] == "worst"
        assert row["b"] == 0.5
    for row in data["figures"].values():
        assert row["failed"] == "as defined"
    skipped = compare(*files, failed="skip").data
    assert skipped["failed_count"] == "Failed and missing trials are left out."
    comparison = compare(files[0], files[0])
    failed_count = comparison.data["failed_count"]
    assert failed_count == ""


def test_a_score_without_bounds_has_no_worst_one():
    runs = []
    for errors in (set(), {"1", "2"}):
        samples = []
        for task in range(6):
            input_tokens = 10 + task
            sample = {"id": str(task), "usage": {"input_tokens": input_tokens}}
            samples.append({**sample, "error": "x"} if str(task) in errors else sample)
        runs.append(gradestack.grade(samples, {"cost": {"kind": "usage", "score": "input_tokens"}}))
    comparison = compare(*runs)
    metrics = comparison.data["metrics"]
    row = metrics["cost"]
    assert row["failed"] == "left out"
    assert row["tasks"] == 4


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("location", [0, 1])
def test_a_side_without_a_score_cannot_be_compared(location, force):
    graded = []
    for task in range(3):
        graded.append({"id": str(task), "predicted": "x", "expected": "x"})
    skipped = [{"id": str(task), "predicted": "x"} for task in range(3)]
    sides = [graded, graded]
    sides[location] = skipped
    runs = [gradestack.grade(samples, {"g": "exact_match"}) for samples in sides]
    words = f"samples {location + 1} has no score to compare: nothing was graded"
    with pytest.raises(DataError, match=words):
        compare(*runs, force=force)


def test_sides_that_share_no_task_with_a_score_cannot_be_compared():
    samples = []
    for task in range(4):
        samples.append({"id": str(task), "predicted": "x"})
    runs = []
    for first in (0, 2):
        graded = []
        for sample in samples[first : first + 2]:
            graded.append({**sample, "expected": "x"})
        others = [
            sample
            for sample in samples
            if sample["id"] not in {graded_sample["id"] for graded_sample in graded}
        ]
        runs.append(gradestack.grade([*graded, *others], {"g": "exact_match"}))
    with pytest.raises(DataError, match="no task has a score in both samples 1 and samples 2"):
        compare(*runs, force=True)


def test_differences_within_a_facet_are_listed_worst_first(made):
    worse = {}
    for task in BEFORE:
        worse[task] = [1, 0] if int(task) % 2 else [0, 0]
    comparison = compare(made("a", BEFORE), made("b", worse), by="domain")
    groups = comparison.data["by"]["groups"]
    expected = [
        ("even", -0.5, 10),
        ("odd", 0.0, 10),
    ]
    assert [(group["group"], group["difference"], group["tasks"]) for group in groups] == expected


@pytest.mark.parametrize(
    ("options", "message"), DATA["options_that_cannot_be_honoured_are_refused"]
)
def test_options_that_cannot_be_honoured_are_refused(made, options, message):
    with pytest.raises(ConfigError, match=message):
        compare(made("a", BEFORE), made("b", AFTER), **options)


def test_there_must_be_something_to_compare(made, tmp_path):
    with pytest.raises(ConfigError, match="there is nothing to compare"):
        compare(made("a", BEFORE))
    with pytest.raises(ConfigError, match="it has no model 'x'"):
        compare(f"{made('b', BEFORE)}::x", made("c", BEFORE))
    with pytest.raises(DataError):
        compare(made("d", BEFORE), tmp_path / "nowhere")


def test_too_few_tasks_are_said_to_be_too_few(made):
    """Scores in [0, 1] never differ by more than 1, and neither does an interval of a facet's
    value.
    """
    comparison = compare(
        made("a", {"1": [0], "2": [1], "4": [0]}),
        made("b", {"1": [1], "2": [1], "4": [1]}),
        by="domain",
    )
    metrics = comparison.data["metrics"]
    mde80 = metrics["g"]["mde80"]
    assert mde80 is None
    assert comparison.sentence.endswith(
        "3 tasks, 1 trial each); so few tasks cannot show any difference"
    )
    groups = comparison.data["by"]["groups"]
    even = next(group for group in groups if group["group"] == "even")
    expected = [-1.0, 1.0]
    assert even["ends"] == expected


def test_of_several_models_the_pairs_of_the_headline_are_adjusted_together(made):
    """Holm over all pairs: what two of them alone would show counts for less among three."""
    names = {"a": BEFORE, "b": AFTER, "c": BEFORE}
    comparison = compare(*(made(name, scores) for name, scores in names.items())).data
    ps = []
    for pair in comparison["pairs"]:
        ps.append(pair["metrics"]["g"]["p"])
    pairs = comparison["pairs"]
    adjusted = [pair["metrics"]["g"]["p_holm"] for pair in pairs]
    assert min(adjusted) == pytest.approx(3 * min(ps))
    p_holm = comparison["metrics"]["g"]["p_holm"]
    assert p_holm == adjusted[0]


def test_a_facet_that_no_task_has_is_refused(made):
    with pytest.raises(
        ConfigError, match=r"no task of a has a facet 'domian' .did you mean 'domain'"
    ):
        compare(made("a", BEFORE), made("b", AFTER), by="domian")


@pytest.mark.slow
def test_ids_that_were_all_made_up_match_nothing(tmp_path):
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answers = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "fine"},
    ]
    messages = [{"role": "user", "content": "hello"}, *answers]
    line = {"messages": messages}
    runs = []
    for name in "ab":
        path = tmp_path / f"{name}.jsonl"
        records = [line for _ in range(2)]
        write_records(path, records)
        output = tmp_path / name
        report = gradestack.grade_files(path, graders=["tool_success"], output=output)
        runs.append(report)
    with pytest.raises(DataError, match="the records have no ids") as caught:
        compare(*runs)
    assert caught.value.problems == ("use --match input or ordinal",)
    gate = []
    a_folder = tmp_path / "a"
    for key, value in (("baseline", a_folder), ("max_flips", 0)):
        gate.append(f"gate.{key}={value}")
    with pytest.raises(DataError, match="cannot be compared with its baseline") as caught:
        gradestack.grade_files(tmp_path / "b.jsonl", graders=["tool_success"], overrides=gate)
    assert any("the records have no ids" in problem for problem in caught.value.problems)
    problems = caught.value.problems
    expected = "".join(map(str, (*caught.value.args, *problems)))
    assert "--match" not in expected


@pytest.mark.slow
def test_what_changed_has_a_test(tmp_path):
    """Twelve of twenty runs have a wrong argument afterwards.

    The tool that is right on both sides is not named.
    """
    for name, wrong in (("a", 0), ("b", 12)):
        calls = []
        for t in range(20):
            number = int(t < wrong)
            arguments = {"x": number}
            calls.append([{"name": "find", "arguments": arguments}, {"name": "tap"}])
        expected = [{"name": "find", "arguments": {"x": 0}}, {"name": "tap"}]
        lines = [{"id": t, "expected": expected, "predicted": call} for t, call in enumerate(calls)]
        path = tmp_path / f"{name}.jsonl"
        write_records(path, lines)
    files = [str(tmp_path / f"{name}.jsonl") for name in "ab"]
    comparison = compare(*files)
    changed = comparison.data["changed"]
    (argument,) = changed["arguments"]
    assert argument["name"] == "find.x"
    assert argument["a"] == 0.0
    assert argument["b"] == 0.6
    assert argument["p"] == 1 / 2**12
    assert argument["p_holm"] == 1 / 2**12
    assert argument["verdict"] == "more often"
    names = [row["name"] for row in changed["tools"]]
    assert names == ["find"]
