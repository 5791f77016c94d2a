"""Graders of texts: the submission an extractor took out, against the reference.

And models as judges.
"""

from gradestack import Component, hookimpl

_TABLE = """
grader exact_match .texts:ExactMatch The submission equals the reference text, white space at the
    ends aside
grader contains .texts:Contains The submission contains the reference text, case aside
grader regex_match .texts:RegexMatch The reference, a regular expression, matches somewhere
grader ascii_printable_only .texts:AsciiPrintableOnly The submission is printable ASCII and line
    ends
grader json_equal .texts:JsonEqual The submission is JSON equal to the reference
grader numeric_close .texts:NumericClose The submission is a number within a tolerance of the
    reference
grader one_of .texts:OneOf The submission is one of several accepted texts
grader label .texts:Label The predicted label, or name of a tool, equals the expected one
grader tool .texts:Tool The letta-evals form: `function` names one of the text graders
grader combined .combined:Combined A weighted mean of the scores of other graders of the suite
panel answers .panels:answers The worst answers beside what was expected
grader python_function .python_function:PythonFunction A function of a Python file, only with
    --allow-code
"""
_JUDGES = """
grader judged .grader:JudgedByRubric A model's verdict on each criterion of a rubric, from the
    record
grader rubric .grader:LettaJudge A model's score by a rubric, as letta-evals suites write it
grader model_judge .grader:LettaJudge The name of rubric in letta-evals from 0.5 on
aggregator calibrated .calibrated:Calibrated The judge's pass rate, corrected by labels of people
panel judges .panels:judges How far people agree with a judge, and where they do not
command judge .commands:judge Ask a model to judge runs that have no stored verdict.
command judgements .commands:judgements Join files of stored replies.
"""
gradestack_components = hookimpl(
    lambda: (
        Component.table(__name__, _TABLE) + Component.table("gradestack_plugins.judges", _JUDGES)
    )
)
