"""Files of code for the tests of what a suite takes from them, and how they are graded."""

import gradestack

METRIC = """\
from attrs import frozen
from gradestack import Grade, Grader, Reason, skipped

@frozen(kw_only=True)
class FewCalls(Grader):
    needs = frozenset({"calls"})
    aggregators = ("mean",)
    most: int = 3

    def grade(self, sample):
        if sample.calls is None:
            return skipped("no_calls", "calls were not recorded")
        over = tuple(Reason(code="over", subject=call.name) for call in sample.calls[self.most :])
        return Grade(score=1 / (1 + len(over)), reasons=over)
"""
SHAPES = """\
import attrs
from gradestack import Aggregator, Grade, Grader, hookimpl

class Always(Grader):
    def grade(self, sample):
        return Grade(score=1.0)

@attrs.frozen(kw_only=True)
class Share(Grader):
    of: float = 0.5

    def grade(self, sample):
        return Grade(score=self.of)

class Forgetful(Grader):
    limit: int = 3

    def grade(self, sample):
        return Grade(score=1.0)

class Count(Aggregator):
    def compute(self, grades): return {"count": len(grades)}

def shout(sample):
    return 0.25

def torn(sample):
    raise LookupError(f"nothing in {sample.id}")

def pair(sample, submission):
    return submission == "x"

def three(a, b, c):
    return 1.0

VALUE = 7
"""


def graded(*references, registry, allow_code=True, **options):
    """Return the figures of graders over the two sound records of the working directory."""
    found = {"output": "out", "overrides": ["reports=[]"], "registry": registry} | options
    return gradestack.grade_files("runs.jsonl", graders=references, allow_code=allow_code, **found)


def average(report, key):
    return report.metrics["by_metric"][key]["avg_score_attempted"]


def grader_text(name, score):
    return f"class {name}(Grader):\n    def grade(self, sample):\n        return Grade(score={score})\n"
