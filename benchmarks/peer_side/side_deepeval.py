"""deepeval: ToolCorrectnessMetric.measure, exact, one test case at a time, none kept."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import side_common

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "DEEPEVAL_UPDATE_WARNING_OPT_OUT": "1"}
metrics = importlib.import_module("deepeval.metrics")
cases = importlib.import_module("deepeval.test_case")
models = importlib.import_module("deepeval.models")


class NoModel(models.DeepEvalBaseLLM):  # type: ignore[misc,name-defined] # the metric wants one, and asks it nothing
    """A model that is never asked."""

    def load_model(self, *_: Any, **__: Any) -> Any:
        """Return nothing to load."""
        return self

    def get_model_name(self, *_: Any, **__: Any) -> str:
        """Return a name."""
        return "none"

    def generate(self, *_: Any, **__: Any) -> str:
        """Never called."""
        raise AssertionError

    async def a_generate(self, *_: Any, **__: Any) -> str:
        """Never called."""
        raise AssertionError


def grade(path: Path, limit: int, _job: dict[str, Any]) -> float:
    """Return the mean score."""
    metric = metrics.ToolCorrectnessMetric(
        model=NoModel(),
        evaluation_params=[cases.ToolCallParams.INPUT_PARAMETERS],
        should_exact_match=True,
        include_reason=False,
        async_mode=False,
    )
    call, case = cases.ToolCall, cases.LLMTestCase
    total = 0.0
    for record in side_common.records(path, limit):
        total += metric.measure(
            case(
                input=record.input,
                actual_output=record.answer,
                tools_called=[call(name=name, input_parameters=made) for name, made in record.made],
                expected_tools=[
                    call(name=name, input_parameters=wanted) for name, wanted in record.expected
                ],
            ),
            _show_indicator=False,
        )
    return total / limit


if __name__ == "__main__":
    sys.exit(side_common.run("deepeval", grade))
