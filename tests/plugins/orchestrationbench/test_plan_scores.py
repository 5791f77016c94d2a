"""Plan figures of one trial, and their sums over trials and files."""

import json

import pytest

from gradestack import ConfigError, Expectation, Outcome, Sample
from gradestack_plugins.orchestrationbench.graders import OrchestrationPlan
from gradestack_plugins.orchestrationbench.graphs import available

PROFILES = ["documented", "upstream"]


def plan_of(*workflows):
    """A plan text; each workflow is (steps, fields)."""
    built = {}
    for number, (steps, fields) in enumerate(workflows, start=1):
        built[f"workflow_{number}"] = {
            **fields,
            "steps": [{"name": agent, "status": status} for agent, status in steps],
        }
    return json.dumps(built)


ONE = plan_of(([("a", "x")], {}))
TWO = plan_of(([("a", "x")], {}), ([("b", "x")], {"depends_on": ["workflow_1"]}))
OTHER = plan_of(([("c", "x")], {}))


@pytest.fixture
def grade(bench, scenario, turns):
    """Grade predicted plan entries against gold plans by step and return the grade."""

    def run(golds, entries, profile="documented", **options):
        label = turns.label(**{f"_{step}": {"role": "assistant", "content": text} for step, text in golds.items()})
        bench.write("one", scenario(label, main=[turns.plan(step, text) for step, text in entries]))
        ((_, found),) = bench.grades("plan", profile, **options)
        return found

    return run


@pytest.mark.parametrize("profile", PROFILES)
def test_a_plan_equals_itself(grade, profile):
    """A repeated gold plan scores 1 on both graphs."""
    found = grade({3: TWO}, [(3, TWO)], profile)
    assert found.score == 1.0
    assert found.items[0].parts == {"structural": 1.0, "component": 1.0, "upper_bound": 1.0}
    assert found.items[0].reasons == ()


@pytest.mark.parametrize("profile", PROFILES)
def test_step_score_is_half_and_half(grade, profile):
    """Similarity = 1 - distance / (nodes + edges of both); the step score is their mean."""
    item = grade({3: TWO}, [(3, ONE)], profile).items[0]
    # Structural: one node and one edge to add, of 1 + 3; component: the same.
    assert item.parts["structural"] == 1 - 2 / 4
    assert item.parts["component"] == 1 - 2 / 4
    item = grade({3: ONE}, [(3, OTHER)], profile).items[0]
    assert item.parts["structural"] == 1.0
    assert item.parts["component"] == 1 - 0.8 / 2
    assert item.score == 0.5 * 1.0 + 0.5 * (1 - 0.8 / 2)
    assert [reason.code for reason in item.reasons] == ["component_distance"]


@pytest.mark.parametrize("profile", PROFILES)
def test_an_empty_plan_equals_an_empty_plan(grade, profile):
    """Two component graphs without nodes are alike."""
    empty = '{"workflow_1": {"steps": []}}'
    assert grade({3: empty}, [(3, empty)], profile).items[0].parts["component"] == 1.0


@pytest.mark.parametrize(
    ("entries", "documented", "upstream"),
    [
        ([(3, ONE), (5, ONE)], (1.0, 2, 0), (1.0, 2, 0)),
        ([(3, ONE)], (0.5, 2, 1), (1 / 3, 2, 1)),
        ([(3, ONE), (5, "no plan")], (0.5, 2, 1), (1 / 4, 2, 2)),
        ([(3, ONE), (5, None)], (0.5, 2, 1), (1 / 4, 2, 2)),
        ([], (0.0, 2, 2), (0.0, 2, 2)),
        ([(3, ONE), (5, ONE), (9, ONE)], (1.0, 2, 0), (1.0, 2, 0)),
        ([(3, ONE), (5, ONE), (9, "no plan")], (1.0, 2, 0), (2 / 3, 2, 1)),
        ([(3, ONE), ("5", ONE)], (1.0, 2, 0), (1 / 3, 2, 1)),
        ([(3, ONE), (5, ONE), (5, "no plan")], (1.0, 2, 0), (2 / 3, 2, 1)),
        ([(3, OTHER), (3, ONE), (5, ONE)], (1.0, 2, 0), (1.0, 2, 0)),
        ([(3, ONE), (5, ONE), (None, "no plan")], (1.0, 2, 0), (1.0, 2, 0)),
        ([(3, ONE), (5, ["not", "text"])], (0.5, 2, 1), (1 / 4, 2, 2)),
    ],
)
@pytest.mark.parametrize("profile", PROFILES)
def test_failures_by_profile(grade, profile, entries, documented, upstream):
    """A failed gold plan is one zero; in upstream an absent one weighs 2, an unreadable 3, an unasked-for 1."""
    found = grade({3: ONE, 5: ONE}, entries, profile)
    expected = documented if profile == "documented" else upstream
    assert (found.score, found.counts["plans"], found.counts["plans_failed"]) == expected


