"""Grader ``tool``: the form letta-evals suites name a text grader in."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import attrs
from typing_extensions import override

from gradestack import Grade, Grader, Profile, Sample, suggest
from gradestack_plugins.text_graders.builtin import AsciiPrintableOnly, Contains, ExactMatch, RegexMatch
from gradestack_plugins.text_graders.json_equal import JsonEqual
from gradestack_plugins.text_graders.numeric_close import NumericClose
from gradestack_plugins.text_graders.one_of import OneOf
from gradestack_plugins.text_graders.verdicts import NEEDS

BUILT_IN: dict[str, Callable[[Profile], Grader]] = {
    "exact_match": lambda profile: ExactMatch(profile=profile),
    "contains": lambda profile: Contains(profile=profile),
    "regex_match": lambda profile: RegexMatch(profile=profile),
    "ascii_printable_only": lambda _: AsciiPrintableOnly(),
    "json_equal": lambda _: JsonEqual(),
    "numeric_close": lambda _: NumericClose(),
    "one_of": lambda _: OneOf(),
}
"""Function name -> grader with its default options."""


@attrs.frozen(kw_only=True)
class Tool(Grader):
    """Grades with the text grader that ``function`` names, as ``kind: tool`` does in letta-evals suites.

    ``{kind: tool, function: contains}`` and ``{kind: contains}`` are the same; a grader's own options need the second
    form. A function of a Python file (``function: graders.py:score``) is imported only with ``--allow-code``.

    Attributes:
        function: Name of a text grader.
        profile: ``documented`` or ``upstream``.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = NEEDS
    aggregators: ClassVar[tuple[str, ...]] = ("mean",)
    submission: ClassVar[bool] = True

    function: str
    profile: Profile = "documented"

    def __attrs_post_init__(self) -> None:
        """Check the function's name.

        Raises:
            ValueError: It is no text grader.
        """
        if self.function in BUILT_IN:
            return
        if ":" in self.function:
            raise ValueError(
                f"{self.function!r} is Python code: it needs --allow-code on the command line, or as a grader of its "
                "own `kind: python_function` with `file` or `module` and `name`"
            )
        known = f"; there are: {', '.join(BUILT_IN)}"
        raise ValueError(f"no text grader is called {self.function!r}{suggest(self.function, BUILT_IN)}{known}")

    @override
    def grade(self, sample: Sample) -> Grade:
        return BUILT_IN[self.function](self.profile).grade(sample)
