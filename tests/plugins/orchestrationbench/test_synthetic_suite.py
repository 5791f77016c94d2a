"""A suite of perturbed scenarios against an independent calculation."""

import json

import pytest

from gradestack_plugins.orchestrationbench.graphs import available

PROFILES = ["documented", "upstream"]


def _tools(cards):
    tools = {}
    for path in sorted(cards.glob("*.json")):
        for tool in json.loads(path.read_text(encoding="utf-8"))["tools"]:
            tools[tool["name"]] = tool["parameters"]
    return tools


def _close(found, expected):
    return (found is None) == (expected is None) and (found is None or abs(found - expected) < 1e-12)


def _agree(figures, expected):
    statistics = figures["overall_statistics"]
    assert statistics["key_metrics"] == expected["keys"]
    assert statistics["total_files"] == expected["files"]
    assert statistics["successful_evaluations"] == expected["successful"]
    assert statistics["total_failed_workflow_generation"] == expected["plan_failures"]
    assert statistics["total_comparison_steps_evaluated"] == expected["plan_steps"]
    raw = statistics["score_details"]["raw_confusion_matrix"]
    names = {"TP": "true_positive", "TN": "true_negative", "FP": "false_positive", "FN": "false_negative"}
    for short, long in names.items():
        for side in ("reject", "fc"):
            assert raw[f"total_{long}_{side}"] == expected["counts"][f"{short}_{side}"]


@pytest.mark.parametrize("count", [35, pytest.param(210, marks=pytest.mark.proof)])
@pytest.mark.parametrize("trouble", [0.0, 0.4])
@pytest.mark.parametrize("profile", PROFILES)
def test_scenarios_agree_with_the_slow_calculation(tmp_path, bench, generator, oracle, profile, trouble, count):
    """Key metrics, counts and every file's figures equal those of an independent calculation, sound files or not."""
    directory, cards = generator.write_suite(tmp_path / "suite", count, seed=17, trouble=trouble)
    bench.directory = directory
    slow = oracle.Oracle(profile, _tools(cards))
    paths = sorted(directory.rglob("*_out.json"))
    figures = bench.figures(profile=profile, reader={"agent_cards": cards}, solver="exact")
    _agree(figures, slow.overall(paths))
    rows = {row["file"]: row for row in figures["scenarios"]}
    assert len(rows) == count
    for path in paths:
        row, expected = rows[f"out/{path.relative_to(directory).as_posix()}"], slow.file(path)
        assert (row["error"] is not None) == (expected is None)
        if expected is None:
            continue
        assert row["function_name_accuracy"] == expected["name"], path
        assert row["arguments_key_score"] == expected["key"], path
        assert row["arguments_value_score_not_count_rejection"] == expected["value"], path
        assert row["perfect_calls"] == expected["counts"]["perfect"], path
        assert row["function_call_cases"] == expected["counts"]["calls"], path
        assert row["rejection_cases"] == expected["counts"]["rejections"], path
        for name, part in (
            ("workflow_evaluation_with_failure", "with"),
            ("workflow_evaluation_without_failure", "without"),
        ):
            assert _close(row[name], expected["plans"][part]), path
        assert _close(row["average_structural_GED"], expected["plans"]["structural"]), path
        assert _close(row["average_component_GED"], expected["plans"]["component"]), path


def test_the_suite_meets_every_kind_of_outcome(tmp_path, bench, generator):
    """The synthetic suite fills every cell of the matrix and every reason, so agreement means something."""
    directory, cards = generator.write_suite(tmp_path / "suite", 210, seed=17, trouble=0.4)
    bench.directory = directory
    matrix = bench.figures("decision", reader={"agent_cards": cards})["decision_matrix"]
    assert all(count > 3 for row in matrix.values() for count in row.values())
    calls = bench.grades("call", reader={"agent_cards": cards})
    reasons = {key["reason"] for _, grade in calls for item in grade.items for key in item.metadata["keys"]}
    assert reasons == {
        "exact_comparison",
        "key_missing_in_predicted",
        "key_missing_in_actual",
        "type_mismatch",
        "enum_exact_comparison",
        "pattern_mismatch",
        "undecided",
    }
    codes = {reason.code for _, grade in bench.grades("plan") for item in grade.items for reason in item.reasons}
    assert {"plan_absent", "plan_unparsable", "structural_distance", "component_distance"} <= codes
    outcomes = {str(grade.outcome) for _, grade in bench.grades("decision", profile="upstream")}
    assert outcomes == {"graded", "failed", "skipped"}


@pytest.mark.skipif(not available(), reason="networkx and scipy are not installed")
def test_upstream_with_networkx_agrees_with_the_slow_calculation_on_networkx(tmp_path, bench, generator, oracle):
    """With networkx installed the upstream plan figures are those of networkx itself, self-loops included."""
    import networkx as nx

    def distance(left, right, price):
        graphs = []
        for nodes, edges in (left, right):
            graph = nx.DiGraph()
            graph.add_nodes_from((node, {"label": node}) for node in nodes)
            graph.add_edges_from(sorted(edges, key=str))
            graphs.append(graph)
        return nx.graph_edit_distance(
            *graphs,
            node_subst_cost=lambda a, b: float(price(a["label"], b["label"])),
            upper_bound=sum(graph.number_of_nodes() + graph.number_of_edges() for graph in graphs),
        )

    directory, cards = generator.write_suite(tmp_path / "suite", 60, seed=5)
    bench.directory = directory
    with_networkx = bench.figures("plan", profile="upstream", solver="networkx")
    slow = oracle.Oracle("upstream", _tools(cards), distance=distance)
    expected = slow.overall(sorted(directory.rglob("*_out.json")))
    assert with_networkx["plan"] == expected["keys"]["Plan"]
    exact = bench.figures("plan", profile="upstream", solver="exact")
    assert with_networkx["average_component_GED"] > exact["average_component_GED"]