@pytest.mark.parametrize("profile", PROFILES)
def test_reasons_for_lost_plans(grade, profile):
    """An absent and an unreadable plan are told apart, and the text is shown."""
    items = grade({3: ONE, 5: ONE}, [(5, "I cannot")], profile).items
    assert [item.reasons[0].code for item in items] == ["plan_absent", "plan_unparsable"]
    assert items[1].metadata["predicted"] == "I cannot"
    assert items[0].metadata["gold"] == {"workflow_1": {"steps": ["a|x"], "depends_on": []}}


def test_extra_plans_are_noted(grade):
    """A plan at a step without gold is no failure, but said."""
    assert [reason.code for reason in grade({3: ONE}, [(3, ONE), (9, ONE)]).reasons] == ["plan_not_asked_for"]


@pytest.mark.parametrize("profile", PROFILES)
def test_without_gold_plan(grade, profile):
    """A trial without gold plan is skipped in documented and 0.0 in upstream."""
    found = grade({3: "just text"}, [], profile)
    assert found.outcome is (Outcome.SKIPPED if profile == "documented" else Outcome.GRADED)
    assert found.score == (None if profile == "documented" else 0.0)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_gold_plan_that_does_not_parse(grade, profile):
    """It is a failed item outside all figures in documented; upstream does not see it."""
    found = grade({3: ONE, 5: "workflow_1: [oops"}, [(3, ONE), (5, ONE)], profile)
    assert found.score == 1.0
    assert found.counts["plans"] == 1
    outcomes = [str(item.outcome) for item in found.items]
    assert outcomes == (["graded", "failed"] if profile == "documented" else ["graded"])


@pytest.mark.parametrize("profile", PROFILES)
def test_which_turns_may_be_gold_plans(bench, scenario, turns, profile):
    """Documented takes assistant turns without an agent only; upstream any numbered turn that parses."""
    label = {
        **turns.label(_2={"role": "user", "content": "workflow_1: {}"}),
        "3": {"role": "assistant", "agent_id": "a", "content": "workflow_1: {}"},
        "4-1": {"role": "assistant", "content": "workflow_1: {}"},
        "5": {"role": "assistant", "content": "workflow_1: {}"},
    }
    bench.write("one", scenario(label))
    ((_, found),) = bench.grades("plan", profile)
    assert [item.id for item in found.items] == (["5"] if profile == "documented" else ["2", "3", "5"])


@pytest.mark.parametrize(
    "text",
    [
        "workflow_1: null",
        '{"workflow_1": {"steps": [3]}}',
        '{"workflow_1": {"depends_on": [null]}}',
        "3: x\nworkflow_1: {}",
    ],
)
def test_a_malformed_plan_drops_the_run_in_upstream_only(grade, text):
    """What makes the original raise drops all plans of the run, without a failure; documented grades what is there."""
    documented, upstream = (grade({3: ONE, 5: ONE}, [(3, text), (5, ONE)], profile) for profile in PROFILES)
    assert (upstream.counts["plans"], upstream.counts["plans_failed"]) == (0, 0)
    assert [reason.code for reason in upstream.reasons] == ["run_dropped"]
    assert documented.counts["plans"] == 2
    assert documented.items[1].score == 1.0
    assert 0 < documented.items[0].score < 1


