"""Files written by google-adk and atif themselves hold for our readers what these libraries read
back.
"""

import json
import time
from pathlib import Path

import pytest

from gradestack_plugins.archives.forms import as_atif
from tests.plugins.chat_files import read
from tests.plugins.test_published_forms import samples_of

pytestmark = [pytest.mark.oracles, pytest.mark.filterwarnings("default")]


def test_results_of_adk_are_adks(tmp_path):
    """Its own manager writes and reads them: calls, results, answers, scores of every run."""
    pytest.importorskip("google.adk")
    from google.adk.evaluation.eval_case import IntermediateData, Invocation
    from google.adk.evaluation.eval_metrics import EvalMetricResult, EvalMetricResultPerInvocation
    from google.adk.evaluation.eval_result import EvalCaseResult
    from google.adk.evaluation.evaluator import EvalStatus
    from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager
    from google.genai import types

    def invocation(number):
        uses = []
        for at in range(number):
            function_call = types.FunctionCall(id=f"f{at}", name="find", args={"n": at})
            uses.append(function_call)
        answers = []
        for use in uses:
            function_response = types.FunctionResponse(
                id=use.id, name="find", response={"result": use.args}
            )
            answers.append(function_response)
        parts = [types.Part(text=f"{number} found")]
        content = types.Content(role="model", parts=parts)
        user_content = types.Content(role="user", parts=[types.Part(text="Find")])
        intermediate_data = IntermediateData(tool_uses=uses, tool_responses=answers)
        creation_timestamp = time.time()
        return Invocation(
            user_content=user_content,
            final_response=content,
            intermediate_data=intermediate_data,
            creation_timestamp=creation_timestamp,
        )

    def case_result(number):
        passed = EvalStatus.PASSED
        score = number / 4
        metric = EvalMetricResult(
            metric_name="calls", score=score, threshold=0.5, eval_status=passed
        )
        invocation_results = []
        for n in range(number):
            actual_invocation = invocation(n)
            expected_invocation = invocation(number)
            invocation_results.append(
                EvalMetricResultPerInvocation(
                    actual_invocation=actual_invocation, expected_invocation=expected_invocation
                )
            )
        eval_id = f"case-{number}"
        session_id = f"s{number}"
        return EvalCaseResult(
            eval_set_id="desk",
            eval_id=eval_id,
            final_eval_status=passed,
            overall_eval_metric_results=[metric],
            eval_metric_result_per_invocation=invocation_results,
            session_id=session_id,
        )

    cases = [case_result(number) for number in range(1, 4)]
    manager = LocalEvalSetResultsManager(str(tmp_path))
    manager.save_eval_set_result("app", "desk", cases)
    (name,) = manager.list_eval_set_results("app")
    known = manager.get_eval_set_result("app", name).eval_case_results
    paths = tmp_path.rglob("*.json")
    samples = read("adk", *paths)
    ids = [sample.id for sample in samples]
    assert ids == [case.eval_id for case in known]
    for sample, case in zip(samples, known, strict=True):
        made = [at.actual_invocation for at in case.eval_metric_result_per_invocation]
        uses = [use for at in made for use in at.intermediate_data.tool_uses]
        results = [
            response.response for at in made for response in at.intermediate_data.tool_responses
        ]
        expected = [(u.id, u.name, u.args) for u in uses]
        assert [(call.id, call.name, call.arguments) for call in sample.calls] == expected
        assert [call.result for call in sample.calls] == results
        first_part = made[-1].final_response.parts[0]
        assert sample.text == first_part.text
        scores = {
            metric_result.metric_name: metric_result.score
            for metric_result in case.overall_eval_metric_results
        }
        passed = case.final_eval_status == EvalStatus.PASSED
        assert dict(sample.recorded) == {**scores, "passed": passed}


def test_trajectories_of_atif_are_atifs(tmp_path):
    """Its own model writes and reads them: calls, results, totals."""
    atif = pytest.importorskip("atif")
    calls = []
    for n in range(3):
        tool_call_id = f"c{n}"
        calls.append({"tool_call_id": tool_call_id, "function_name": "find", "arguments": {"n": n}})
    results = []
    for call in calls[::-1]:
        arguments = str(call["arguments"])
        results.append({"source_call_id": call["tool_call_id"], "content": arguments})
    document = {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "desk", "version": "1", "model_name": "m"},
        "steps": [
            {"step_id": 1, "source": "user", "message": "Find"},
            {
                "step_id": 2,
                "source": "agent",
                "message": "",
                "tool_calls": calls,
                "observation": {"results": results},
                "metrics": {"prompt_tokens": 7, "completion_tokens": 2},
            },
            {"step_id": 3, "source": "agent", "message": "Found", "metrics": {"prompt_tokens": 9}},
        ],
    }
    known = atif.Trajectory.model_validate(document)
    trajectory_path = tmp_path / "trajectory.json"
    trajectory_path.write_text(known.model_dump_json(indent=2), encoding="utf-8")
    (sample,) = read("atif", tmp_path / "trajectory.json")
    made = [call for step in known.steps for call in step.tool_calls or ()]
    expected = [(c.tool_call_id, c.function_name, c.arguments) for c in made]
    assert [(c.id, c.name, c.arguments) for c in sample.calls] == expected
    atif_document = {}
    for step in known.steps:
        if step.observation:
            for result in step.observation.results:
                atif_document[result.source_call_id] = result.content
    results_by_id = {call.id: call.result for call in sample.calls}
    assert results_by_id == atif_document
    total = sum(step.metrics.prompt_tokens for step in known.steps if step.metrics)
    assert sample.usage.input_tokens == total
    text = (tmp_path / "trajectory.json").read_text()
    agent = json.loads(text)["agent"]
    model_name = agent["model_name"]
    assert model_name == sample.model


@pytest.mark.parametrize(
    "name", ["airline/results.json", "quickstart/runs.jsonl", "when2call/judge_decisions.jsonl"]
)
@pytest.mark.parametrize("plain", [False, True])
def test_what_convert_writes_is_what_atif_s_own_model_takes(name, plain):
    """It refuses unknown keys, results without their call, and steps that are not numbered."""
    atif = pytest.importorskip("atif")
    file_path = Path(__file__)
    examples_folder = file_path.parents[2] / "examples"
    samples = samples_of(examples_folder / name)
    assert samples
    for sample in samples:
        document, _ = as_atif(sample, plain=plain)
        known = atif.Trajectory.model_validate_json(document)
        made = []
        for step in known.steps:
            for call in step.tool_calls or ():
                made.append(call.function_name)
        calls = sample.calls or ()
        names = [call.name for call in calls]
        assert made == names
