"""The original's evaluator as a program: parts of its result file, and its figures beside ours."""

from pathlib import Path

import pytest

import gradestack
from gradestack.testing.case_files import _compare, _file_text, _value_at
from tests.core.outcomes import data

EXAMPLE = Path(__file__).parents[3] / "examples" / "orchestration" / "worked" / "ferry_out.json"
CASES = data(__file__, "program.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["rule"])
def test_case(bench, tmp_path, case):
    for name, content in case["files"].items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        file_text = _file_text(name, content)
        path.write_text(file_text, encoding="utf-8")
    reader = case.get("reader", {}).items()
    options = {name: tmp_path / path for name, path in reader}
    tree = bench.program(**options)
    first = tree["detailed_results"][0]
    score_details = tree["overall_statistics"]["score_details"]
    parts = {**tree["overall_statistics"], **score_details}
    arguments = _value_at(first, "detail.arguments_detail")
    parts |= {"file": first, "arguments": arguments}
    compare = list(_compare("native file", case["native"], parts))
    assert compare == []


def test_its_figures_stand_beside_ours(tmp_path):
    """Those of the page's worked example; rows and figures of ours are the document's."""
    runs = []
    for profile in ("documented", "upstream"):
        output = tmp_path / profile
        report = gradestack.grade_files(
            [EXAMPLE], output=output, profile=profile, overrides=["reports=[]"]
        )
        runs.append(report)
    (program,) = runs[1].summary["programs"]
    figures = program["figures"]
    values = {figure["label"]: figure["value"] for figure in figures}
    assert values == {
        "Average": 0.5463,
        "Call Rejection Classification Accuracy": 0.4,
        "FC": 0.3889,
        "Plan": 0.85,
    }
    paths = [figure["figure"] for figure in program["figures"]]
    assert paths[0] == "orchestrationbench.orchestrationbench.average"
    ours = [run.aggregates["orchestrationbench"]["orchestrationbench"] for run in runs]
    assert ours[0] == ours[1]
    rows = list(runs[0].rows())
    expected = list(runs[1].rows())
    assert rows == expected


def test_a_self_loop_is_measured_as_networkx_does(bench, scenario, turns):
    """It overlooks this one: distance 1 of 5, where 3 edits are needed."""
    pytest.importorskip("networkx")
    pytest.importorskip("scipy")
    plan = "workflow_1: {steps: [{name: a}]}\nworkflow_2: {depends_on: [workflow_1], steps: %s}"
    gold = plan % "[{name: b}]"
    predicted = plan % "[{name: a}]"
    label = turns.label(_3={"role": "assistant", "content": gold})
    shards = turns.plan(3, predicted)
    bench.write("one", scenario(label, main=[shards]))
    program = bench.program()
    (result,) = program["detailed_results"]
    ((_, grade),) = bench.grades()
    expected = 1 - 1 / 5
    assert result["average_component_GED"] == expected
    first_item = grade.items[0]
    component = first_item.parts["component"]
    assert component == 1 - 3 / 5