@pytest.mark.parametrize("profile", PROFILES)
def test_weights_come_from_options_config_or_defaults(bench, scenario, turns, tmp_path, profile):
    """The grader's options win over the evaluation config, which wins over 0.8 and 0.5."""
    label = turns.label(_3={"role": "assistant", "content": ONE})
    bench.write("one", scenario(label, main=[turns.plan(3, plan_of(([("a", "y")], {})))]))
    config = tmp_path / "eval.yaml"
    config.write_text("evaluation_params: {agent_change_weight: 0.8, status_change_weight: 0.2}\n", encoding="utf-8")

    def component(reader=None, **options):
        ((_, found),) = bench.grades("plan", profile, reader=reader, solver="exact", **options)
        return found.items[0].parts["component"]

    assert component() == 1 - 0.5 / 2
    assert component({"config": config}) == 1 - 0.2 / 2
    assert component({"config": config}, status_weight=0.4) == 1 - 0.4 / 2
    config.write_text("evaluation_params: {status_change_weight: high}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="evaluation config"):
        component({"config": config})


@pytest.mark.parametrize(
    "options",
    [{"agent_weight": -0.1}, {"status_weight": 2.01}, {"search_budget": 0}],
    ids=["agent", "status", "budget"],
)
def test_bad_options_are_refused(options):
    """Weights outside 0 to 2 and an empty budget are refused with their name."""
    with pytest.raises(ValueError, match=next(iter(options)).split("_")[0]):
        OrchestrationPlan(**options)


LOOP = plan_of(([("a", "x")], {}), ([("a", "x")], {"depend_on": "workflow_1"}))


def test_self_loops_are_exact_in_documented(grade):
    """A lost self-loop costs one edge edit."""
    flat = plan_of(([("a", "x")], {}), ([("a", "x")], {}))
    item = grade({3: LOOP}, [(3, flat)]).items[0]
    assert item.parts["component"] == 1 - 1 / 3
    assert item.parts["structural"] == 1 - 1 / 5
    assert item.metadata["component"] == {"lower": 1.0, "upper": 1.0, "exact": True, "self_loop": True, "solver": "own"}


@pytest.mark.skipif(not available(), reason="networkx and scipy are not installed")
def test_upstream_asks_networkx_where_it_can(grade):
    """Auto takes networkx in upstream, ``exact`` does not; a pair too large for it goes to the exact solver."""
    small = grade({3: LOOP}, [(3, LOOP)], "upstream").items[0]
    assert small.metadata["component"]["solver"] == "networkx"
    assert grade({3: LOOP}, [(3, LOOP)], "upstream", solver="exact").items[0].metadata["component"]["solver"] == "own"
    large = plan_of(([(f"agent_{number}", "x") for number in range(9)], {}))
    assert grade({3: large}, [(3, large)], "upstream").items[0].metadata["component"]["solver"] == "own"
    assert (
        grade({3: LOOP}, [(3, LOOP)], "documented", solver="networkx").items[0].metadata["component"]["solver"]
        == "networkx"
    )


def test_a_plan_too_large_for_the_budget_has_bounds(grade):
    """The score uses the upper bound of the distance, ``upper_bound`` the lower; the reason says the search stopped."""
    wide = [([(f"agent_{n}", "x") for n in range(k, k + 4)], {"depends_on": [f"workflow_{k % 7}"]}) for k in range(14)]
    other = [([(f"agent_{n}", "y") for n in range(k, k + 3)], {"depends_on": [f"workflow_{k % 5}"]}) for k in range(15)]
    item = grade({3: plan_of(*wide)}, [(3, plan_of(*other))], search_budget=30).items[0]
    assert item.metadata["component"]["exact"] is False
    assert item.parts["upper_bound"] > item.score
    assert "search stopped" in item.reasons[-1].message


@pytest.mark.parametrize("profile", PROFILES)
def test_file_pools_plans_over_trials(bench, scenario, turns, profile):
    """The file figure divides the sum over all trials, the directory figure is the plain mean over files."""
    label = turns.label(_3={"role": "assistant", "content": ONE}, _5={"role": "assistant", "content": ONE})

    def run(*entries):
        main = [turns.plan(step, text) for step, text in entries]
        return {"label": label, "main_agent_history": main, "sub_agent_history": []}

    runs = {"run #1": run((3, ONE), (5, ONE)), "run #2": run((3, OTHER))}
    bench.write("one", scenario(runs=runs))
    bench.write("two", scenario(runs={"run #1": run((3, ONE), (5, ONE))}))
    figures = bench.figures("plan", profile)
    total = 2 + 0.5 * (1 + 1 - 0.8 / 2)
    with_failure, without = (total / 4, total / 3) if profile == "documented" else (total / 5, total / 4)
    row = figures["scenarios"][0]
    assert row["workflow_evaluation_with_failure"] == pytest.approx(with_failure, abs=1e-15)
    assert row["workflow_evaluation_without_failure"] == pytest.approx(without, abs=1e-15)
    assert row["average_structural_GED"] == 3 / 4
    assert row["average_component_GED"] == (2 + 0.6) / 4
    assert (row["failed_workflow_generation"], row["total_comparison_steps_evaluated"]) == (1, 4)
    assert figures["plan"] == round((with_failure + 1) / 2, 4)


@pytest.mark.parametrize("profile", PROFILES)
def test_samples_of_other_readers(profile):
    """A plan may be a text, an object of workflows, or an object step -> plan."""
    grader = OrchestrationPlan(profile=profile, solver="exact")
    workflows = json.loads(ONE)
    for gold, said in ((ONE, workflows), (workflows, ONE), ({"3": ONE}, {"3": workflows})):
        assert grader.grade(Sample(id="x", plan=said, expected=Expectation(plan=gold))).score == 1.0
    two = Sample(id="x", plan={"3": ONE}, expected=Expectation(plan={"3": ONE, "5": ONE}))
    assert grader.grade(two).score == (0.5 if profile == "documented" else 1 / 3)
    assert grader.grade(Sample(id="x", plan=ONE)).outcome is Outcome.SKIPPED
    odd = grader.grade(Sample(id="x", plan=5, expected=Expectation(plan=[1])))
    assert str(odd.items[0].outcome) == "failed"
