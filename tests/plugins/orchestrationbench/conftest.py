"""Fixtures that the OrchestrationBench tests share.

Builders of scenario files, and a way to grade them without the kernel.
"""

import importlib.util
import json
import os
from pathlib import Path

import pytest

from gradestack import ExportSummary, GraderSummary, Input, Inputs, Key, ProgramInput, Status
from gradestack.grading.graders import unhandled
from gradestack.metrics.computed import compute_figures
from gradestack.testing.components import make_grades

HERE = Path(__file__).parent


def _load(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def generator():
    return _load("orchestration_generator")


@pytest.fixture(scope="session")
def oracle():
    return _load("orchestration_oracle")


@pytest.fixture(scope="session")
def reference():
    """The directory of real EN scenarios and cards; tests are skipped without it."""
    root = os.environ.get("GRADESTACK_REFERENCE_DATA")
    if not root:
        pytest.skip("GRADESTACK_REFERENCE_DATA is not set")
    root_path = Path(root)
    return root_path / "orchestrationbench" / "EN"


class Bench:
    """Writes scenario files and grades them with the family's own classes."""

    def __init__(self, directory):
        self.directory = directory

    def write(self, name, content):
        path = self.directory / f"{name}_out.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            content if isinstance(content, str) else json.dumps(content), encoding="utf-8"
        )
        return path

    def read(self, path=None, **options):
        from gradestack_plugins.orchestrationbench.reader import OrchestrationBenchReader

        reader = OrchestrationBenchReader(**options)
        input_file = Input(path=path or self.directory, name="out", shown="out")
        inputs = Inputs(data=(input_file,))
        index = reader.index(inputs)
        shards = reader.plan(inputs, index)
        return [sample for shard in shards for sample in reader.read(shard, index)]

    def grades(self, samples=None, reader=None, **options):
        from gradestack_plugins.orchestrationbench.graders import OrchestrationBench

        grader = OrchestrationBench(**options)
        if samples is None:
            samples_read = self.read(**(reader or {}))
        else:
            samples_read = samples
        return [
            (sample, grader.grade(sample) if sample.status is Status.OK else unhandled(sample))
            for sample in samples_read
        ]

    def figures(self, graded=None, **options):
        from gradestack_plugins.orchestrationbench.aggregators import OrchestrationBenchFigures

        aggregator = OrchestrationBenchFigures()
        if graded is None:
            pairs = self.grades(**options)
        else:
            pairs = graded
        keyed = []
        for sample, grade in pairs:
            key = Key(id=sample.id, run=sample.run, facets=sample.facets)
            keyed.append((key, grade))
        return compute_figures(aggregator, make_grades(aggregator, [keyed]))

    def native(self, **options):
        from gradestack_plugins.orchestrationbench.exporter import OrchestrationBenchExporter
        from gradestack_plugins.orchestrationbench.graders import OrchestrationBench

        orchestrationbench = self.figures(**options)
        aggregates = {"orchestrationbench": orchestrationbench}
        grader = GraderSummary(
            key="x", grader=OrchestrationBench(), states={}, aggregates=aggregates
        )
        summary = ExportSummary(
            input=Input(path=self.directory, name="out", shown="out"),
            reader=None,
            graders={"orchestrationbench": grader},
        )
        text = OrchestrationBenchExporter().finish(summary)["orchestrationbench.json"]
        return json.loads(text)

    def program(self, path=None, **options):
        """Run the evaluator on the files and return the summary it writes."""
        from gradestack_plugins.orchestrationbench.program import OrchestrationBenchProgram
        from gradestack_plugins.orchestrationbench.reader import OrchestrationBenchReader

        input_file = Input(path=path or self.directory, name="out", shown="out")
        reader = OrchestrationBenchReader(**options)
        run = OrchestrationBenchProgram().run(ProgramInput(input=input_file, reader=reader))
        orchestrationbench_json = run.files["orchestrationbench.json"]
        return json.loads(orchestrationbench_json)


@pytest.fixture
def bench(tmp_path):
    """A directory of scenario files and the means to grade it."""
    return Bench(tmp_path / "out")


@pytest.fixture
def scenario():
    """Build scenario output files.

    ``scenario(label, main, sub)`` or ``scenario(runs={name: run})``.
    """

    def build(label=None, main=(), sub=(), runs=None):
        run = {
            "label": label or {},
            "main_agent_history": list(main),
            "sub_agent_history": list(sub),
        }
        return {
            "scenario_id": "s",
            "generated_at": "0",
            "usage": {},
            "history": runs or {"run #1": run},
        }

    return build


@pytest.fixture
def turns():
    """Small builders: ``turns.label(...)``, ``turns.call(...)``, ``turns.answer(...)``."""

    class Turns:
        @staticmethod
        def call(name, arguments):
            if isinstance(arguments, str):
                text = arguments
            else:
                text = json.dumps(arguments)
            return {"type": "function", "id": "c", "function": {"name": name, "arguments": text}}

        def label(self, **steps):
            """Steps by number (``_4``).

            A list is gold calls, a text a gold rejection, a dict the entry itself.
            """
            built = {"1": {"role": "system", "content": "Today is Monday"}}
            for name, entry in steps.items():
                number = name.lstrip("_")
                if isinstance(entry, dict):
                    built[number] = entry
                    continue
                calls = isinstance(entry, list)
                built[number] = {
                    "role": "assistant",
                    "agent_id": "a",
                    "content": "tool" if calls else entry,
                }
                if calls:
                    built[f"{number}-1"] = {
                        "role": "assistant",
                        "agent_id": "a",
                        "content": "",
                        "tool_calls": entry,
                    }
                    built[f"{number}-2"] = {"role": "tool", "agent_id": "a", "content": "ok"}
            return built

        def answer(self, step, calls=(), content=None):
            return {
                "step_id": step,
                "role": "assistant",
                "agent_id": "a",
                "content": content,
                "tool_calls": list(calls),
            }

        @staticmethod
        def plan(step, content):
            return {"step_id": step, "role": "assistant", "content": content}

    return Turns()
