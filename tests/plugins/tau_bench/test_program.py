"""tau-bench's programs: what they compute of records, and the files they write."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradestack import Input, Outcome, ProgramInput, terminal_line
from gradestack_plugins.tau_bench.grader import TauPartial, TauReward
from gradestack_plugins.tau_bench.program import (
    Result,
    TauBenchProgram,
    compute_pass_hat_k,
    compute_statistics,
    read_result,
    statistics_block,
)
from gradestack_plugins.tau_bench.reader import TauBench
from tests.conftest import examples
from tests.core.outcomes import at, data

DATA = data(__file__, "program.yaml")
CONTENTS = data(__file__, "partial.yaml")["contents"]
NAMED = {"ids": lambda case: case["name"]}

NAN = float("nan")

small = st.sampled_from([None, True, 0, 1, 1.0, "", "a", "1", float("nan")])
json_values = st.recursive(
    small,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("xyz"), json_values, max_size=3)
names = st.sampled_from(["a", "b", "", None, 1])
arguments = (
    objects.map(json.dumps)
    | json_values.map(json.dumps)
    | objects
    | st.sampled_from(["{", "", None, 5, [1]])
)
functions = st.fixed_dictionaries(
    {}, optional={"name": names, "arguments": arguments}
) | st.sampled_from([None, "f"])
calls = st.fixed_dictionaries(
    {}, optional={"function": functions, "id": st.just("c")}
) | st.sampled_from([None, "c"])
contents = st.sampled_from(CONTENTS)
roles = st.sampled_from(["assistant", "user", "tool"])
good_call = st.fixed_dictionaries(
    {"function": st.fixed_dictionaries({"name": names, "arguments": arguments})}
)
messages = st.fixed_dictionaries(
    {"role": roles, "content": contents},
    optional={
        "tool_calls": st.lists(good_call, max_size=2) | st.lists(calls, max_size=2) | st.none()
    },
)
actions = st.lists(
    st.fixed_dictionaries({}, optional={"name": names, "kwargs": json_values}), max_size=3
)
odd_actions = st.sampled_from([None, 5, "x", ["x"], {"a": 1}])
tasks = st.fixed_dictionaries({}, optional={"actions": actions | actions | odd_actions}) | st.none()
infos = st.fixed_dictionaries({"task": st.fixed_dictionaries({"actions": actions})}) | st.one_of(
    st.fixed_dictionaries({}, optional={"task": tasks, "error": st.none()}),
    st.sampled_from([None, 5]),
)
trajs = (
    st.lists(messages, max_size=4)
    | st.lists(messages | st.sampled_from([None, "m"]), max_size=2)
    | st.none()
)
records = st.fixed_dictionaries({"task_id": st.just(0)}, optional={"info": infos, "traj": trajs})

plain_calls = st.fixed_dictionaries(
    {
        "function": st.fixed_dictionaries(
            {
                "name": st.sampled_from(["a", "b", ""]),
                "arguments": objects.map(json.dumps) | st.sampled_from(["{", "", "[1]"]),
            }
        )
    }
)
plain_actions = st.fixed_dictionaries({"name": st.sampled_from(["a", "b", ""]), "kwargs": objects})
plain_messages = st.fixed_dictionaries(
    {"role": roles, "content": st.none(), "tool_calls": st.lists(plain_calls, max_size=2)}
)
plain_tasks = st.fixed_dictionaries({"actions": st.lists(plain_actions, max_size=3)})
plain_records = st.fixed_dictionaries(
    {
        "task_id": st.just(0),
        "info": st.fixed_dictionaries({"task": plain_tasks}),
        "traj": st.lists(plain_messages, max_size=3),
    }
)


@pytest.fixture
def run_program(tmp_path):
    def run(records, **options):
        path = tmp_path / "r.json"
        path.write_text(records if isinstance(records, str) else json.dumps(records))
        graders = {"partial": TauPartial(), "reward": TauReward()}
        file = Input(path=path, name="r", shown="r.json")
        return TauBenchProgram().run(
            ProgramInput(input=file, reader=TauBench(), graders=graders, **options)
        )

    return run


@pytest.mark.parametrize("case", DATA["scores"], **NAMED)
def test_partial_score_of_a_record(tau, case):
    """None where the script stops."""
    for record, score in zip(case["records"], case["is"], strict=True):
        result = read_result({**tau.record(), **record})
        assert result.partial_score == score


@pytest.mark.parametrize("case", DATA["trials"], **NAMED)
def test_pass_hat_k_by_the_trials_of_the_file(case):
    results = []
    for task, trial, reward in case["results"]:
        results.append(Result(task, trial, reward, None))
    metrics = compute_pass_hat_k(results)
    paths = case["is"]
    assert {path: at(metrics, path) for path in paths} == case["is"]


def test_masses_of_copies_give_null_rather_than_an_error():
    results = [Result("b", run, 0.0, None) for run in range(200)]
    result = Result("a", 0, 1.0, None)
    metrics = compute_pass_hat_k([*results, *[result] * 200_000])
    expected = 200_000 / 200 / 2
    assert metrics["pass_hat_ks"]["1"] == expected
    assert metrics["pass_hat_ks"]["100"] is None


def test_its_files(tau, run_program):
    """The list as ``json.dump`` with an indent of two writes it, the block, and the figures."""
    records = [
        tau.record(
            [("a", {"x": 1, "y": 2})],
            [tau.call("a", {"x": 1})],
            alpha="é \ud83d\ude00 \ud800",
            nan=float("nan"),
        ),
        tau.record([], [], task_id="t", reward=1.0, partial_score="old", last=1e16),
        tau.record(info=None),
        {"no": "task"},
        7,
    ]
    run = run_program(records)
    text = json.dumps(records)
    scored = json.loads(text)
    for record, score in zip(scored, (0.4 + 0.6 * 0.5, 1.0, None), strict=False):
        record["partial_score"] = score
    expected = json.dumps(scored, indent=2)
    assert run.files["r_partial.json"] == expected
    tau_metrics_json = run.files["tau_metrics.json"]
    metrics = json.loads(tau_metrics_json)
    assert metrics["pass_hat_ks"] == {"1": 0.5}
    block = run.files["tau_statistics.txt"]
    assert "Total tasks: 2\nNot scored: 1\n\nBinary Scoring:\n  Success rate: 1/2 (50.0%)" in block
    expected_text = f"{block}🏆 Average reward: {1 / 3}\n📈 Pass^k\n  k=1: 0.5\n"
    assert run.console == expected_text
    assert run.exit_code is None
    values_by_label = {figure.label: figure.value for figure in run.figures}
    average_reward = 1 / 3
    assert values_by_label == {
        "Average reward": average_reward,
        "Pass^1": 0.5,
        "Partial average": 0.85,
        "Partial min": 0.7,
        "Partial max": 1.0,
    }


def test_a_limit_is_one_of_tasks_and_what_is_no_json_is_left_out(tau, run_program):
    records = []
    for task in "ab":
        for trial in (0, 1):
            records.append(tau.record(task_id=task, trial=trial))
    text = "[{nope}, " + json.dumps([*records, 7])[1:]
    document = json.loads(run_program(text).files["r_partial.json"])
    document_count = len(document)
    assert document_count == 5
    program = run_program(text, max_samples=1)
    limited = json.loads(program.files["r_partial.json"])
    assert [record if record == 7 else record["task_id"] for record in limited] == ["a", "a", 7]


def test_of_nothing_there_are_no_figures(run_program):
    run = run_program([])
    text = run.files["tau_metrics.json"]
    document = json.loads(text)
    assert document["avg_reward"] is None
    tau_statistics_txt = run.files["tau_statistics.txt"]
    assert "Average: n/a" in tau_statistics_txt


def test_ids_stay_on_their_lines():
    forged = "x\n::error::y\x1b[31m"
    result = Result(forged, 0, 0.0, 1.0)
    statistics = compute_statistics([result])
    block = statistics_block(statistics)
    text = f"    Task {forged}: partial=1.00"
    assert terminal_line(text) in block.split("\n")


def test_the_field_s_run(reference_file, tau):
    """Scores, block and pass^k of a published run."""
    file = Input(path=reference_file, name="r", shown="r")
    run = TauBenchProgram().run(ProgramInput(input=file, reader=TauBench()))
    records = json.loads(reference_file.read_bytes())
    scored = []
    for record in records:
        ref_score = tau.ref_score(record)
        scored.append(record | {"partial_score": ref_score})
    text = json.dumps(scored, indent=2)
    assert run.files["gpt-4o-airline_partial.json"] == text
    field_block = DATA["field_block"]
    assert all(line in run.console for line in field_block)
    tau_metrics_json = run.files["tau_metrics.json"]
    metrics = json.loads(tau_metrics_json)
    pass_hat_ks = metrics["pass_hat_ks"]
    assert pass_hat_ks == pytest.approx({"1": 0.42, "2": 41 / 150, "3": 0.22, "4": 0.2})


@given(record=records)
@settings(max_examples=examples(600), deadline=None)
def test_scores_are_those_of_an_independent_scorer(tau, record):
    """Scores of arbitrary records are equal to the last bit; a scorer that stops gives none."""
    text = json.dumps(record)
    record = json.loads(text)
    try:
        expected = tau.ref_score(record)
    except (TypeError, AttributeError, KeyError):
        expected = None
    result = read_result(record)
    assert result.partial_score == expected


@given(record=plain_records)
@settings(max_examples=examples(300), deadline=None)
def test_of_plain_records_the_grader_has_the_same_score(tau, record):
    """Arguments as JSON texts, names as texts: there the document and the script agree."""
    text = json.dumps(record)
    decoded = json.loads(text)
    grade = TauPartial().grade(tau.sample(decoded))
    assert grade.outcome is Outcome.GRADED
    result = read_result(decoded)
    assert grade.score == result.partial_score


@pytest.mark.parametrize(("kwargs", "score"), [({"x": [1, NAN]}, 1.0), ({"x": NAN, "y": 1}, 1.0)])
def test_a_nan_deep_in_an_argument_is_the_same_whoever_made_it(tau, kwargs, score):
    """The script compares what one decoder returned, whose NaN is one object."""
    text = json.dumps(kwargs)
    record = tau.record([("a", kwargs)], [tau.call("a", text)])
    sample = tau.sample(record)
    first_call = sample.expected.calls[0]
    assert first_call.arguments["x"] is kwargs["x"]
    document = json.loads(text)
    decoded = tau.record([("a", document)], [tau.call("a", text)])
    assert TauPartial().grade(sample).score == read_result(decoded).partial_score == score
