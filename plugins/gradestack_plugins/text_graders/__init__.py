"""Graders of one text: the submission an extractor took out of the conversation, against the reference text."""

from __future__ import annotations

from gradestack import Component, hookimpl

_HERE = "gradestack_plugins.text_graders"
_GRADERS = {
    "exact_match": ("texts:ExactMatch", "The submission equals the reference text, white space at the ends aside"),
    "contains": ("texts:Contains", "The submission contains the reference text, case aside"),
    "regex_match": ("texts:RegexMatch", "The reference, a regular expression, matches somewhere"),
    "ascii_printable_only": ("texts:AsciiPrintableOnly", "The submission is printable ASCII and line ends"),
    "json_equal": ("texts:JsonEqual", "The submission is JSON equal to the reference"),
    "numeric_close": ("texts:NumericClose", "The submission is a number within a tolerance of the reference"),
    "one_of": ("texts:OneOf", "The submission is one of several accepted texts"),
    "label": ("labels:Label", "The predicted label, or name of a tool, equals the expected one"),
    "tool": ("texts:Tool", "The letta-evals form: `function` names one of the text graders"),
    "python_function": ("python_function:PythonFunction", "A function of a Python file, only with --allow-code"),
    "rubric": ("judges:Rubric", "A model judge, refused with what to do instead"),
    "model_judge": ("judges:ModelJudge", "As rubric"),
}


@hookimpl
def gradestack_components() -> tuple[Component, ...]:
    """Return the text graders."""
    return tuple(
        Component(kind="grader", name=name, target=f"{_HERE}.{path}", summary=text)
        for name, (path, text) in _GRADERS.items()
    )
