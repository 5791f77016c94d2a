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
from typing import Any, ClassVar

import attrs
from typing_extensions import override

from gradestack import ConfigError, Fault, Grade, Grader, Sample, failed, load_file, suggest

_NUMBERS: Any = Real
"""What a score may be; numpy's numbers are, too."""
_STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class FunctionSample(Sample, frozen=True, kw_only=True, eq=False):
    """What the function is handed.

    The sample, and its reference under the name letta-evals functions know.
    """

    @property
    def ground_truth(self) -> str | list[str] | None:
        """Reference text (a list holds one per turn), else the expected label, else None."""
        text = self.expected.text
        if text is None:
            return self.expected.label
        return text if isinstance(text, str) else list(text)


@attrs.frozen(kw_only=True)
class Function(Grader):
    """Grades with a function.

    Of the sample alone, or of the sample and its submission, the text of an extractor.

    The required positional parameters of ``function`` decide.
    """

    version: ClassVar[str] = "2"
    runs_code: ClassVar[bool] = True
    metrics: ClassVar[tuple[str, ...]] = ("mean",)

    function: Callable[..., Any]
    parameters: int = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "parameters", _parameters(self.function))

    @property
    @override
    def takes_text(self) -> bool:
        return self.parameters == 2

    @override
    def grade(self, sample: Sample) -> Grade:
        if not self.takes_text:
            return as_grade(self.function(sample))
        fields = {name: getattr(sample, name) for name in Sample.__struct_fields__}
        return as_grade(self.function(FunctionSample(**fields), sample.text or ""))


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
    ``--allow-code`` stands on the command line.
    """

    name: str
    file: Path | None = None
    module: str | None = None
    function: Callable[..., Any] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if (self.file is None) == (self.module is None):
            raise ValueError("name either a file or a module")
        loaded = _imported(self.file, self.module)
        object.__setattr__(self, "function", _function(loaded, self.name, self.file or self.module))
        super().__attrs_post_init__()

    def __reduce__(self) -> tuple[Callable[[], PythonFunction], tuple[()]]:
        """Pickle by where the function is; it is imported again in another process."""
        return partial(PythonFunction, file=self.file, module=self.module, name=self.name), ()

    @staticmethod
    def of(function: Callable[..., Any]) -> Function:
        """Return a grader for a function that is at hand."""
        return Function(function=function)


def _imported(file: Path | None, module: str | None) -> ModuleType:
    try:
        return load_file(file) if file is not None else importlib.import_module(str(module))
    except ConfigError as error:
        raise ValueError(str(error)) from error
    except (Exception, SystemExit) as error:
        raise ValueError(
            f"module {module!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def _function(module: ModuleType, name: str, place: object) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if found is None:
        known = [
            each
            for each, value in vars(module).items()
            if callable(value) and not each.startswith("_")
        ]
        also = suggest(name, known) or f"; there are: {', '.join(known) or 'none'}"
        raise ValueError(f"{place} has no function {name!r}{also}")
    if not callable(found):
        # an option's
        raise ValueError(f"{name!r} of {place} is {type(found).__name__}, not a function")
    if inspect.iscoroutinefunction(found):
        raise ValueError(f"{name!r} of {place} is asynchronous; a plain function is needed")
    return found  # type: ignore[no-any-return]


def _parameters(function: Callable[..., Any]) -> int:
    """Return how many parameters a function must be given: 1 or 2."""
    name = getattr(function, "__name__", type(function).__name__)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError as error:  # some built-in ones do not say
        raise ValueError(
            f"what {name!r} takes cannot be told; wrap it in a function of your own"
        ) from error
    required = [
        each for each in parameters if each.default is each.empty and each.kind not in _STARRED
    ]
    positional = [each for each in required if each.kind is not each.KEYWORD_ONLY]
    if len(required) > len(positional) or not 1 <= len(positional) <= 2:
        given = ", ".join(each.name for each in required) or "none"
        raise ValueError(
            f"{name!r} must take one parameter, the sample, or two, the sample and its submission; "
            f"those without a default are: {given}"
        )
    return len(positional)


def as_grade(returned: Any) -> Grade:
    """Return what a function returned as a grade; a failed one when it cannot be understood."""
    if isinstance(returned, Grade):
        return returned
    if returned is None:
        return _bad(
            "returned_nothing",
            "the function returned nothing; a number, True, False or a Grade is expected",
        )
    score: Any = returned
    rationale = metadata = None
    if isinstance(returned, Mapping) or hasattr(returned, "score"):
        held = isinstance(returned, Mapping)
        names = ("score", "rationale", "metadata")
        score, rationale, metadata = [
            returned.get(n) if held else getattr(returned, n, None) for n in names
        ]
    if not isinstance(score, _NUMBERS):
        return _bad(
            "bad_return",
            f"the function returned {type(returned).__name__} without a number as score",
        )
    if not 0 <= score <= 1:
        return _bad("bad_return", f"the function returned a score outside 0 to 1: {score}")
    return Grade(
        score=float(score),
        passed=score if isinstance(score, bool) else None,
        rationale="" if rationale is None else str(rationale),
        metadata=dict(metadata) if isinstance(metadata, Mapping) else {},
    )


def _bad(code: str, message: str) -> Grade:
    return failed(Fault(category="grading", code=code, message=message))
