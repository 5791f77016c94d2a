"""Files of code for the tests of what a suite takes from them, and how they are graded."""

import gradestack
from tests.core.outcomes import data

DATA = data(__file__, "code_samples.yaml")


METRIC = DATA["metric"]
SHAPES = DATA["shapes"]


def graded(*references, registry, allow_code=True, **options):
    """Return the figures of graders over the two sound records of the working directory."""
    arguments = {"output": "out", "overrides": ["reports=[]"], "registry": registry} | options
    return gradestack.grade_files(
        "runs.jsonl", graders=references, allow_code=allow_code, **arguments
    )


def average(report, key):
    by_metric = report.metrics["by_metric"]
    return by_metric[key]["avg_score_attempted"]


def grader_text(name, score):
    return (
        f"class {name}(Grader):\n    def grade(self, sample):\n        return "
        f"Grade(score={score})\n"
    )
