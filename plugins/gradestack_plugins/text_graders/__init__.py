"""Graders of one text: the submission an extractor took out of the conversation, against the reference text."""

from __future__ import annotations

from gradestack import Component, hookimpl

_HERE = "gradestack_plugins.text_graders"


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the text graders."""
    return (
        Component(
            kind="grader",
            name="exact_match",
            target=f"{_HERE}.builtin:ExactMatch",
            summary="The submission equals the reference text, white space at the ends aside",
        ),
        Component(
            kind="grader",
            name="contains",
            target=f"{_HERE}.builtin:Contains",
            summary="The submission contains the reference text, case aside",
        ),
        Component(
            kind="grader",
            name="regex_match",
            target=f"{_HERE}.builtin:RegexMatch",
            summary="The reference, a regular expression, matches somewhere in the submission",
        ),
        Component(
            kind="grader",
            name="ascii_printable_only",
            target=f"{_HERE}.builtin:AsciiPrintableOnly",
            summary="The submission has printable ASCII characters and line ends only",
        ),
        Component(
            kind="grader",
            name="json_equal",
            target=f"{_HERE}.json_equal:JsonEqual",
            summary="The submission is JSON equal to the reference, key order and number spelling aside",
        ),
        Component(
            kind="grader",
            name="numeric_close",
            target=f"{_HERE}.numeric_close:NumericClose",
            summary="The submission is a number within a tolerance of the reference",
        ),
        Component(
            kind="grader",
            name="one_of",
            target=f"{_HERE}.one_of:OneOf",
            summary="The submission is one of several accepted texts",
        ),
        Component(
            kind="grader",
            name="tool",
            target=f"{_HERE}.tool:Tool",
            summary="The letta-evals form: `function` names one of the text graders",
        ),
        Component(
            kind="grader",
            name="python_function",
            target=f"{_HERE}.python_function:PythonFunction",
            summary="A Python function of a file or module, only with --allow-code",
        ),
        Component(
            kind="grader",
            name="rubric",
            target=f"{_HERE}.judges:Rubric",
            summary="A letta-evals model judge, which cannot be asked again: refused with what to do instead",
        ),
        Component(
            kind="grader",
            name="model_judge",
            target=f"{_HERE}.judges:ModelJudge",
            summary="The later name of rubric, refused in the same way",
        ),
    )
