"""Grader ``python_function``: a function of the user's own, imported only when the command line allows it."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import attrs

from gradestack import Fault, Grade, Grader, Sample, failed, suggest


class FunctionSample(Sample, frozen=True, kw_only=True, eq=False):
    """What the function is handed: the sample, and its reference under the name letta-evals functions know."""

    @property
    def ground_truth(self) -> str | list[str] | None:
        """Reference text (a list holds one per turn), else the expected label, else None."""
        text = self.expected.text
        if text is None:
            return self.expected.label
        return text if isinstance(text, str) else list(text)


@attrs.frozen(kw_only=True)
class PythonFunction(Grader):
    """Grades with ``name(sample, submission)``, a function of a Python file or module.

    It returns a number or a truth value, a mapping with ``score`` and optionally ``rationale`` and ``metadata``, an
    object with such attributes, or a :class:`gradestack.Grade`. Scores must lie in [0, 1]; anything else is a
    failed grade, and so is an exception. ``sample`` is a :class:`gradestack.Sample` with ``ground_truth``
    besides; it need not carry a decorator.

    The code is imported when the suite is loaded, with all that it may do. So it is refused unless ``--allow-code``
    stands on the command line.

    Attributes:
        file: Python file, relative to the suite.
        module: Importable module, instead of a file.
        name: Name of the function.
    """

    version: ClassVar[str] = "1"
    needs: ClassVar[frozenset[str]] = frozenset(Sample.__struct_fields__)
    aggregators: ClassVar[tuple[str, ...]] = ("mean",)
    submission: ClassVar[bool] = True
    runs_code: ClassVar[bool] = True

    name: str
    file: Path | None = None
    module: str | None = None
    function: Callable[..., Any] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        """Import the function.

        Raises:
            ValueError: Neither or both of file and module, or the function cannot be had from there.
        """
        if (self.file is None) == (self.module is None):
            raise ValueError("name either a file or a module")
        loaded = _from_file(self.file) if self.file is not None else _from_module(str(self.module))
        object.__setattr__(self, "function", _function(loaded, self.name, self.file or self.module))

    def __reduce__(self) -> tuple[Callable[..., PythonFunction], tuple[Path | None, str | None, str]]:
        """Pickle by where the function is; it is imported again in another process."""
        return _again, (self.file, self.module, self.name)

    def grade(self, sample: Sample) -> Grade:
        """Return what the function says about one sample."""
        fields = {name: getattr(sample, name) for name in Sample.__struct_fields__}
        return as_grade(self.function(FunctionSample(**fields), sample.text or ""))


def load(path: str | Path, name: str) -> PythonFunction:
    """Return a grader for a function.

    Args:
        path: A file ending in ``.py``, or the dotted name of a module.
        name: The function.

    Raises:
        ValueError: It cannot be had from there.
    """
    if isinstance(path, Path) or path.endswith(".py"):
        return PythonFunction(file=Path(path), name=name)
    return PythonFunction(module=path, name=name)


def _again(file: Path | None, module: str | None, name: str) -> PythonFunction:
    return PythonFunction(file=file, module=module, name=name)


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"{path}: no such Python file")
    digest = hashlib.blake2b(str(path.resolve()).encode(), digest_size=6).hexdigest()
    spec = importlib.util.spec_from_file_location(f"gradestack_user_code_{path.stem}_{digest}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickling look a class's module up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        sys.modules.pop(spec.name, None)
        raise ValueError(f"{path}: cannot be imported: {type(error).__name__}: {error}") from error
    return module


def _from_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise ValueError(f"module {name!r} cannot be imported: {type(error).__name__}: {error}") from error


def _function(module: ModuleType, name: str, place: object) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if found is None:
        known = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
        also = suggest(name, known) or f"; there are: {', '.join(known) or 'none'}"
        raise ValueError(f"{place} has no function {name!r}{also}")
    if not callable(found):
        raise ValueError(f"{name!r} of {place} is {type(found).__name__}, not a function")  # noqa: TRY004 - an option's
    if inspect.iscoroutinefunction(found):
        raise ValueError(f"{name!r} of {place} is asynchronous; a plain function (sample, submission) is needed")
    return found  # type: ignore[no-any-return]


def as_grade(said: Any) -> Grade:
    """Return what a function returned as a grade; a failed one when it cannot be understood."""
    if isinstance(said, Grade):
        return said
    score, rationale, metadata = said, None, None
    if isinstance(said, Mapping):
        score, rationale, metadata = (said.get(name) for name in ("score", "rationale", "metadata"))
    elif hasattr(said, "score"):
        score, rationale, metadata = (getattr(said, name, None) for name in ("score", "rationale", "metadata"))
    if not isinstance(score, bool | int | float):
        return _bad(f"the function returned {type(said).__name__} without a number as score")
    if not 0 <= score <= 1:
        return _bad(f"the function returned a score outside 0 to 1: {score}")
    return Grade(
        score=float(score),
        rationale="" if rationale is None else str(rationale),
        metadata=dict(metadata) if isinstance(metadata, Mapping) else {},
    )


def _bad(message: str) -> Grade:
    return failed(Fault(category="grading", code="bad_return", message=message))
