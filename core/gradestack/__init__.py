"""gradestack grades recorded runs of tool-calling LLM agents.

>>> import gradestack
>>> report = gradestack.run("suite.yaml")  # doctest: +SKIP
>>> report = gradestack.grade_files(["results.json"])  # doctest: +SKIP
>>> report = gradestack.grade(samples, graders=["tau_partial"])  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradestack._version import __version__

if TYPE_CHECKING:
    from gradestack.errors import ConfigError, DataError, GradestackError, PluginError
    from gradestack.facade import grade, grade_files, load_suite, run
    from gradestack.model import Expectation, Grade, Key, Message, Outcome, Sample, ToolCall, ToolSpec
    from gradestack.registry import Registry, discover
    from gradestack.report import Report, load_report

# Name -> module, imported on first use: `gradestack --help` must not pay for what it does not need.
_WHERE = {
    "ConfigError": "errors",
    "DataError": "errors",
    "GradestackError": "errors",
    "PluginError": "errors",
    "Expectation": "model",
    "Grade": "model",
    "Key": "model",
    "Message": "model",
    "Outcome": "model",
    "Sample": "model",
    "ToolCall": "model",
    "ToolSpec": "model",
    "Registry": "registry",
    "discover": "registry",
    "Report": "report",
    "load_report": "report",
    "grade": "facade",
    "grade_files": "facade",
    "load_suite": "facade",
    "run": "facade",
}

__all__ = [
    "ConfigError",
    "DataError",
    "Expectation",
    "Grade",
    "GradestackError",
    "Key",
    "Message",
    "Outcome",
    "PluginError",
    "Registry",
    "Report",
    "Sample",
    "ToolCall",
    "ToolSpec",
    "__version__",
    "discover",
    "grade",
    "grade_files",
    "load_report",
    "load_suite",
    "run",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        import importlib  # noqa: PLC0415 - only on first use

        return getattr(importlib.import_module(f"gradestack.{_WHERE[name]}"), name)
    msg = f"module 'gradestack' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return __all__
