"""The family through the kernel: recognised, graded, exported, and the page's worked example."""

import json
import re
from pathlib import Path

import pytest

import gradestack

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "orchestration"


def figures(report, grader="orchestrationbench", aggregator="orchestrationbench"):
    return report.summary["metrics"]["aggregates"][grader][aggregator]


@pytest.fixture
def page_example(tmp_path):
    """The file of the worked example, as it stands on the page."""
    text = (ROOT / "docs" / "orchestrationbench.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```json ferry_out\.json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    path = tmp_path / "ferry_out.json"
    path.write_text(block, encoding="utf-8")
    return path


def test_worked_example_documented(page_example, tmp_path):
    """The page's figures follow from the formulas."""
    report = gradestack.grade_files([page_example], output=tmp_path / "run")
    found = figures(report)
    third = 2 * (1 / 3 * 1 / 3) / (1 / 3 + 1 / 3)
    call = round((1 + round(2 / 3, 4) + round(third, 4)) / 3, 4)
    plan = 0.5 * (1 - 1 / 5) + 0.5 * (1 - 1.5 / 5)
    assert (found["call_rejection_accuracy"], found["fc"], found["plan"]) == (0.25, call, round(plan, 4))
    assert found["average"] == round((0.25 + call + round(plan, 4)) / 3, 4) == 0.5556
    assert found["fc_upper_bound"] == 0.7778
    assert found["decision_matrix"]["FC"] == {"FC": 1, "Reject": 0, "FAILED": 1}


def test_worked_example_upstream(page_example, tmp_path):
    """The same file under the original's rules."""
    found = figures(gradestack.grade_files([page_example], output=tmp_path / "run", profile="upstream"))
    assert (found["call_rejection_accuracy"], found["fc"], found["plan"], found["average"]) == (
        0.4,
        0.3889,
        0.85,
        0.5463,
    )


@pytest.mark.parametrize("profile", ["documented", "upstream"])
def test_a_directory_is_a_model_and_several_are_never_pooled(page_example, tmp_path, profile):
    places = []
    for name, text in (("strong", page_example.read_text()), ("weak", page_example.read_text().replace("Brekke", "X"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ferry_out.json").write_text(text)
        places.append(tmp_path / name)
    one = gradestack.grade_files(places[:1], output=tmp_path / "one", profile=profile)
    two = gradestack.grade_files(places, output=tmp_path / "two", profile=profile)
    assert [row["model_name"] for row in two.rows()] == ["strong", "weak"]
    assert [row["model_name"] for row in two.metrics["per_model"]] == ["strong", "weak"]
    assert two.summary["duplicates"]["count"] == 0
    found = figures(two)
    assert (found["average"], found["plan"]) == (None, None)
    assert "under `models`" in found["undefined"]["average"]
    assert found["models"]["strong"]["average"] == figures(one)["average"] is not None
    assert [entry["models"]["weak"]["value"] for entry in two.summary["headline"]["figures"]] == [
        found["models"]["weak"][name] for name in ("average", "call_rejection_accuracy", "fc", "plan")
    ]
    for grader, name in (("call", "fc"), ("decision", "call_rejection_accuracy"), ("plan", "plan")):
        (aggregate,) = (each for key, each in two.aggregates[grader].items() if key != "mean")
        assert (aggregate[name], set(aggregate["models"])) == (None, {"strong", "weak"})
    alone, beside = (run / "native" for run in (tmp_path / "one", tmp_path / "two"))
    key_metrics = [
        json.loads(path.read_text())["overall_statistics"]["key_metrics"]
        for path in (alone / "orchestrationbench.json", beside / "strong" / "orchestrationbench.json")
    ]
    assert key_metrics[0] == key_metrics[1]


@pytest.mark.parametrize("profile", ["documented", "upstream"])
def test_the_example_suite_runs(tmp_path, profile):
    report = gradestack.run(EXAMPLE / "suite.yaml", output=tmp_path / "run", overrides=[f"profile={profile}"])
    assert set(report.summary["metrics"]["by_metric"]) == {"orchestrationbench", "decision", "call", "plan"}
    native = json.loads((tmp_path / "run" / "native" / "orchestrationbench.json").read_text(encoding="utf-8"))
    assert native["overall_statistics"]["successful_evaluations"] == 3
    assert native["overall_statistics"]["key_metrics"]["Average"] == figures(report)["average"]
    rows = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["sample"]["id"], row["run"]) for row in rows] == [
        ("ferry", 1),
        ("ferry", 2),
        ("garden", 1),
        ("kiln", 1),
    ]
    assert all(row["grades"]["decision"]["items"] for row in rows)


def test_recorded_verdicts_raise_the_value_score(tmp_path):
    """The example's verdict turns an undecided argument into a match."""
    scores = []
    for number, more in enumerate(([], [f"reader.verdicts={EXAMPLE / 'verdicts.json'}"])):
        report = gradestack.run(EXAMPLE / "suite.yaml", output=tmp_path / str(number), overrides=more)
        scores.append(figures(report, "call", "orchestration_calls")["fc"])
    assert scores[1] > scores[0]


def test_results_do_not_depend_on_the_engine(tmp_path, generator):
    """One process or two: the same bytes."""
    directory, cards = generator.write_suite(tmp_path / "suite", 24, seed=2, trouble=0.2)
    written = []
    for name, engine in (("serial", "{kind: serial}"), ("two", "{kind: processes, workers: 2}")):
        gradestack.grade_files(
            [directory], output=tmp_path / name, overrides=[f"reader.agent_cards={cards}", f"engine={engine}"]
        )
        written.append(
            [(tmp_path / name / part).read_bytes() for part in ("results.jsonl", "native/orchestrationbench.json")]
        )
    assert written[0] == written[1]


def test_a_synthetic_suite_end_to_end(tmp_path, generator, oracle):
    """Two hundred files through the kernel: key metrics equal the slow calculation's in every output."""
    directory, cards = generator.write_suite(tmp_path / "suite", 204, seed=29, trouble=0.1)
    tools = {tool["name"]: tool["parameters"] for entries in generator.CARDS.values() for tool in entries}
    expected = oracle.Oracle("documented", tools).overall(sorted(directory.rglob("*_out.json")))
    report = gradestack.grade_files(
        [directory], reader="orchestrationbench", output=tmp_path / "run", overrides=[f"reader.agent_cards={cards}"]
    )
    assert figures(report)["overall_statistics"]["key_metrics"] == expected["keys"]
    native = json.loads((tmp_path / "run" / "native" / "orchestrationbench.json").read_text(encoding="utf-8"))
    assert native["overall_statistics"]["key_metrics"] == expected["keys"]
    assert native["overall_statistics"]["total_files"] == len(native["detailed_results"]) == 204
    paths = [entry["file_path"] for entry in native["detailed_results"]]
    assert paths == sorted(paths)


def test_steps_for_other_families(tmp_path, generator):
    """With ``unit: step`` the graders of other families apply to single steps."""
    directory, cards = generator.write_suite(tmp_path / "suite", 12, seed=4)
    report = gradestack.grade_files(
        [directory],
        output=tmp_path / "run",
        overrides=[
            "reader.unit=step",
            f"reader.agent_cards={cards}",
            "stack=null",
            "graders={partial: {kind: tau_partial}}",
        ],
    )
    states = report.summary["metrics"]["states"]["partial"]
    assert states["graded"] > 20
    assert states["missing"] >= 1


def test_scenarios_as_a_dataset(tmp_path):
    folder = tmp_path / "scenarios"
    folder.mkdir()
    (folder / "one.yaml").write_text(
        "steps:\n"
        "- {workflow_id: system, step_id: 1, agent: main, agent_type: main, data: {content: hi}}\n"
        '- {workflow_id: w, step_id: 2, agent: a, agent_type: agent, data: {content: "tool: f\\narguments: {x: 1}"}}\n',
        encoding="utf-8",
    )
    answers = tmp_path / "answers.jsonl"
    answers.write_text('{"id": "one", "predicted": [{"name": "f", "arguments": {"x": 1}}]}\n', encoding="utf-8")
    report = gradestack.grade_files(
        [answers],
        output=tmp_path / "run",
        dataset=folder,
        overrides=["graders={call: {kind: orchestration_call}}"],
    )
    assert report.summary["metrics"]["by_metric"]["call"]["avg_score_attempted"] == 1.0
