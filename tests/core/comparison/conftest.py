"""Runs to compare: made from scores by model, task and run."""

import pytest

import gradestack


@pytest.fixture
def made(tmp_path):
    """Return a function that writes a report directory.

    It takes ``{task: [score of each run]}``, or that for each model.
    """

    def make(name, scores, *, grader="exact_match", models=None, expected="x", **options):
        samples = [
            {
                "id": task,
                "run": run,
                "expected": expected,
                "predicted": "x" if score else "y",
                "input": f"do {task}",
                "facets": {"domain": "even" if int(task) % 2 == 0 else "odd"},
                **({"model": model} if model else {}),
            }
            for model, tasks in (models or {None: scores}).items()
            for task, runs in tasks.items()
            for run, score in enumerate(runs)
            if score is not None
        ]
        output = tmp_path / name
        gradestack.grade(samples, graders={"g": {"kind": grader}}, output=output, **options)
        return tmp_path / name

    return make
