"""gradestack grades recorded runs of tool-calling LLM agents.

>>> import gradestack
>>> report = gradestack.run("suite.yaml")  # doctest: +SKIP
>>> report = gradestack.grade_files(["results.json"])  # doctest: +SKIP
>>> report = gradestack.grade(samples, graders=["tau_partial"])  # doctest: +SKIP

This is the one import root, for users and for authors of plugins. Beside it there are :mod:`gradestack.testing`,
:mod:`gradestack.exact` and :mod:`gradestack.jsonio`; every other module is private.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradestack._version import __version__

if TYPE_CHECKING:
    from gradestack.api import (
        Aggregator,
        Component,
        Engine,
        Exporter,
        ExportSummary,
        Extractor,
        Grader,
        GraderSummary,
        Input,
        Inputs,
        Kind,
        Memory,
        Profile,
        Reader,
        ResultT,
        Shard,
    )
    from gradestack.errors import ConfigError, DataError, GradestackError, LostEngineError, PluginError, suggest
    from gradestack.grading.progress import Progress
    from gradestack.model import (
        ABSENT,
        JSON,
        LARGEST_SCORE,
        BadRecord,
        Expectation,
        Fault,
        Grade,
        Item,
        Key,
        Message,
        Outcome,
        Reason,
        Sample,
        Source,
        Status,
        ToolCall,
        ToolSpec,
        check_grade,
        failed,
        skipped,
    )
    from gradestack.plugin_errors import error_text
    from gradestack.python_api import grade, grade_files, load_suite, run
    from gradestack.records import RecordFile, RecordReader, read_records
    from gradestack.registry import Registry, discover, hookimpl
    from gradestack.report import Report, Reporter, is_run, load_report
    from gradestack.rows.read import grade_from_json, key_from_row
    from gradestack.rows.write import grade_to_json
    from gradestack.rundir.memory import free_memory

# Imported on first use: `gradestack --help` must not pay for what it does not need.
_WHERE = {
    "api": (
        "Aggregator",
        "Component",
        "Engine",
        "ExportSummary",
        "Exporter",
        "Extractor",
        "Grader",
        "GraderSummary",
        "Input",
        "Inputs",
        "Kind",
        "Memory",
        "Profile",
        "Reader",
        "ResultT",
        "Shard",
    ),
    "errors": ("ConfigError", "DataError", "GradestackError", "LostEngineError", "PluginError", "suggest"),
    "grading.progress": ("Progress",),
    "model": (
        "ABSENT",
        "JSON",
        "LARGEST_SCORE",
        "BadRecord",
        "Expectation",
        "Fault",
        "Grade",
        "Item",
        "Key",
        "Message",
        "Outcome",
        "Reason",
        "Sample",
        "Source",
        "Status",
        "ToolCall",
        "ToolSpec",
        "check_grade",
        "failed",
        "skipped",
    ),
    "plugin_errors": ("error_text",),
    "python_api": ("grade", "grade_files", "load_suite", "run"),
    "records": ("RecordFile", "RecordReader", "read_records"),
    "registry": ("Registry", "discover", "hookimpl"),
    "report": ("Report", "Reporter", "is_run", "load_report"),
    "rows.read": ("grade_from_json", "key_from_row"),
    "rows.write": ("grade_to_json",),
    "rundir.memory": ("free_memory",),
}
_MODULES = {name: module for module, names in _WHERE.items() for name in names}

__all__ = [
    "ABSENT",
    "JSON",
    "LARGEST_SCORE",
    "Aggregator",
    "BadRecord",
    "Component",
    "ConfigError",
    "DataError",
    "Engine",
    "Expectation",
    "ExportSummary",
    "Exporter",
    "Extractor",
    "Fault",
    "Grade",
    "Grader",
    "GraderSummary",
    "GradestackError",
    "Input",
    "Inputs",
    "Item",
    "Key",
    "Kind",
    "LostEngineError",
    "Memory",
    "Message",
    "Outcome",
    "PluginError",
    "Profile",
    "Progress",
    "Reader",
    "Reason",
    "RecordFile",
    "RecordReader",
    "Registry",
    "Report",
    "Reporter",
    "ResultT",
    "Sample",
    "Shard",
    "Source",
    "Status",
    "ToolCall",
    "ToolSpec",
    "__version__",
    "check_grade",
    "discover",
    "error_text",
    "failed",
    "free_memory",
    "grade",
    "grade_files",
    "grade_from_json",
    "grade_to_json",
    "hookimpl",
    "is_run",
    "key_from_row",
    "load_report",
    "load_suite",
    "read_records",
    "run",
    "skipped",
    "suggest",
]

if not TYPE_CHECKING:  # a checker must refuse a name that is not there

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            msg = f"module 'gradestack' has no attribute {name!r}"
            raise AttributeError(msg)
        import importlib  # noqa: PLC0415 - only on first use

        found = globals()[name] = getattr(importlib.import_module(f"gradestack.{_MODULES[name]}"), name)
        return found

    def __dir__() -> list[str]:
        return __all__
