"""Grader ``python_function``.

A function of the user's own, imported only when the command line allows it.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
from typing_extensions import override

from gradestack import ConfigError, Fault, Grade, Grader, Sample, failed, load_file, suggest

_NUMBERS: Any = Real
"""Types of a score; numpy's numbers are among them."""
_STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class FunctionSample(Sample, frozen=True, kw_only=True, eq=False):
    """The sample as the function gets it, with the reference under letta-evals' name."""

    @property
    def ground_truth(self) -> str | list[str] | None:
        """Reference text (a list holds one per turn), else the expected label, else None."""
        text = self.expected.text
        if text is None:
            return self.expected.label
        return text if isinstance(text, str) else list(text)


@attrs.frozen(kw_only=True)
class Function(Grader):
    """Grades with a function of the sample, or of the sample and its submission.

    The submission is the text of an extractor.

    The required positional parameters of ``function`` decide.
    """

    version = "2"
    runs_code = True
    metrics = ("mean",)

    function: Callable[..., Any]
    parameters: int = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        parameters = _parameters(self.function)
        object.__setattr__(self, "parameters", parameters)

    @property
    @override
    def takes_text(self) -> bool:
        return self.parameters == 2

    @override
    def grade(self, sample: Sample) -> Grade:
        if not self.takes_text:
            return as_grade(self.function(sample))
        fields = {name: getattr(sample, name) for name in Sample.__struct_fields__}
        function_sample = FunctionSample(**fields)
        return as_grade(self.function(function_sample, sample.text or ""))


@attrs.frozen(kw_only=True)
class PythonFunction(Function):
    """Grades with the function ``name`` of a Python ``file`` (relative to the suite), or of a
    ``module``.

    ``name(sample)`` is handed the ``gradestack.Sample``; ``name(sample, submission)`` besides it
    the text that an extractor took out of it, and that sample has ``ground_truth``. It returns a
    number, True or False (1.0 or 0.0, and the verdict), a mapping with ``score`` and optionally
    ``rationale`` and ``metadata``, an object with such attributes, or a ``gradestack.Grade``.
    Scores must lie in [0, 1]; anything else is a failed grade, and so are None and an exception. It
    need not carry a decorator.

    The code is imported when the suite is loaded, with all that it may do. So it is refused unless
    the command line has ``--allow-code``.
    """

    name: str
    file: Path | None = None
    module: str | None = None
    function: Callable[..., Any] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if (self.file is None) == (self.module is None):
            raise ValueError("name either a file or a module")
        loaded = _imported(self.file, self.module)
        source = self.file or self.module
        object.__setattr__(self, "function", _function(loaded, self.name, source))
        super().__attrs_post_init__()

    def __reduce__(self) -> tuple[Callable[[], PythonFunction], tuple[()]]:
        """Pickle the function's location; another process imports the function from there."""
        return partial(PythonFunction, file=self.file, module=self.module, name=self.name), ()

    @staticmethod
    def of(function: Callable[..., Any]) -> Function:
        """Return a grader for a function that is at hand."""
        return Function(function=function)


def _imported(file: Path | None, module: str | None) -> ModuleType:
    try:
        if file is not None:
            return load_file(file)
        return importlib.import_module(str(module))
    except ConfigError as error:
        raise ValueError(str(error)) from error
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"module {module!r} cannot be imported: {why}") from error


def _function(module: ModuleType, name: str, source: object) -> Callable[..., Any]:
    """Get a function of a module by name.

    Raises:
        ValueError: There is none, or it cannot be called, or it is asynchronous.
    """
    function = getattr(module, name, None)
    if function is None:
        attributes = vars(module).items()
        callables = [key for key, value in attributes if callable(value)]
        known = [key for key in callables if not key.startswith("_")]
        hint = suggest(name, known) or f"; there are: {', '.join(known) or 'none'}"
        raise ValueError(f"{source} has no function {name!r}{hint}")
    if not callable(function):
        problem = f"is {type(function).__name__}, not a function"
        raise ValueError(f"{name!r} of {source} {problem}")
    if inspect.iscoroutinefunction(function):
        raise ValueError(f"{name!r} of {source} is asynchronous; a plain function is needed")
    return function  # type: ignore[no-any-return]


def _parameters(function: Callable[..., Any]) -> int:
    """Return the number of parameters that a function requires: 1 or 2."""
    name = getattr(function, "__name__", type(function).__name__)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError as error:  # some built-in ones do not say
        problem = f"what {name!r} takes cannot be told"
        raise ValueError(f"{problem}; wrap it in a function of your own") from error
    plain = [parameter for parameter in parameters if parameter.kind not in _STARRED]
    required = [parameter for parameter in plain if parameter.default is parameter.empty]
    by_name = [parameter for parameter in required if parameter.kind is parameter.KEYWORD_ONLY]
    if by_name or len(required) not in {1, 2}:
        names = ", ".join([parameter.name for parameter in required]) or "none"
        rule = "must take one parameter, the sample, or two, the sample and its submission"
        raise ValueError(f"{name!r} {rule}; those without a default are: {names}")
    return len(required)


def as_grade(returned: Any) -> Grade:
    """Return the grade of a function's return; a failed one when it cannot be understood."""
    if isinstance(returned, Grade):
        return returned
    if returned is None:
        expected = "a number, True, False or a Grade is expected"
        return _bad("returned_nothing", f"the function returned nothing; {expected}")
    score: Any = returned
    rationale = metadata = None
    names = ("score", "rationale", "metadata")
    if isinstance(returned, Mapping):
        score, rationale, metadata = [returned.get(name) for name in names]
    elif hasattr(returned, "score"):
        score, rationale, metadata = [getattr(returned, name, None) for name in names]
    if not isinstance(score, _NUMBERS):
        kind = type(returned).__name__
        return _bad("bad_return", f"the function returned {kind} without a number as score")
    if not 0 <= score <= 1:
        return _bad("bad_return", f"the function returned a score outside 0 to 1: {score}")
    passed = score if isinstance(score, bool) else None
    return Grade(
        score=float(score),
        passed=passed,
        rationale="" if rationale is None else str(rationale),
        metadata=dict(metadata) if isinstance(metadata, Mapping) else {},
    )


def _bad(code: str, message: str) -> Grade:
    return failed(Fault(category="grading", code=code, message=message))
