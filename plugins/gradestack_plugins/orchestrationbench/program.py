"""The program ``orchestrationbench``: the benchmark's own evaluator over recorded files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from typing_extensions import override

from gradestack import Inputs, Program, ProgramFigure, ProgramInput, ProgramRun, Shard
from gradestack.jsonio import JsonProblem, loads, read_regular
from gradestack_plugins.orchestrationbench.evaluator import (
    ScenarioFile,
    evaluate_directory,
)
from gradestack_plugins.orchestrationbench.exporter import (
    FAMILY,
    FILE_NAME,
    KEY_METRICS,
    result_text,
)

WHY = {
    "average": "the mean of the other three",
    "call_rejection_accuracy": "an answer without call and marker is a call to the program, a step "
    "without an answer nothing",
    "fc": "the program leaves out value F1s of 0, forgets matches beside undecided values, and "
    "takes a file without a pair of calls for 0",
    "plan": "the program divides by gold plans and failures, and its structural graph ignores "
    "depend_on",
}


class OrchestrationBenchProgram(Program):
    """The result file of OrchestrationBench's evaluator, with its entries sorted by path.

    It uses the reader's agent cards, weights, judge section and verdicts.
    """

    reader = FAMILY
    title = "OrchestrationBench's evaluator"

    @override
    def run(self, program_input: ProgramInput) -> ProgramRun:
        reader = program_input.reader
        inputs = Inputs(data=(program_input.input,))
        settings = reader.index(inputs)
        files = load_files(reader.plan(inputs, settings))
        directory = str(program_input.input.path)
        document = evaluate_directory(directory, files, settings)
        metrics = document["overall_statistics"]["key_metrics"]
        graders = program_input.graders.items()
        key = next((key for key, grader in graders if FAMILY in grader.metrics), None)
        figures = []
        for name, label in KEY_METRICS.items():
            path = ""
            if key:
                path = f"{key}.{FAMILY}.{name}"
            metric = metrics[label]
            why = WHY[name]
            figure = ProgramFigure(label=label, value=metric, figure=path, why=why)
            figures.append(figure)
        return ProgramRun(files={FILE_NAME: result_text(document)}, figures=tuple(figures))


def load_files(shards: Iterable[Shard]) -> Iterator[ScenarioFile]:
    """Yield scenario files by path; the evaluator reads plain UTF-8."""
    for shard in shards:
        name = str(shard.extra or "")
        data = None
        file = shard.input.below(name)
        with suppress(OSError, JsonProblem, UnicodeDecodeError):
            text = read_regular(file.path).decode("utf-8")
            data = loads(text)
        yield ScenarioFile(file.shown, name or file.path.name, data)
