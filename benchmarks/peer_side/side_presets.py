"""What released packages say of tool calls, in their own virtual environment.

`presets.py` compares it with ours.

    python side_presets.py CASES.jsonl ANSWERS.jsonl

A package that cannot be imported is left out, and said.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import json
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ |= {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_UPDATE_WARNING_OPT_OUT": "1",
    "DO_NOT_TRACK": "1",
}
Call = tuple[str, Any]
Answer = Callable[[list[Call], list[Call], Any], Any]
"""Of expected calls, made calls and tools: a score, or score and error type."""


def adk() -> Iterator[tuple[str, Answer]]:
    """Yield the answers of google-adk."""
    evaluators = importlib.import_module("google.adk.evaluation.trajectory_evaluator")
    metrics = importlib.import_module("google.adk.evaluation.eval_metrics")
    kinds = importlib.import_module("google.genai.types")
    modes = {"exact": "_are_tool_calls_exact_match", "in_order": "_are_tool_calls_in_order_match"}
    modes["any_order"] = "_are_tool_calls_any_order_match"
    assert {each.name.lower() for each in metrics.ToolTrajectoryCriterion.MatchType} == set(modes)  # noqa: S101
    for mode, method in modes.items():
        for suffix in ("", "/names"):
            evaluator = evaluators.TrajectoryEvaluator(threshold=1.0)
            evaluator._ignore_args = bool(suffix)  # noqa: SLF001
            match = getattr(evaluator, method)

            def answer(expected: list[Call], made: list[Call], _: Any, match: Any = match) -> float:
                wanted, done = (
                    [kinds.FunctionCall(name=name, args=given) for name, given in side]
                    for side in (expected, made)
                )
                return float(match(done, wanted))

            yield f"adk/{mode}{suffix}", answer


def azure() -> Iterator[tuple[str, Answer]]:
    """Yield the answers of azure-ai-evaluation."""
    module = importlib.import_module("azure.ai.evaluation._evaluators._task_navigation_efficiency")
    kind = module._TaskNavigationEfficiencyEvaluator  # noqa: SLF001
    for mode in ("exact_match", "in_order_match", "any_order_match", "f1"):
        for suffix in ("", "/names"):
            evaluator = kind(matching_mode="exact_match" if mode == "f1" else mode)

            def answer(
                expected: list[Call],
                made: list[Call],
                _: Any,
                evaluator: Any = evaluator,
                suffix: str = suffix,
                mode: str = mode,
            ) -> Any:
                names = [name for name, _ in expected]
                truth: Any = (
                    names
                    if suffix or not names
                    else (names, {name.strip(): given for name, given in expected})
                )
                response = [
                    {
                        "role": "assistant",
                        "content": [{"type": "tool_call", "name": name, "arguments": given}],
                    }
                    for name, given in made
                ]
                found = asyncio.run(
                    evaluator._do_eval({"response": response, "ground_truth": truth})  # noqa: SLF001
                )
                name = "task_navigation_efficiency"
                return (
                    found[f"{name}_properties"]["f1_score"]
                    if mode == "f1"
                    else found[f"{name}_score"]
                )

            yield f"azure/{mode}{suffix}", answer


def agentevals() -> Iterator[tuple[str, Answer]]:
    """Yield the answers of agentevals."""
    normal = importlib.import_module(  # noqa: SLF001
        "agentevals.trajectory.utils"
    )._normalize_to_openai_messages_list
    for mode in ("strict", "unordered", "subset", "superset"):
        scorer = importlib.import_module(f"agentevals.trajectory.{mode}")._scorer  # noqa: SLF001
        for arguments in ("exact", "ignore", "subset", "superset"):

            def answer(
                expected: list[Call],
                made: list[Call],
                _: Any,
                scorer: Any = scorer,
                arguments: str = arguments,
            ) -> float:
                wanted, done = (
                    normal([_message(call) for call in side]) for side in (expected, made)
                )
                return float(
                    scorer(outputs=done, reference_outputs=wanted, tool_args_match_mode=arguments)
                )

            yield f"agentevals/{mode}/{arguments}", answer


def _message(call: Call) -> dict[str, Any]:
    function = {
        "name": call[0],
        "arguments": call[1] if isinstance(call[1], str) else json.dumps(call[1]),
    }
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "", "type": "function", "function": function}],
    }


def ragas() -> Iterator[tuple[str, Answer]]:
    """Yield the answers of ragas."""
    for gone in ("langchain_community.chat_models.vertexai", "langchain_community.llms"):
        sys.modules[gone] = types.ModuleType(
            gone
        )  # which newer releases do not have, and these rules do not need
        vars(sys.modules[gone]).update(ChatVertexAI=object, VertexAI=object)
    collections = importlib.import_module("ragas.metrics.collections")
    messages = importlib.import_module("ragas.messages")

    def asked(metric: Any) -> Answer:
        def answer(expected: list[Call], made: list[Call], _: Any) -> float:
            wanted, done = (
                [messages.ToolCall(name=name, args=given) for name, given in side]
                for side in (expected, made)
            )
            said = [messages.AIMessage(content="", tool_calls=done)]
            return float(
                asyncio.run(metric.ascore(user_input=said, reference_tool_calls=wanted)).value
            )

        return answer

    yield "ragas/tool_call_accuracy/strict", asked(collections.ToolCallAccuracy(strict_order=True))
    yield (
        "ragas/tool_call_accuracy/flexible",
        asked(collections.ToolCallAccuracy(strict_order=False)),
    )
    yield "ragas/tool_call_f1", asked(collections.ToolCallF1())


def deepeval() -> Iterator[tuple[str, Answer]]:
    """Yield the answers of deepeval."""
    side = importlib.import_module("side_deepeval")
    cases = side.cases
    modes: dict[str, dict[str, bool]] = {
        "default": {},
        "ordering": {"should_consider_ordering": True},
        "exact": {"should_exact_match": True},
    }
    for mode, options in modes.items():
        for what in ("names", "arguments"):
            compared = [cases.ToolCallParams.INPUT_PARAMETERS] if what == "arguments" else []
            metric = side.metrics.ToolCorrectnessMetric(
                model=side.NoModel(),
                evaluation_params=compared,
                include_reason=False,
                async_mode=False,
                **options,
            )

            def answer(
                expected: list[Call], made: list[Call], _: Any, metric: Any = metric
            ) -> float:
                wanted, done = (
                    [cases.ToolCall(name=name, input_parameters=given) for name, given in each]
                    for each in (expected, made)
                )
                metric.tools_called, metric.expected_tools = done, wanted
                return float(metric._calculate_score())  # noqa: SLF001

            yield f"deepeval/tool_correctness/{mode}/{what}", answer


def mlflow() -> Iterator[tuple[str, Answer]]:
    """Yield the answers of MLflow.

    Its scorer wants a trace, so the two functions behind it are asked.
    """
    scorers = importlib.import_module("mlflow.genai.scorers.builtin_scorers")
    calls = importlib.import_module("mlflow.genai.utils.type")
    scorer = scorers.ToolCallCorrectness(should_exact_match=True)
    parsed = importlib.import_module(
        "mlflow.genai.scorers.scorer_utils"
    ).parse_tool_call_expectations
    for word, method in (
        ("ordered", scorer._evaluate_exact_ordered),  # noqa: SLF001
        ("unordered", scorer._evaluate_exact_unordered),  # noqa: SLF001
    ):

        def answer(expected: list[Call], made: list[Call], _: Any, method: Any = method) -> float:
            wanted, done = (
                [calls.FunctionCall(name=name, arguments=given) for name, given in side]
                for side in (expected, made)
            )
            if parsed({"expected_tool_calls": wanted}) is None:
                raise ValueError  # as the scorer itself does
            return float(len(wanted) == len(done) and method(done, wanted, True).value == "yes")

        yield f"mlflow/tool_call_correctness/{word}", answer


def pydantic_evals() -> Iterator[tuple[str, Answer]]:
    """Yield the answers of pydantic-evals, whose spans are calls here."""
    module = importlib.import_module("pydantic_evals.evaluators.agentic")
    module._extract_tool_calls = lambda tree, **_: tree  # type: ignore[attr-defined] # noqa: SLF001
    for mode in ("exact", "in_order", "any_order"):

        def answer(expected: list[Call], made: list[Call], _: Any, mode: str = mode) -> float:
            tree = [types.SimpleNamespace(name=name) for name, _ in made]
            match = module.TrajectoryMatch(
                expected_trajectory=[name for name, _ in expected], order=mode
            )
            return float(match.evaluate(types.SimpleNamespace(span_tree=tree)).value)

        yield f"pydantic_evals/trajectory_match/{mode}", answer


def bfcl() -> Iterator[tuple[str, Answer]]:
    """Yield the answers of bfcl-eval.

    What only other languages and other models need is not imported.
    """
    converters = "bfcl_eval.eval_checker.ast_eval.type_convertor"
    stubs: dict[str, dict[str, Any]] = {
        "bfcl_eval.constants.model_config": {
            "MODEL_CONFIG_MAPPING": {"none": types.SimpleNamespace(underscore_to_dot=False)}
        },
        f"{converters}.java_type_converter": {"java_type_converter": None},
        f"{converters}.js_type_converter": {"js_type_converter": None},
    }
    for name, members in stubs.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)
    checker = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker")
    languages = importlib.import_module("bfcl_eval.constants.enums")

    def answer(expected: list[Call], made: list[Call], tools: Any) -> Any:
        truth = [
            {
                name: {
                    key: [{k: [v] for k, v in each.items()} if isinstance(each, dict) else each]
                    for key, each in given.items()
                }
            }
            for name, given in expected
        ]
        category = (
            ("simple" if len(tools) == 1 else "multiple") if len(expected) == 1 else "parallel"
        )
        done = [{name: given} for name, given in made]
        found = checker.ast_checker(tools, done, truth, languages.Language.PYTHON, category, "none")
        return [float(found["valid"]), None if found["valid"] else found["error_type"]]

    yield "bfcl/ast", answer


PACKAGES: dict[str, Callable[[], Iterator[tuple[str, Answer]]]] = {
    "google-adk": adk,
    "azure-ai-evaluation": azure,
    "agentevals": agentevals,
    "ragas": ragas,
    "deepeval": deepeval,
    "mlflow": mlflow,
    "pydantic-evals": pydantic_evals,
    "bfcl-eval": bfcl,
}


def main() -> None:
    """Write a line for each preset: its version, and what it says of each case."""
    warnings.simplefilter("ignore")
    cases = [
        json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    ]
    with Path(sys.argv[2]).open("w", encoding="utf-8") as out:
        for package, answers in PACKAGES.items():
            try:
                version = _version(package)
                rules = list(answers())
            except (ImportError, AttributeError) as error:
                print(f"{package} is left out: {error}")
                continue
            for preset, answer in rules:
                said = {case["id"]: _said(answer, case, preset) for case in cases}
                out.write(
                    json.dumps(
                        {"preset": preset, "package": package, "version": version, "said": said}
                    )
                    + "\n"
                )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return importlib.metadata.version(
            f"{package}-skinny"
        )  # of MLflow, with all that is asked here


def _said(answer: Answer, case: dict[str, Any], preset: str) -> Any:
    if (preset == "bfcl/ast") != ("tools" in case):
        return None
    expected, made = (
        [(call["name"], _decoded(call["arguments"])) for call in case[side]]
        for side in ("expected", "predicted")
    )
    try:
        return answer(expected, made, case.get("tools"))
    except Exception as error:  # noqa: BLE001 - that it raises is its answer
        return f"raises {type(error).__name__}"


def _decoded(arguments: Any) -> Any:
    """Return arguments as they are handed over: an object, none at all, or a text that is none."""
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        found = json.loads(arguments)
    except ValueError:
        return arguments
    return found if isinstance(found, dict) else arguments


if __name__ == "__main__":
    main()
